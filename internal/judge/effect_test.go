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
	if e := EffectOf("Pot/n/a", "spec.size", state(1, 1), state(1, 1)); e.Status || len(e.Workloads) != 0 {
		t.Errorf("of nothing it saw %+v", e)
	}
}

// TestEffectLacks asks of a release what the one before did about the same change, not how.
func TestEffectLacks(t *testing.T) {
	scaled := map[string][]string{"StatefulSet/n/a": {ReplicasField, "spec.template.metadata.annotations.hash"}}
	was := Effect{Change: "spec.size", Status: true, Workloads: scaled}
	there := map[string]observe.Operand{"StatefulSet/n/a": {}}
	for _, test := range []struct {
		name  string
		was   Effect
		now   Effect
		there map[string]observe.Operand
		want  string
	}{
		{"the same", was, was, there, ""},
		{"the template otherwise", was, Effect{"spec.size", true, map[string][]string{"StatefulSet/n/a": {ReplicasField}}}, there, ""},
		{"another change", was, Effect{Change: "spec.servers"}, there, ""},
		{"an annotation", Effect{"metadata.annotations.a", true, scaled}, Effect{Change: "metadata.annotations.a"}, there, ""},
		{"no replicas", was, Effect{"spec.size", true, map[string][]string{"StatefulSet/n/a": {"spec.template.spec"}}}, there,
			"it does not change spec.replicas, spec.template.metadata.annotations.hash of StatefulSet/n/a any more"},
		{"no status", was, Effect{"spec.size", false, scaled}, there, "it does not change the object's status any more"},
		{"one made in its place", was, Effect{"spec.size", true, map[string][]string{"StatefulSet/n/a-2": {ReplicasField}}}, there,
			"it does not change StatefulSet/n/a any more, and leaves it behind: StatefulSet/n/a-2 changes in its place"},
		{"one in place of what is gone", was, Effect{"spec.size", true, map[string][]string{"StatefulSet/n/a-2": {ReplicasField}}}, nil, ""},
		{"another kind in its place", was, Effect{"spec.size", true, map[string][]string{"Deployment/n/a": {ReplicasField}}}, there,
			"it does not change spec.replicas, spec.template.metadata.annotations.hash of StatefulSet/n/a any more"},
		{"another kind in place of what is gone", was, Effect{"spec.size", true, map[string][]string{"Deployment/n/a": {ReplicasField}}}, nil, ""},
		{"another kind that does not count, in place of what is gone", was, Effect{"spec.size", true, map[string][]string{"Deployment/n/a": {"spec.template.spec"}}}, nil,
			"it does not change spec.replicas, spec.template.metadata.annotations.hash of StatefulSet/n/a any more"},
		{"nothing was known", Effect{}, Effect{Change: "spec.size"}, there, ""},
	} {
		if got := strings.Join(test.was.Lacks(test.now, test.there), "; "); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
