package upgrade

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
)

func TestFaultsAreSound(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Faults(v0) {
		switch {
		case seen[f.Name]:
			t.Errorf("there are two faults %s", f.Name)
		case f.Doc == "", f.inject == nil, f.Expect == "" || f.Expect == Broken:
			t.Errorf("fault %s is not whole", f.Name)
		}
		seen[f.Name] = true
		if _, err := ParseInjections(v0, f.Name+"@"+f.Phase); err != nil {
			t.Error(err)
		}
		for _, code := range f.Harms {
			if find(code, "", "").Severity == finding.Error {
				t.Errorf("fault %s explains the error %s", f.Name, code)
			}
		}
	}
	// Each phase but the first is a milestone of a hop that goes well.
	at := time.Unix(100, 0)
	var names []string
	for _, m := range milestones(v0.Milestones("a", "b"), wholeHop(at), at) {
		names = append(names, slug(m.Name))
	}
	if diff := cmp.Diff(Phases(v0)[1:], names[:len(names)-1]); diff != "" {
		t.Errorf("phases and milestones differ: %s", diff)
	}
}

// wholeHop is what happens in a hop from a to b.
func wholeHop(at time.Time) []event {
	list := []event{
		{Kind: "CatalogSource", State: stateReady},
		{Kind: "InstallPlan", For: "b", State: "Installing"},
		{Kind: "ClusterServiceVersion", Name: "b", State: ""},
		{Kind: kindCRD, State: "written"},
		{Kind: "InstallPlan", For: "b", State: "Complete"},
		{Kind: "ClusterServiceVersion", Name: "b", State: "InstallReady"},
		{Kind: "ClusterServiceVersion", Name: "b", State: "Installing"},
		{Kind: "ClusterServiceVersion", Name: "b", State: "Succeeded"},
		{Kind: "ClusterServiceVersion", Name: "a", State: stateGone},
		{Kind: kindWalk, State: stateStable},
	}
	for i := range list {
		list[i].At = at.Add(time.Duration(i) * time.Second)
	}
	return list
}

func TestParseInjections(t *testing.T) {
	for _, test := range []struct{ in, want, err string }{
		{"kill-operator", "kill-operator@installing", ""},
		{"kill-operator@crds-written", "kill-operator@crds-written", ""},
		{"kill-operator@crds-written, catalog-down", "kill-operator@crds-written catalog-down@catalog-noticed", ""},
		{"hostile@before", "hostile@before", ""},
		{"hostile@installing", "", "the fault hostile is injected at before only, not at installing"},
		{"kill-everybody", "", `there is no fault "kill-everybody"; there are kill-operator, forbidden`},
		{"kill-operator@lunch", "", `there is no phase "lunch"; there are before, catalog-noticed`},
		{"", "", `there is no fault ""`},
	} {
		list, err := ParseInjections(v0, test.in)
		var got []string
		for _, i := range list {
			got = append(got, i.String())
		}
		if strings.Join(got, " ") != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: %q, %v; want %q, %q", test.in, got, err, test.want, test.err)
		}
	}
}

// in returns a fault that was made 10 s after at and undone 3 s later.
func in(t *testing.T, name string, at time.Time) *faultResult {
	t.Helper()
	list, err := ParseInjections(v0, name)
	if err != nil {
		t.Fatal(err)
	}
	return &faultResult{Injection: list[0], Start: at.Add(10 * time.Second), End: at.Add(13 * time.Second)}
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
		if got := causedBy([]*faultResult{s}, codeWriteOutage, at.Add(test.start), at.Add(test.start+time.Second), test.first) == s; got != test.want {
			t.Errorf("%s: blamed on the fault: %v", test.name, got)
		}
	}
}

// TestLikeliestFault asks which of several faults of a hop brought an outage about.
func TestLikeliestFault(t *testing.T) {
	at := time.Unix(100, 0)
	first, second, survived := in(t, "kill-operator", at), in(t, "kill-etcd", at.Add(5*time.Second)), in(t, "kill-olm-operator", at.Add(6*time.Second))
	for after, want := range map[time.Duration]*faultResult{12 * time.Second: first, 17 * time.Second: second, 35 * time.Second: second, 39 * time.Second: survived} {
		if got := causedBy([]*faultResult{first, second, survived}, codeWriteOutage, at.Add(after), at.Add(after), ""); got != want {
			t.Errorf("after %s: %v, want %v", after, got, want)
		}
	}
}

func TestJudgeFaults(t *testing.T) {
	at := time.Unix(100, 0)
	lost := find(codeFieldLost, "Thing/a", "a field is gone")
	outage := find(codeWriteOutage, "things", "no write")
	restarted := find(codeRestarted, "Pod/a", "restarted")
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
		{name: "an outage that it must not bring about", fault: "kill-olm-operator", findings: []finding.Finding{outage}, want: "degraded", result: report.Failed, codes: []string{codeFaultBroke}},
		{name: "something was lost", fault: "kill-operator", findings: []finding.Finding{lost}, want: "broken", result: report.Failed, codes: []string{codeFaultBroke}},
		{name: "what is lost without it too", fault: "kill-operator", known: codeFieldLost, findings: []finding.Finding{lost}, want: "survived", result: report.Passed},
		{name: "held up", fault: "not-upgradeable", held: true, want: "blocked", result: report.Passed},
		{name: "not held up", fault: "not-upgradeable", want: "survived", result: report.Failed, codes: []string{codeFaultIgnored}},
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
			told, judged := judgeFaults([]*faultResult{s}, attributeToFaults(findings, []*faultResult{s}), map[string]bool{test.known: true}, at)
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
