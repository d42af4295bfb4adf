package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/finding"
)

// found are findings of the given codes: those from E are errors, others warnings.
func found(codes ...string) []finding.Finding {
	var list []finding.Finding
	for _, c := range codes {
		f := finding.Finding{Code: c, Severity: finding.Warning}
		if c[0] == 'E' {
			f.Severity = finding.Error
		}
		list = append(list, f)
	}
	return list
}

// suppress suppresses findings of E1, and makes errors of W1.
func suppress(findings []finding.Finding) {
	for i := range findings {
		switch f := &findings[i]; f.Code {
		case "E1":
			f.Suppressed = &finding.Suppression{Reason: "known"}
		case "W1":
			f.Severity = finding.Error
		}
	}
}

func TestRegrade(t *testing.T) {
	t.Parallel()
	hop := func(result Result, codes ...string) *Report {
		return &Report{Hops: []Hop{{From: "a", To: "b", Result: result, Findings: found(codes...)}}}
	}
	for name, test := range map[string]struct {
		r    *Report
		want []Result // of installations, hops and ways back
	}{
		"suppressed":            {hop(Failed, "E1", "W2"), []Result{Passed}},
		"another error":         {hop(Failed, "E1", "E2"), []Result{Failed}},
		"a new error":           {hop(Passed, "W1"), []Result{Failed}},
		"failed without errors": {hop(Failed, "W2"), []Result{Failed}},
		"not walked":            {hop(Skipped, "E1"), []Result{Skipped}},
		"passed":                {hop(Passed), []Result{Passed}},
		"rollback": {&Report{Hops: []Hop{{
			Result: Failed, Findings: found("E1"), Rollback: &Rollback{Result: Failed, Findings: found("E1")},
		}}}, []Result{Passed, Passed}},
		"rollback that failed": {&Report{Hops: []Hop{{
			Result: Failed, Findings: found("E1"), Rollback: &Rollback{Result: Failed, Findings: found("E2")},
		}}}, []Result{Failed, Failed}},
		"installation": {&Report{Installations: []Installation{
			{Name: "a", Result: Failed, Findings: found("E1")}, {Name: "b", Result: Passed, Findings: found("W1")}, {Name: "c", Result: Failed},
		}}, []Result{Passed, Failed, Failed}},
		"installation told before": {&Report{
			Installations: []Installation{{Name: "a", Result: Failed, Findings: found("E1")}, {Name: "a", Result: Failed, Findings: found("W2")}},
			Hops:          []Hop{{From: "a", Result: Failed, Findings: found("E2")}},
		}, []Result{Passed, Passed, Failed}},
		"installation that its hop tells": {&Report{
			Installations: []Installation{{Name: "a", Result: Failed}, {Name: "b", Result: Failed}},
			Hops:          []Hop{{From: "a", Result: Failed, Findings: found("E1")}, {From: "b", Result: Failed, Findings: found("E2")}},
		}, []Result{Passed, Failed, Passed, Failed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.r.Regrade(suppress)
			var got []Result
			for _, i := range test.r.Installations {
				got = append(got, i.Result)
			}
			for _, h := range test.r.Hops {
				got = append(got, h.Result)
				if h.Rollback != nil {
					got = append(got, h.Rollback.Result)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A merged report, which has a result already, fails for what its shards failed for, unless that was suppressed.
func TestRegradeReport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		r    *Report
		want Result
	}{
		"suppressed":            {&Report{Result: Failed, Findings: found("W2"), Hops: []Hop{{Findings: found("E1")}}}, Passed},
		"another error":         {&Report{Result: Failed, Findings: found("E1"), Hops: []Hop{{Findings: found("E2")}}}, Failed},
		"failed without errors": {&Report{Result: Failed, Findings: found("W2")}, Failed},
		"no result yet":         {&Report{Findings: found("E2")}, ""},
	} {
		if test.r.Regrade(suppress); test.r.Result != test.want {
			t.Errorf("%s: %s, not %s", name, test.r.Result, test.want)
		}
	}
}
