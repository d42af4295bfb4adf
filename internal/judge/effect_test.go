package judge

import (
	"encoding/json"
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

// TestGrows: a status that says something for the first time, the time, or that a condition is met, may do so without a change of the spec.
func TestGrows(t *testing.T) {
	condition := func(status, reason string) string {
		return `{"conditions": [{"type": "Ready", "status": "` + status + `", "reason": "` + reason + `"}]}`
	}
	for name, c := range map[string]struct {
		before, now   string
		status, grows bool
	}{
		"the same":             {`{"a": 1}`, `{"a": 1}`, false, false},
		"another number":       {`{"a": 1}`, `{"a": 2}`, true, false},
		"the first":            {`{}`, `{"a": 1}`, true, true},
		"one more":             {`{"a": 1}`, `{"a": 1, "b": {"c": 1}}`, true, true},
		"one more and another": {`{"a": 1}`, `{"a": 2, "b": {"c": 1}}`, true, false},
		"one less":             {`{"a": 1, "b": 1}`, `{"a": 1}`, true, false},
		"another time":         {`{"a": "2026-01-01T00:00:00Z"}`, `{"a": "2026-01-01T00:00:05Z"}`, false, false},
		"becomes ready":        {condition("False", "NoTarget"), condition("True", "Ready"), true, true},
		"becomes unready":      {condition("True", "Ready"), condition("False", "NoTarget"), true, false},
		"another reason":       {condition("True", "OneOfOne"), condition("True", "TwoOfTwo"), true, false},
		"another list":         {`{"pods": ["a"]}`, `{"pods": ["a", "b"]}`, true, false},
	} {
		seen := func(status string) observe.Seen {
			var value map[string]any
			if err := json.Unmarshal([]byte(status), &value); err != nil {
				t.Fatal(err)
			}
			return observe.Seen{Snapshot: observe.Snapshot{"Pot/n/a": {"status": value}}}
		}
		if e := EffectOf("Pot/n/a", "spec.size", seen(c.before), seen(c.now)); e.Status != c.status || e.Grows != c.grows {
			t.Errorf("%s: %+v", name, e)
		}
	}
	grows, else_ := Effect{Status: true, Grows: true}, Effect{Status: true}
	for _, c := range []struct {
		a, b Effect
		want bool
	}{{grows, grows, true}, {grows, Effect{}, true}, {Effect{}, grows, true}, {grows, else_, false}, {else_, grows, false}} {
		if got := c.a.With(c.b); got.Grows != c.want || !got.Status {
			t.Errorf("%+v with %+v: %+v", c.a, c.b, got)
		}
	}
}

// TestEffectOfScaled: the number of replicas of what Kubernetes scales is not what the operator did.
func TestEffectOfScaled(t *testing.T) {
	type m = map[string]any
	state := func(replicas int64, target string) observe.Seen {
		operands := map[string]observe.Operand{
			"Deployment/n/a":              {Kind: "Deployment", Namespace: "n", Name: "a", Of: "Pot/n/a"},
			"HorizontalPodAutoscaler/n/a": {Kind: "HorizontalPodAutoscaler", Namespace: "n", Name: "a", Of: "Pot/n/a", Content: m{"spec": m{"scaleTargetRef": m{"kind": "Deployment", "name": target}}}},
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
		{"a status that said more", Effect{Change: "spec.size", Status: true, Grows: true, Workloads: scaled}, Effect{Change: "spec.size", Workloads: scaled}, there, ""},
		{"no status, of which it is known what changed", Effect{Change: "spec.size", Status: true, Tells: []string{"observedGeneration"}, Workloads: scaled}, Effect{Change: "spec.size", Workloads: scaled}, there,
			"it does not change the object's status any more (observedGeneration)"},
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
