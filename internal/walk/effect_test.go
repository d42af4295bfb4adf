package walk

import (
	"testing"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

// TestJudgeEffects tells each object whose release does less, once, and remembers what was seen for the next release.
func TestJudgeEffects(t *testing.T) {
	w := &walk{Cluster: &observe.Cluster{}, memory: memory{effects: map[string]map[string]judge.Effect{}}}
	scaled := judge.Effect{Change: "spec.size", Status: true, Workloads: map[string][]string{"StatefulSet/n/a": {judge.ReplicasField}}}
	idle := judge.Effect{Change: "spec.size", Workloads: map[string][]string{}}
	there := map[string]observe.Operand{"StatefulSet/n/a": {}}
	expect.Findings(t, w.judgeEffects("v1", "v1", map[string]judge.Effect{"Pot/n/a": scaled}, there))
	expect.Findings(t, w.judgeEffects("v1", "v2", map[string]judge.Effect{"Pot/n/a": idle}, there),
		"error U514 Pot/n/a: v2 does less for it than v1: within 30s of a change of its spec.size "+
			"it does not change spec.replicas of StatefulSet/n/a any more; it does not change the object's status any more")
	expect.Findings(t, w.judgeEffects("v2", "v3", map[string]judge.Effect{"Pot/n/a": idle}, there))
	expect.Findings(t, w.judgeEffects("v1", "v1", map[string]judge.Effect{"Pot/n/a": idle}, there))
	expect.Findings(t, w.judgeEffects("v1", "v3", map[string]judge.Effect{"Pot/n/a": scaled}, there))
}

// TestJudgeDrift tells a workload that only the release before corrected, also when the release was measured earlier.
func TestJudgeDrift(t *testing.T) {
	corrected, left := map[string]bool{"StatefulSet/n/a": true}, map[string]bool{"StatefulSet/n/a": false}
	w := &walk{memory: memory{reverts: map[string]map[string]bool{"v1": corrected, "v2": left, "v3": left}}}
	for _, test := range []struct {
		from, to string
		want     []string
	}{
		{"v1", "v2", []string{"error U512 StatefulSet/n/a: somebody else changed its spec.replicas, and v2 did not correct it within 30s; v1 did"}},
		{"v2", "v3", nil},
		{"v2", "v1", nil},
		{"v0", "v2", nil},
	} {
		found, err := w.judgeDrift(t.Context(), test.from, &lifecycle.Release{Name: test.to}, nil)
		if err != nil {
			t.Fatal(err)
		}
		expect.Findings(t, found, test.want...)
	}
	drifted := code.Finding(code.DriftStays, "StatefulSet/n/a", "left")
	if kept := judge.WithoutConsequences([]finding.Finding{drifted, code.Finding(code.OperandChanged, "", "")}); len(kept) != 2 {
		t.Errorf("beside a warning %d are kept", len(kept))
	}
	if kept := judge.WithoutConsequences([]finding.Finding{drifted, code.Finding(code.Forbidden, "", ""), code.Finding(code.DoesLess, "", "")}); len(kept) != 1 {
		t.Errorf("beside its cause %d are kept", len(kept))
	}
	if kept := judge.WithoutConsequences([]finding.Finding{drifted, code.Finding(code.DoesLess, "", "")}); len(kept) != 1 || kept[0].Code != code.DoesLess {
		t.Errorf("beside what the operator does less %v are kept", kept)
	}
	other := code.Finding(code.NewIgnored, "Other/n/a", "")
	if kept := judge.WithoutConsequences([]finding.Finding{other, code.Finding(code.DoesLess, "Thing/n/a", "")}); len(kept) != 2 {
		t.Errorf("beside what it does less for another kind %v are kept", kept)
	}
	if kept := judge.WithoutConsequences([]finding.Finding{other, code.Finding(code.DoesLess, "Other/n/b", "")}); len(kept) != 1 {
		t.Errorf("beside what it does less for the kind %v are kept", kept)
	}
	late, stays := code.Finding(code.StatusStale, "", "late"), code.Finding(code.StatusStale, "", "stays")
	stays.Severity = finding.Error
	if kept := judge.WithoutConsequences([]finding.Finding{late, stays, code.Finding(code.Forbidden, "", "")}); len(kept) != 2 || kept[0].Message != "late" {
		t.Errorf("beside a status that may not be written %v are kept", kept)
	}
	if kept := judge.WithoutConsequences([]finding.Finding{stays}); len(kept) != 1 {
		t.Errorf("alone %v are kept", kept)
	}
}
