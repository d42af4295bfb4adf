package arrows_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	named    = regexp.MustCompile("`((?:internal|test)/[a-z0-9/]+)`([^;|]*)")
	function = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z]+)`")
	script   = regexp.MustCompile("`([a-z]+)`")
)

// TestAttacksHaveTests: each test that SECURITY.md names for an attack is where it says.
func TestAttacksHaveTests(t *testing.T) {
	text, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			sources := sourcesOf(t, m[1])
			for _, f := range function.FindAllStringSubmatch(m[2], -1) {
				found++
				if !strings.Contains(sources, "func "+f[1]+"(") {
					t.Errorf("%s has no %s", m[1], f[1])
				}
			}
			if m[1] != "test/script" {
				continue
			}
			for _, s := range script.FindAllStringSubmatch(m[2], -1) {
				found++
				if _, err := os.Stat(filepath.Join("../script/testdata", s[1]+".txtar")); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d tests are named", found)
	}
}

// sourcesOf returns what the tests in the folder dir of the repository say.
func sourcesOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no tests (%v)", dir, err)
	}
	var all strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(source)
	}
	return all.String()
}
