package walk

import (
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// TestOfTheirOwn: only what is known to leave traces that nothing else leaves is changed beside others.
func TestOfTheirOwn(t *testing.T) {
	was := judge.New{
		Follows: map[string]int{"spec.once": 1},
		Moves:   map[string][]string{"spec.untraced": {"Deployment", "Secret"}, "spec.size": {"Deployment"}},
		Traces: map[string][]string{
			"spec.size": {"Deployment args[0]"}, "spec.log": {"Deployment args[1]"}, "spec.tls": {"Deployment args[0]", "Service port"},
			"spec.all": {"Deployment args"}, "spec.once": {"Service port"}, "spec.untraced": {"Deployment args[2]"},
			"spec.host": {"Ingress "}, "spec.host (leaving that out)": {"ConfigMap data.host"},
		},
	}
	var steps []step
	for _, path := range []string{"spec.size", "spec.log", "spec.tls", "spec.all", "spec.once", "spec.untraced", "spec.none", "spec.host", "spec.host (leaving that out)"} {
		steps = append(steps, step{Path: path})
		if path != "spec.once" {
			was.Follows[path] = judge.Surely
		}
	}
	paths := func(steps []step) (paths []string) {
		for _, s := range steps {
			paths = append(paths, s.Path)
		}
		return paths
	}
	together, alone := ofTheirOwn(steps, was)
	if got, want := paths(together), []string{"spec.size", "spec.log", "spec.host"}; !slices.Equal(got, want) {
		t.Errorf("together %q, want %q", got, want)
	}
	if got, want := paths(alone), []string{"spec.tls", "spec.all", "spec.once", "spec.untraced", "spec.none", "spec.host (leaving that out)"}; !slices.Equal(got, want) {
		t.Errorf("alone %q, want %q", got, want)
	}
}

// TestOneWorkloadRolls: that its pods are replaced is seen of one workload at a time.
func TestOneWorkloadRolls(t *testing.T) {
	was := judge.New{Follows: map[string]int{}, Rolls: map[string]bool{"a": true, "b": true, "c": true}, Traces: map[string][]string{
		"a": {"Deployment x"}, "b": {"StatefulSet x"}, "c": {"Deployment y", "ConfigMap x"}, "d": {"StatefulSet y"},
	}}
	var steps []step
	for _, path := range []string{"a", "b", "c", "d"} {
		steps, was.Follows[path] = append(steps, step{Path: path}), judge.Surely
	}
	together, alone := ofTheirOwn(steps, was)
	if len(together) != 3 || len(alone) != 1 || alone[0].Path != "b" {
		t.Errorf("together %v, alone %v", together, alone)
	}
}

// TestSuspected: what comes late is seen once the next step was made.
func TestSuspected(t *testing.T) {
	steps := []step{{Path: "a"}, {Path: "b"}, {Path: "c"}, {Path: "d"}}
	for fine, want := range []string{"a", "a b", "b c", "c d", "a b c d"} {
		suspects, others := suspected(steps, fine)
		var got []string
		for _, s := range suspects {
			got = append(got, s.Path)
		}
		if strings.Join(got, " ") != want || len(suspects)+len(others) != len(steps) {
			t.Errorf("%d fine: suspects %v, others %v", fine, suspects, others)
		}
	}
}

func TestMerged(t *testing.T) {
	there, back, err := merged([]step{stepOf([]string{"spec", "a"}, 2, 1), stepOf([]string{"spec", "b"}, nil, "x"), stepOf([]string{"spec", "c", "d"}, true, nil)})
	if want := `{"spec":{"a":2,"b":null,"c":{"d":true}}}`; err != nil || string(there) != want {
		t.Errorf("there: %s, %v, want %s", there, err, want)
	}
	if want := `{"spec":{"a":1,"b":"x","c":{"d":null}}}`; string(back) != want {
		t.Errorf("back: %s, want %s", back, want)
	}
}

// TestTraceOfScaled: how many replicas an autoscaler has there be is neither traced nor a write; all else of the workload is.
func TestTraceOfScaled(t *testing.T) {
	o := &newObject{Object: &observe.Object{Name: "tea"}}
	operands := func(generation, replicas int64, image string) map[string]observe.Operand {
		d := observe.Operand{Kind: "Deployment", Namespace: "n", Name: "tea", Direct: true, Marks: map[string]any{"generation": generation},
			Content: map[string]any{"spec": map[string]any{"replicas": replicas, "image": image}}}
		h := observe.Operand{Kind: "HorizontalPodAutoscaler", Namespace: "n", Name: "tea", Direct: true,
			Content: map[string]any{"spec": map[string]any{"scaleTargetRef": map[string]any{"kind": "Deployment", "name": "tea"}}}}
		return map[string]observe.Operand{d.String(): d, h.String(): h}
	}
	before := operands(1, 1, "x")
	for _, c := range []struct {
		after map[string]observe.Operand
		trace []string
		moved []string
	}{
		{operands(2, 2, "x"), nil, nil},
		{operands(2, 1, "y"), []string{"Deployment spec.image"}, []string{"Deployment"}},
	} {
		if got := o.trace(before, c.after); !slices.Equal(got, c.trace) {
			t.Errorf("%q, want %q", got, c.trace)
		}
		if got := moved(writes(before), writes(c.after)); !slices.Equal(got, c.moved) {
			t.Errorf("%q, want %q", got, c.moved)
		}
	}
}

// TestTrace: each value that is another, added or gone is named, whatever the copy is called.
func TestTrace(t *testing.T) {
	made := func(kind, name string, generation int64, content map[string]any) observe.Operand {
		return observe.Operand{Kind: kind, Namespace: "n", Name: name, Direct: true, Content: content, Marks: map[string]any{"generation": generation}}
	}
	args := func(args ...any) map[string]any { return map[string]any{"spec": map[string]any{"args": args}} }
	operands := func(list ...observe.Operand) map[string]observe.Operand {
		all := map[string]observe.Operand{}
		for _, o := range list {
			all[o.String()] = o
		}
		return all
	}
	before := operands(made("Deployment", "tea", 1, args("x", "y")), made("ConfigMap", "tea-conf", 0, map[string]any{"data": map[string]any{"tea-1": "x"}}), made("StatefulSet", "tea", 1, args()))
	pod := made(observe.KindPod, "tea-1", 2, args("z"))
	after := operands(made("Deployment", "tea", 2, args("x", "z", "!")), made("Service", "tea", 0, map[string]any{"spec": map[string]any{"port": int64(1)}}), made("StatefulSet", "tea", 2, args()), pod)
	o := &newObject{Object: &observe.Object{Name: "tea"}}
	want := []string{"ConfigMap …-conf data.…-1", "Deployment spec.args[1]", "Deployment spec.args[2]", "Service spec.port", "StatefulSet "}
	if got := o.trace(before, after); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
