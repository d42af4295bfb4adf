package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/finding"
)

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, test := range []struct {
		name, line   string
		column       int
		shown, caret string
	}{
		{"a key", "  replaces: tea.v1", 3, "  replaces: tea.v1", "  ^^^^^^^^"},
		{"an item", "- name: x", 3, "- name: x", "  ^^^^"},
		{"a JSON key", `{"a": 1, "skips": ["b"]}`, 10, `{"a": 1, "skips": ["b"]}`, "         ^^^^^^^"},
		{"a string with a quote", `["a\"b", 1]`, 2, `["a\"b", 1]`, ` ^^^^^^`},
		{"a value with colons", "image: a:b@c", 8, "image: a:b@c", "       ^^^^^"},
		{"tabs", "\t\"a\":\t1", 2, `    "a":    1`, "    ^^^"},
		{"wide characters", "名前: 値, key: v", 8, "名前: 値, key: v", "          ^^^"},
		{"a combining character", "e\u0301: x, key: v", 8, "e\u0301: x, key: v", "      ^^^"},
		{"no column", "x: y", 0, "x: y", ""},
		{"beyond the line", "x: y", 9, "x: y", ""},
		{"an escape sequence", "a: \x1b[31m", 1, "a: ·[31m", "^"},
		{"a long value", "  data: " + long, 3, "data: " + strings.Repeat("x", 53) + "…", "^^^^"},
		{"far in a long line", `{"` + long + `":1,"key":2,"` + long + `":3}`, 207, "…" + strings.Repeat("x", 36) + `":1,"key":2,"` + strings.Repeat("x", 10), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			shown, caret := excerpt(test.line, test.column, 60)
			if columns([]rune(shown)) > 60 {
				t.Errorf("%d columns", columns([]rune(shown)))
			}
			if test.name == "far in a long line" {
				i, j := strings.IndexByte(caret, '^'), strings.LastIndexByte(caret, '^')
				if got := string([]rune(shown)[i : j+1]); got != `"key"` || !strings.HasPrefix(shown, "…") || !strings.HasSuffix(shown, "…") {
					t.Errorf("%s\n%s\npoints at %s", shown, caret, got)
				}
				return
			}
			if shown != test.shown || caret != test.caret {
				t.Errorf("got\n%s\n%s\nwant\n%s\n%s", shown, caret, test.shown, test.caret)
			}
		})
	}
}

// A place far in a line as long as a file is found by its characters, and what has no width is looked at only near it.
func TestExcerptOfLongLines(t *testing.T) {
	for name, head := range map[string]string{
		"letters": strings.Repeat("x", 1<<20), "wide": strings.Repeat("値", 1<<20), "mixed": strings.Repeat("xé値", 1<<18), "without width": strings.Repeat("\u0301", 1<<20),
	} {
		shown, caret := excerpt(head+`"key": 1, `+head, len([]rune(head))+1, 60)
		i, j := strings.IndexByte(caret, '^'), strings.LastIndexByte(caret, '^')
		if columns([]rune(shown)) > 60 || !strings.Contains(shown, `"key"`) || j-i != 4 {
			t.Errorf("%s: %.200s\n%s", name, shown, caret)
		}
	}
}

// FuzzExcerpt: whatever stands in a file, what is shown fits, and nothing panics.
func FuzzExcerpt(f *testing.F) {
	f.Add("a: b", 1)
	f.Add("\t\"名\":\x1b", 3)
	f.Fuzz(func(t *testing.T, line string, column int) {
		line, _, _ = strings.Cut(line, "\n")
		shown, _ := excerpt(line, column, 60)
		if columns([]rune(shown)) > 60 || strings.ContainsAny(shown, "\x1b\x07\n") {
			t.Errorf("%q", shown)
		}
	})
}

func TestSource(t *testing.T) {
	r := validation()
	r.Findings = append(r.Findings, finding.Finding{
		Code: "AAA001", Severity: finding.Error, Subject: finding.Subject{Package: "p"}, Message: "third",
		Location: &finding.Location{File: "catalog.yaml", Line: 3, Column: 1, Path: "spec.version", Object: "Tea/green", Excerpt: "version:\n  major: 1\n  text: " + strings.Repeat("long ", 40)},
	}, finding.Finding{
		Code: "AAA001", Severity: finding.Error, Subject: finding.Subject{Package: "p"}, Message: "fourth",
		Location: &finding.Location{File: "catalog.yaml", Line: 4, Column: 3},
	})
	for i := range 5 {
		r.Findings = append(r.Findings, finding.Finding{Code: "AAA003", Severity: finding.Info, Subject: finding.Subject{Package: "p"}, Message: strings.TrimSpace(strings.Repeat("note ", i+1))})
	}
	r.Findings[2].Suppressed = &finding.Suppression{Reason: "we know", Until: "2027-01-31"}
	r.Source = func(file string, line int) (string, bool) {
		return "  key: value", file == "catalog.yaml" && line < 9
	}
	for _, verbose := range []bool{false, true} {
		r.Verbose = verbose
		var b bytes.Buffer
		if err := Text(&b, r, false); err != nil {
			t.Fatal(err)
		}
		got := b.String()
		for text, want := range map[string]bool{
			"    1 |   key: value\n      |   ^^^\n":                                                  verbose,
			"    4 |   key: value\n      |   ^^^\n":                                                  true,
			"    at spec.version of Tea/green\n    | version:\n    |   major: 1\n    |   text: long": true,
			"  AAA003: 5 (note)":                         !verbose,
			"note note note note note":                   verbose,
			"suppressed AAA001 catalog.yaml:2:3":         verbose,
			"    suppressed until 2027-01-31: we know\n": verbose,
			"2 errors":                        false,
			"4 errors, 6 notes, 1 suppressed": true,
		} {
			if strings.Contains(got, text) != want {
				t.Errorf("verbose %t: %q is there: %t\n%s", verbose, text, !want, got)
			}
		}
	}
}

// What a report says of seconds may be any number, and its text is written all the same.
func TestParagraphBehindAnything(t *testing.T) {
	r := &Report{APIVersion: APIVersion, Kind: KindUpgrade, Result: Passed, Hops: []Hop{{From: "a", To: "b", Result: Passed, Verification: []Phase{{Name: "samples", Seconds: math.MaxFloat64}}}}}
	var b strings.Builder
	if err := Text(&b, r, false); err != nil || !strings.Contains(b.String(), "samples") {
		t.Errorf("%v: %s", err, b.String())
	}
}
