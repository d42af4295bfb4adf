package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/managerlog"
)

func TestQuoteErrors(t *testing.T) {
	forbidden := managerlog.Group{
		Key: "forbidden", Message: "Reconciler error", Error: `create StatefulSet: statefulsets.apps is forbidden: User "x" cannot create resource "statefulsets"`,
		Excerpt: `Reconciler error: statefulsets.apps is forbidden`, Count: 9, Objects: []string{"default/sample"},
	}
	plain := managerlog.Group{Key: "plain", Message: `cannot reconcile default/other-one: no such field`, Excerpt: `cannot reconcile default/other-one: no such field`, Count: 4}
	panicked := managerlog.Group{Key: "panic", Panic: true, Excerpt: "panic: nil map", Count: 1}
	for name, test := range map[string]struct {
		f      finding.Finding
		quoted string // "" for none
		told   string
	}{
		"the object that the log names":        {finding.Finding{Code: code.StatusStale, Subject: finding.Subject{Object: "Redis/default/sample"}}, "9 times: Reconciler error", "forbidden"},
		"the object in a text":                 {finding.Finding{Code: code.ConditionWorse, Subject: finding.Subject{Object: "Redis/default/other-one"}}, "4 times: cannot reconcile", "plain"},
		"another object":                       {finding.Finding{Code: code.StatusStale, Subject: finding.Subject{Object: "Redis/default/other"}}, "", ""},
		"a refusal in the API server's words":  {finding.Finding{Code: "U211", Message: `403 "statefulsets.apps is forbidden: User \"x\" cannot create resource \"statefulsets\" in …"`}, "9 times", "forbidden"},
		"another refusal":                      {finding.Finding{Code: "U211", Message: `403 "services is forbidden: User \"x\" cannot create resource \"services\""`}, "", ""},
		"a process that does not come up":      {finding.Finding{Code: code.Crashed, Severity: finding.Error, Subject: finding.Subject{Object: "Pod/ns/p"}}, "once: panic: nil map", "panic"},
		"one whose cause has the log already":  {finding.Finding{Code: code.Crashed, Severity: finding.Error, Cause: "last lines: panic: nil map", Subject: finding.Subject{Object: "Pod/ns/p"}}, "", "panic"},
		"what no process is to blame for":      {finding.Finding{Code: code.NotSucceeded, Subject: finding.Subject{Object: "ClusterServiceVersion/ns/x"}}, "", ""},
		"a restart, which is only a warning":   {finding.Finding{Code: code.Restarted, Severity: finding.Warning}, "once: panic: nil map", ""},
		"what has nothing to do with any log.": {finding.Finding{Code: code.FieldLost, Subject: finding.Subject{Object: "Redis/default/sample"}}, "", ""},
	} {
		findings := []finding.Finding{test.f}
		told := QuoteErrors(findings, []managerlog.Group{panicked, forbidden, plain})
		if got := strings.TrimPrefix(findings[0].Cause, test.f.Cause); (got != "") != (test.quoted != "") || !strings.Contains(got, test.quoted) {
			t.Errorf("%s: cause %q", name, findings[0].Cause)
		}
		if test.told == "" && len(told) > 0 || test.told != "" && !told[test.told] {
			t.Errorf("%s: told %v", name, told)
		}
	}
}

func TestJudgeGroups(t *testing.T) {
	old := managerlog.Group{Key: "old", Message: "Reconciler error", Error: "boom", Excerpt: "Reconciler error: boom", Count: 3}
	panicked := managerlog.Group{Key: "new", Panic: true, Message: "Observed a panic", Excerpt: "Observed a panic: nil", Count: 2, First: time.Unix(0, 0), Last: time.Unix(3, 0)}
	groups := []managerlog.Group{panicked, old, {Key: "soon over", Count: 1}}
	got := Groups("tea.v2", "ClusterServiceVersion/tea.v2", groups, []managerlog.Group{old}, map[string]bool{"old": true}, nil)
	if len(got) != 2 || got[0].Code != code.Panics || got[0].Severity != finding.Error || !strings.Contains(got[0].Message, "(2 times in 3.0s)") ||
		got[1].Code != code.LogErrors || got[1].Severity != finding.Info {
		t.Errorf("%+v", got)
	}
	got = Groups("tea.v2", "ClusterServiceVersion/tea.v2", groups, []managerlog.Group{old}, map[string]bool{"new": true}, nil)
	if len(got) != 2 || got[0].Severity != finding.Warning || got[1].Severity != finding.Warning {
		t.Errorf("the other way round: %+v", got)
	}
	if got := Groups("tea.v2", "ClusterServiceVersion/tea.v2", groups, []managerlog.Group{old}, nil, map[string]bool{"old": true, "new": true}); len(got) > 0 {
		t.Errorf("what is told already: %+v", got)
	}
}

// What an operator does less while what it made does not answer it is no error; what it does wrong by itself stays one.
func TestNotAnswered(t *testing.T) {
	all := func() []finding.Finding {
		return []finding.Finding{code.Finding(code.HotLoop, "Thing/n/a", "it writes"), code.Finding(code.DoesLess, "Thing/n/a", "less"), code.Finding(code.DataLost, "Thing/n/a", "gone")}
	}
	hot := func(findings []finding.Finding) []finding.Finding {
		findings[0].Severity = finding.Error
		return findings
	}
	answered, not := hot(all()), hot(all())
	NotAnswered(answered, nil)
	if diff := cmp.Diff(hot(all()), answered); diff != "" {
		t.Errorf("nothing was called: %s", diff)
	}
	NotAnswered(not, []string{"Service/n/a"})
	want := []string{
		"warning U508 Thing/n/a: it writes; not verified: the operator calls Service/n/a, which cannot answer on this cluster",
		"warning U514 Thing/n/a: less; not verified: the operator calls Service/n/a, which cannot answer on this cluster",
		"error U515 Thing/n/a: gone; ",
	}
	for i, f := range not {
		if got := fmt.Sprintf("%s %s %s: %s; %s", f.Severity, f.Code, f.Subject.Object, f.Message, f.Cause); got != want[i] {
			t.Errorf("%s, want %s", got, want[i])
		}
	}
}
