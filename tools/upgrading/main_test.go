package main

import (
	"strings"
	"testing"
)

const changelog = `# Changelog

Text.

## [0.3.0]

Withdrawn.

### Added

- A new field.

### Removed

- The old version,
  at last.

## [0.2.0]

### Fixed

- A bug.

## [0.1.0]

### Added

- All.
`

func TestUpgrading(t *testing.T) {
	var page strings.Builder
	if err := run(strings.NewReader(changelog), &page); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(page.String(), "\n## ")
	want := `To 0.3.0

Withdrawn.

### Removed in 0.3.0

- The old version,
  at last.

## To 0.2.0

Nothing is removed, deprecated or changed.
`
	if got != want {
		t.Errorf("the page is\n%s", got)
	}
}

func TestBadChangelog(t *testing.T) {
	for text, want := range map[string]string{
		"# Changelog\n": "no release",
		"## 1.2.3\n":    "write it as",
		"## [1.2.3]\n\n### Improvements\n\n- One.\n": `a section "Improvements"`,
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
