package judge

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/observe"
)

// TestEffectOf sees what of an object's own status and workloads changed, and nothing of others.
func TestEffectOf(t *testing.T) {
	type m = map[string]any
	state := func(replicas, ready int64) observe.Seen {
		return observe.Seen{Snapshot: observe.Snapshot{
			"Pot/n/a":         m{"status": m{"ready": ready}},
			"StatefulSet/n/a": m{"spec": m{"replicas": replicas}, "metadata": m{"generation": replicas}},
			"ConfigMap/n/a":   m{"data": m{"size": replicas}},
			"StatefulSet/n/b": m{"spec": m{"replicas": replicas}},
		}, Of: map[string]string{"Pot/n/a": "Pot/n/a", "StatefulSet/n/a": "Pot/n/a", "ConfigMap/n/a": "Pot/n/a", "StatefulSet/n/b": "Pot/n/b"}}
	}
	e := EffectOf("Pot/n/a", "spec.size", state(1, 1), state(2, 2))
	if !e.Status || len(e.Workloads) != 1 || strings.Join(e.Workloads["StatefulSet/n/a"], " ") != ReplicasField {
		t.Errorf("saw %+v", e)
	}
	if e.Scaled != 1 || e.Counts["status.ready"] != 1 {
		t.Errorf("counted %+v", e)
	}
	if e := EffectOf("Pot/n/a", "spec.size", state(1, 1), state(1, 1)); e.Status || len(e.Workloads) != 0 {
		t.Errorf("of nothing it saw %+v", e)
	}
}

// TestEffectOfScaled: the number of replicas of what Kubernetes scales is not what the operator did.
func TestEffectOfScaled(t *testing.T) {
	type m = map[string]any
	state := func(replicas int64, target string) observe.Seen {
		operands := map[string]observe.Operand{
			"Deployment/n/a":              {Kind: "Deployment", Namespace: "n", Name: "a", Of: "Pot/n/a"},
			"HorizontalPodAutoscaler/n/a": {Kind: "HorizontalPodAutoscaler", Namespace: "n", Name: "a", Of: "Pot/n/a", Content: m{"spec": m{"scaleTargetRef": m{"name": target}}}},
		}
		return observe.Seen{Snapshot: observe.Snapshot{"Deployment/n/a": m{"spec": m{"replicas": replicas}}}, Of: map[string]string{"Deployment/n/a": "Pot/n/a"}, Operands: operands}
	}
	for target, want := range map[string]int{"a": 0, "b": 1} {
		if e := EffectOf("Pot/n/a", "spec.max", state(1, target), state(2, target)); len(e.Workloads) != want {
			t.Errorf("scaled by the one of %s: %+v", target, e)
		}
	}
}

// TestEffectLacks asks of a release what the one before did about the same change, not how.
func TestEffectLacks(t *testing.T) {
	scaled := map[string][]string{"StatefulSet/n/a": {ReplicasField, "spec.template.metadata.annotations.hash"}}
	was := Effect{Change: "spec.size", Status: true, Workloads: scaled}
	there := map[string]observe.Operand{"StatefulSet/n/a": {}}
	counted := func(by int64) Effect {
		return Effect{Change: "spec.size", Status: true, Workloads: scaled, Scaled: 1, Counts: map[string]int64{"status.ready": by}}
	}
	for _, test := range []struct {
		name  string
		was   Effect
		now   Effect
		there map[string]observe.Operand
		want  string
	}{
		{"the same", was, was, there, ""},
		{"the template otherwise", was, Effect{Change: "spec.size", Status: true, Workloads: map[string][]string{"StatefulSet/n/a": {ReplicasField}}}, there, ""},
		{"another change", was, Effect{Change: "spec.servers"}, there, ""},
		{"an annotation", Effect{Change: "metadata.annotations.a", Status: true, Workloads: scaled}, Effect{Change: "metadata.annotations.a"}, there, ""},
		{"no replicas", was, Effect{Change: "spec.size", Status: true, Workloads: map[string][]string{"StatefulSet/n/a": {"spec.template.spec"}}}, there,
			"it does not change spec.replicas, spec.template.metadata.annotations.hash of StatefulSet/n/a any more"},
		{"no status", was, Effect{Change: "spec.size", Status: false, Workloads: scaled}, there, "it does not change the object's status any more"},
		{"one made in its place", was, Effect{Change: "spec.size", Status: true, Workloads: map[string][]string{"StatefulSet/n/a-2": {ReplicasField}}}, there,
			"it does not change StatefulSet/n/a any more, and leaves it behind: StatefulSet/n/a-2 changes in its place"},
		{"one in place of what is gone", was, Effect{Change: "spec.size", Status: true, Workloads: map[string][]string{"StatefulSet/n/a-2": {ReplicasField}}}, nil, ""},
		{"another kind in its place", was, Effect{Change: "spec.size", Status: true, Workloads: map[string][]string{"Deployment/n/a": {ReplicasField}}}, there,
			"it does not change spec.replicas, spec.template.metadata.annotations.hash of StatefulSet/n/a any more"},
		{"another kind in place of what is gone", was, Effect{Change: "spec.size", Status: true, Workloads: map[string][]string{"Deployment/n/a": {ReplicasField}}}, nil, ""},
		{"another kind that does not count, in place of what is gone", was, Effect{Change: "spec.size", Status: true, Workloads: map[string][]string{"Deployment/n/a": {"spec.template.spec"}}}, nil,
			"it does not change spec.replicas, spec.template.metadata.annotations.hash of StatefulSet/n/a any more"},
		{"a number of the status", counted(1), counted(0), there, "it does not change status.ready of the object any more"},
		{"a number of the status while pods start", counted(1), counted(0), map[string]observe.Operand{"StatefulSet/n/a": {Unready: "1 of 2 replicas are ready"}}, ""},
		{"a number of the status by more", counted(1), counted(2), there, ""},
		{"a number that the status has no more", counted(1), Effect{Change: "spec.size", Status: true, Workloads: scaled, Scaled: 1}, there, ""},
		{"a number of something else", counted(7), counted(0), there, ""},
		{"nothing was known", Effect{}, Effect{Change: "spec.size"}, there, ""},
	} {
		if got := strings.Join(test.was.Lacks(test.now, test.there), "; "); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
