// Package coverage_test holds docs/coverage.md to the tests that it names.
package coverage_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	section = regexp.MustCompile(`^## .*: (\d+)$`)
	row     = regexp.MustCompile("^\\| .+ \\| .+ \\| `([a-z0-9./-]+)` (Test[A-Za-z0-9]+) \\|$")
)

// Each feature names a test that there is; each section has as many as its title says.
func TestCoverage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "coverage.md"))
	if err != nil {
		t.Fatal(err)
	}
	title, want, rows, all := "", 0, 0, 0
	ended := func() {
		if rows != want {
			t.Errorf("%q has %d features", title, rows)
		}
	}
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if found := section.FindStringSubmatch(line); found != nil {
			ended()
			title, rows = line, 0
			if want, err = strconv.Atoi(found[1]); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| feature |") {
			continue
		}
		rows++
		all++
		found := row.FindStringSubmatch(line)
		if found == nil {
			t.Errorf("names no test as `folder` Test: %s", line)
			continue
		}
		if !exists(t, found[1], found[2]) {
			t.Errorf("there is no %s in %s: %s", found[2], found[1], line)
		}
	}
	ended()
	if all != 194 {
		t.Errorf("%d features, and the documents have 194", all)
	}
}

// exists says whether a folder has a test of this name.
func exists(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(code), "\nfunc "+name+"(t *testing.T) {") {
			return true
		}
	}
	return false
}
