package upgrade

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/finding"
)

// TestEffectOf sees what of an object's own status and workloads changed, and nothing of others.
func TestEffectOf(t *testing.T) {
	type m = map[string]any
	state := func(replicas, ready int64) seen {
		return seen{snapshot: snapshot{
			"Pot/n/a":         m{"status": m{"ready": ready}},
			"StatefulSet/n/a": m{"spec": m{"replicas": replicas}, "metadata": m{"generation": replicas}},
			"ConfigMap/n/a":   m{"data": m{"size": replicas}},
			"StatefulSet/n/b": m{"spec": m{"replicas": replicas}},
		}, of: map[string]string{"Pot/n/a": "Pot/n/a", "StatefulSet/n/a": "Pot/n/a", "ConfigMap/n/a": "Pot/n/a", "StatefulSet/n/b": "Pot/n/b"}}
	}
	e := effectOf("Pot/n/a", "spec.size", state(1, 1), state(2, 2))
	if !e.Status || len(e.Workloads) != 1 || strings.Join(e.Workloads["StatefulSet/n/a"], " ") != replicasField {
		t.Errorf("saw %+v", e)
	}
	if e := effectOf("Pot/n/a", "spec.size", state(1, 1), state(1, 1)); e.Status || len(e.Workloads) != 0 {
		t.Errorf("of nothing it saw %+v", e)
	}
}

// TestEffectLacks asks of a release what the one before did about the same change, not how.
func TestEffectLacks(t *testing.T) {
	scaled := map[string][]string{"StatefulSet/n/a": {replicasField, "spec.template.metadata.annotations.hash"}}
	was := effect{Change: "spec.size", Status: true, Workloads: scaled}
	there := map[string]operand{"StatefulSet/n/a": {}}
	for _, test := range []struct {
		name  string
		was   effect
		now   effect
		there map[string]operand
		want  string
	}{
		{"the same", was, was, there, ""},
		{"the template otherwise", was, effect{"spec.size", true, map[string][]string{"StatefulSet/n/a": {replicasField}}}, there, ""},
		{"another change", was, effect{Change: "spec.servers"}, there, ""},
		{"an annotation", effect{"metadata.annotations.a", true, scaled}, effect{Change: "metadata.annotations.a"}, there, ""},
		{"no replicas", was, effect{"spec.size", true, map[string][]string{"StatefulSet/n/a": {"spec.template.spec"}}}, there,
			"it does not change spec.replicas, spec.template.metadata.annotations.hash of StatefulSet/n/a any more"},
		{"no status", was, effect{"spec.size", false, scaled}, there, "it does not change the object's status any more"},
		{"one made in its place", was, effect{"spec.size", true, map[string][]string{"StatefulSet/n/a-2": {replicasField}}}, there,
			"it does not change StatefulSet/n/a any more, and leaves it behind: StatefulSet/n/a-2 changes in its place"},
		{"one in place of what is gone", was, effect{"spec.size", true, map[string][]string{"StatefulSet/n/a-2": {replicasField}}}, nil, ""},
		{"another kind in its place", was, effect{"spec.size", true, map[string][]string{"Deployment/n/a": {replicasField}}}, there,
			"it does not change spec.replicas, spec.template.metadata.annotations.hash of StatefulSet/n/a any more"},
		{"nothing was known", effect{}, effect{Change: "spec.size"}, there, ""},
	} {
		if got := strings.Join(test.was.lacks(test.now, test.there), "; "); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestJudgeEffects tells each object whose release does less, once, and remembers what was seen for the next release.
func TestJudgeEffects(t *testing.T) {
	w := &walk{effects: map[string]map[string]effect{}}
	scaled := effect{"spec.size", true, map[string][]string{"StatefulSet/n/a": {replicasField}}}
	idle := effect{"spec.size", false, map[string][]string{}}
	there := map[string]operand{"StatefulSet/n/a": {}}
	expect(t, w.judgeEffects("v1", "v1", map[string]effect{"Pot/n/a": scaled}, there))
	expect(t, w.judgeEffects("v1", "v2", map[string]effect{"Pot/n/a": idle}, there),
		"error U514 Pot/n/a: v2 does less for it than v1: within 30s of a change of its spec.size "+
			"it does not change spec.replicas of StatefulSet/n/a any more; it does not change the object's status any more")
	expect(t, w.judgeEffects("v2", "v3", map[string]effect{"Pot/n/a": idle}, there))
	expect(t, w.judgeEffects("v1", "v1", map[string]effect{"Pot/n/a": idle}, there))
	expect(t, w.judgeEffects("v1", "v3", map[string]effect{"Pot/n/a": scaled}, there))
}

// TestJudgeDrift tells a workload that only the release before corrected, also when the release was measured earlier.
func TestJudgeDrift(t *testing.T) {
	corrected, left := map[string]bool{"StatefulSet/n/a": true}, map[string]bool{"StatefulSet/n/a": false}
	w := &walk{reverts: map[string]map[string]bool{"v1": corrected, "v2": left, "v3": left}}
	for _, test := range []struct {
		from, to string
		want     []string
	}{
		{"v1", "v2", []string{"error U512 StatefulSet/n/a: somebody else changed its spec.replicas, and v2 did not correct it within 30s; v1 did"}},
		{"v2", "v3", nil},
		{"v2", "v1", nil},
		{"v0", "v2", nil},
	} {
		found, err := w.judgeDrift(t.Context(), test.from, &release{Name: test.to}, nil)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, found, test.want...)
	}
	drifted := find(codeDriftStays, "StatefulSet/n/a", "left")
	if kept := withoutConsequences([]finding.Finding{drifted, find(codeOperandChanged, "", "")}); len(kept) != 2 {
		t.Errorf("beside a warning %d are kept", len(kept))
	}
	if kept := withoutConsequences([]finding.Finding{drifted, find(codeForbidden, "", ""), find(codeDoesLess, "", "")}); len(kept) != 1 {
		t.Errorf("beside its cause %d are kept", len(kept))
	}
	if kept := withoutConsequences([]finding.Finding{drifted, find(codeDoesLess, "", "")}); len(kept) != 1 || kept[0].Code != codeDoesLess {
		t.Errorf("beside what the operator does less %v are kept", kept)
	}
}
