// Package style_test keeps words out of the repository for which Kubernetes, OLM and controller-runtime have others.
package style_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// words are what not to write, by what to write in its place.
var words = map[string]*regexp.Regexp{
	"fix":                            regexp.MustCompile(`(?i)\bcures?\b|\bcured\b`),
	"--suppress, suppression":        regexp.MustCompile(`--accept\b|\bolmkit:accept\b|(?i)\bacceptances?\b`),
	"rollback":                       regexp.MustCompile(`(?i)\bway back\b`),
	"limitations":                    regexp.MustCompile(`(?i)\bnot ?proven\b|\bmay be otherwise\b`),
	"--output-dir, --output-file":    regexp.MustCompile(`--into\b`),
	"--fault-matrix":                 regexp.MustCompile(`--faults\b`),
	"--compare-fresh":                regexp.MustCompile(`--fresh\b`),
	"cluster build":                  regexp.MustCompile(`\bolmkit cluster components\b`),
	"timed out waiting for":          regexp.MustCompile(`(?i)\bnot so in time\b`),
	"snapshot, read, full state":     regexp.MustCompile(`(?i)\bglances?\b|\bbehold\b|\bwholly\b`),
	"stalled, terminal failure":      regexp.MustCompile(`(?i)\bhopeless\b|\bdid not go on\b`),
	"delete leftovers":               regexp.MustCompile(`(?i)\bbury\b`),
	"slow threshold":                 regexp.MustCompile(`(?i)\bsluggish\b`),
	"lazy catalog, index entry":      regexp.MustCompile(`(?i)\bshelf\b|\bshelves\b|\bspine\b`),
	"inject, in force, fault result": regexp.MustCompile(`(?i)\bstruck\b|\bendures?\b`),
	"orphans, leftovers":             regexp.MustCompile(`\bSurvivors\b|\bResidue\b`),
	"faulty conversion webhook":      regexp.MustCompile(`(?i)\bmisconvert`),
}

// notOurs are files whose words others chose, or that tell what was.
var notOurs = regexp.MustCompile(`^(CHANGELOG\.md|LICENSE|go\.sum|test/style/|.*/testdata/|.*\.txtar$|internal/lifecycle/olmv0/manifests\.yaml)`)

func TestWords(t *testing.T) {
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list the repository's files: %v", err)
	}
	files := 0
	for file := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		if notOurs.MatchString(file) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(data, 0) >= 0 {
			continue
		}
		files++
		for better, word := range words {
			for _, at := range word.FindAllIndex(data, -1) {
				t.Errorf("%s:%d: %q: write %s", file, 1+bytes.Count(data[:at[0]], []byte("\n")), data[at[0]:at[1]], better)
			}
		}
	}
	if files < 500 {
		t.Errorf("only %d files were read", files)
	}
}
