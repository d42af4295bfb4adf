package suppress

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/finding"
)

var today = time.Date(2026, 6, 15, 23, 0, 0, 0, time.UTC)

func known(code string) bool { return strings.HasPrefix(code, "AAA") }

func always(string) bool { return true }

// outcome applies rules to one finding of AAA001 and says what becomes of it.
func outcome(rules []Rule) string {
	findings := []finding.Finding{{
		Code: "AAA001", Severity: finding.Error, Message: "wrong", Location: &finding.Location{File: "dir/c.yaml", Line: 3, Column: 5},
		Subject: finding.Subject{Package: "p", To: "p.v2", Object: "Kind/x"},
	}}
	j := NewJudge(rules, today, known)
	j.Apply(findings)
	out := findings[0].Message
	if a := findings[0].Suppressed; a != nil {
		out = fmt.Sprintf("suppressed: %s, until %s, at %s", a.Reason, a.Until, a.Location)
	}
	for _, f := range j.Findings(always) {
		out += fmt.Sprintf("; %s %s %s", f.Code, f.Location, f.Message)
	}
	return out
}

func TestComments(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"none", "a: 1\n", "wrong"},
		{"on the line", "a:\n- b\n- c: d # olmkit:suppress AAA001 until=2026-06-15 it is so\n", "suppressed: it is so, until 2026-06-15, at dir/c.yaml:3:8"},
		{"above", "a:\n  # olmkit:suppress AAA001 it is until=2027-01-01 so\n- c: d\n", "suppressed: it is so, until 2027-01-01, at dir/c.yaml:2:3"},
		{"two above", "# olmkit:suppress AAA001 until=2027-01-01 first\n# olmkit:suppress AAA002 until=2027-01-01 second\n- c: d\n", "suppressed: first, until 2027-01-01, at dir/c.yaml:1:1; ACC004 dir/c.yaml:2:1 AAA002 is suppressed here, but not found"},
		{"another line", "a: 1 # olmkit:suppress AAA001 until=2027-01-01 so\n", "wrong; ACC004 dir/c.yaml:1:6 AAA001 is suppressed here, but not found"},
		{"past", "a:\nb:\nc: # olmkit:suppress AAA001 until=2026-06-14 so\n", "wrong (suppression expired after 2026-06-14); ACC003 dir/c.yaml:3:4 the suppression of AAA001 expired after 2026-06-14: so"},
		{"no day", "\n\nc: # olmkit:suppress AAA001 so\n", "wrong; ACC002 dir/c.yaml:3:4 the suppression of AAA001 is invalid: it has no until date"},
		{"a day that is none", "\n\nc: # olmkit:suppress AAA001 until=2026-02-30 so\n", `wrong; ACC002 dir/c.yaml:3:4 the suppression of AAA001 is invalid: until "2026-02-30" is no date`},
		{"no reason", "\n\nc: # olmkit:suppress AAA001 until=2027-01-01\n", "wrong; ACC002 dir/c.yaml:3:4 the suppression of AAA001 is invalid: it has no reason"},
		{"no code", "\n\nc: # olmkit:suppress\n", "wrong; ACC002 dir/c.yaml:3:4 the suppression of a finding is invalid: it has no code"},
		{"an unknown code", "\n\nc: # olmkit:suppress BBB001 until=2027-01-01 so\n", "wrong; ACC001 dir/c.yaml:3:4 BBB001 is suppressed, but no check has that code"},
		{"in a word", "a: b#olmkit:suppress AAA001\n", "wrong"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := test.text
			if test.name == "two above" || test.name == "above" { // the finding is on line 3
				for strings.Count(text, "\n") < 3 {
					text += "\n"
				}
			}
			if diff := cmp.Diff(test.want, outcome(Comments("dir/c.yaml", []byte(text)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFile(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"by package", "suppress:\n- {code: AAA001, package: p, until: 2027-01-31, reason: so}\n", "suppressed: so, until 2027-01-31, at f:2:3"},
		{"by all", "suppress:\n- {code: AAA001, package: p, to: p.v2, object: Kind/x, file: c.yaml, until: 2027-01-31, reason: so}\n", "suppressed: so, until 2027-01-31, at f:2:3"},
		{"another file", "suppress:\n- {code: AAA001, file: yaml, until: 2027-01-31, reason: so}\n", "wrong; ACC004 f:2:3 AAA001 is suppressed here, but not found"},
		{"another bundle", "suppress:\n- {code: AAA001, from: p.v2, until: 2027-01-31, reason: so}\n", "wrong; ACC004 f:2:3 AAA001 is suppressed here, but not found"},
		{"no place", "suppress:\n- {code: AAA001, until: 2027-01-31, reason: so}\n", "wrong; ACC002 f:2:3 the suppression of AAA001 is invalid: it has no place"},
		{"a field there is not", "suppress:\n- {code: AAA001, bundle: x, package: p, until: 2027-01-31, reason: so}\n", "wrong; ACC002 f:2:3 the suppression of AAA001 is invalid: it has no field bundle"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules, err := File("f", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, outcome(rules)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, text := range []string{"suppress: x", "acept: []", "- a", "suppress: [x]", "a: b: c"} {
		if _, err := File("f", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
