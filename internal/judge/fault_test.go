package judge

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
)

// in returns a fault that was made 10 s after at and undone 3 s later.
func in(t *testing.T, name string, at time.Time) *fault.Result {
	t.Helper()
	list, err := fault.ParseInjections(v0, name)
	if err != nil {
		t.Fatal(err)
	}
	return &fault.Result{Injection: list[0], Start: at.Add(10 * time.Second), End: at.Add(13 * time.Second)}
}

// TestHarmOfAFaultIsNotTheOperators tells the outages that a fault brought about from those that would be there without it.
func TestHarmOfAFaultIsNotTheOperators(t *testing.T) {
	at := time.Unix(100, 0)
	const refused = `conversion webhook for x failed: connect: connection refused`
	const untrusted = `conversion webhook for x failed: x509: certificate signed by unknown authority`
	for _, test := range []struct {
		name, fault, first string
		start              time.Duration // of what lasts a second until it fails
		want               bool
	}{
		{"in force", "kill-operator", refused, 11 * time.Second, true},
		{"while the operator recovers", "kill-operator", refused, 20 * time.Second, true},
		{"before it", "kill-operator", refused, 5 * time.Second, false},
		{"under way when it was made", "kill-operator", refused, 9200 * time.Millisecond, true},
		{"long after it", "kill-operator", refused, 40 * time.Second, false},
		{"of OLM's own making", "kill-operator", untrusted, 11 * time.Second, false},
		{"a certificate's fault", "cert-expired", untrusted, 11 * time.Second, true},
		{"a fault that explains nothing", "catalog-down", refused, 11 * time.Second, false},
	} {
		s := in(t, test.fault, at)
		if got := causedBy([]*fault.Result{s}, code.WriteOutage, at.Add(test.start), at.Add(test.start+time.Second), test.first) == s; got != test.want {
			t.Errorf("%s: blamed on the fault: %v", test.name, got)
		}
	}
}

// TestLikeliestFault asks which of several faults of a hop brought an outage about.
func TestLikeliestFault(t *testing.T) {
	at := time.Unix(100, 0)
	first, second, survived := in(t, "kill-operator", at), in(t, "kill-etcd", at.Add(5*time.Second)), in(t, "two-hops", at.Add(6*time.Second))
	for after, want := range map[time.Duration]*fault.Result{12 * time.Second: first, 17 * time.Second: second, 35 * time.Second: second, 39 * time.Second: survived} {
		if got := causedBy([]*fault.Result{first, second, survived}, code.WriteOutage, at.Add(after), at.Add(after), ""); got != want {
			t.Errorf("after %s: %v, want %v", after, got, want)
		}
	}
}

// TestBlame: a machine that stands still is no harm of a fault that nobody is to notice.
func TestBlame(t *testing.T) {
	at := time.Unix(100, 0)
	for _, test := range []struct {
		fault string
		slow  bool
		want  bool
	}{{"kill-olm-operator", false, false}, {"two-hops", false, true}, {"two-hops", true, false}, {"kill-etcd", true, true}} {
		s := in(t, test.fault, at)
		o := outage{Operation: observe.Read, Start: at.Add(11 * time.Second), Failed: at.Add(12 * time.Second), Slow: test.slow}
		if got := blame([]*fault.Result{s}, o) == s; got != test.want {
			t.Errorf("%s, slow %v: blamed %v", test.fault, test.slow, got)
		}
	}
}

func TestJudgeFaults(t *testing.T) {
	at := time.Unix(100, 0)
	lost := code.Finding(code.FieldLost, "Thing/a", "a field is gone")
	outage := code.Finding(code.WriteOutage, "things", "no write")
	restarted := code.Finding(code.Restarted, "Pod/a", "restarted")
	for _, test := range []struct {
		name, fault string
		held        bool
		why         string
		known       string
		findings    []finding.Finding
		want        string
		result      report.Result
		codes       []string
	}{
		{name: "nothing was seen", fault: "kill-operator", want: "survived", result: report.Passed},
		{name: "a restart that nobody noticed", fault: "kill-operator", findings: []finding.Finding{restarted}, want: "survived", result: report.Passed},
		{name: "an outage that it may bring about", fault: "kill-operator", findings: []finding.Finding{outage}, want: "degraded", result: report.Passed},
		{name: "an outage that it must not bring about", fault: "kill-olm-operator", findings: []finding.Finding{outage}, want: "degraded", result: report.Failed, codes: []string{code.FaultBroke}},
		{name: "something was lost", fault: "kill-operator", findings: []finding.Finding{lost}, want: "broken", result: report.Failed, codes: []string{code.FaultBroke}},
		{name: "what is lost without it too", fault: "kill-operator", known: code.FieldLost, findings: []finding.Finding{lost}, want: "survived", result: report.Passed},
		{name: "held up", fault: "not-upgradeable", held: true, want: "blocked", result: report.Passed},
		{name: "not held up", fault: "not-upgradeable", want: "survived", result: report.Failed, codes: []string{code.FaultIgnored}},
		{name: "held up, and something was lost", fault: "not-upgradeable", held: true, findings: []finding.Finding{lost}, want: "broken", result: report.Failed, codes: []string{code.FaultBroke}},
		{name: "not made", fault: "cert-expired", why: "no webhook", want: "skipped", result: report.Passed},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := in(t, test.fault, at)
			s.Held, s.Why = test.held, test.why
			var findings []finding.Finding
			for _, f := range test.findings {
				if timed(f.Code) {
					f = attributeToFault(f, s)
				}
				findings = append(findings, f)
			}
			told, judged := Faults([]*fault.Result{s}, AttributeToFaults(findings, []*fault.Result{s}), map[string]bool{test.known: true}, at)
			if told[0].Outcome != test.want || told[0].Result != test.result {
				t.Errorf("%s, %s; want %s, %s", told[0].Outcome, told[0].Result, test.want, test.result)
			}
			var codes []string
			for _, f := range judged {
				codes = append(codes, f.Code)
			}
			if diff := cmp.Diff(test.codes, codes); diff != "" {
				t.Error(diff)
			}
		})
	}
}
