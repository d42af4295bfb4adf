package walk

import (
	"slices"
	"testing"

	"github.com/olmkit/olmkit/internal/observe"
)

// What was written is known by its generation, or by its version where it has none; what others write, as the status of a claim, does not count.
func TestMoved(t *testing.T) {
	operands := func(generation int64, version string) map[string]observe.Operand {
		all := map[string]observe.Operand{}
		for _, kind := range []string{"Deployment", "ConfigMap", "PersistentVolumeClaim", "ReplicaSet"} {
			o := observe.Operand{Kind: kind, Namespace: "n", Name: "a", Direct: kind != "ReplicaSet", ResourceVersion: version}
			if kind == "Deployment" || kind == "ReplicaSet" {
				o.Marks = map[string]any{"generation": generation}
			}
			all[o.String()] = o
		}
		return all
	}
	before := writes(operands(1, "1"))
	for _, c := range []struct {
		generation int64
		version    string
		want       []string
	}{
		{1, "1", nil}, {1, "2", []string{"ConfigMap"}}, {2, "1", []string{"Deployment"}}, {2, "2", []string{"ConfigMap", "Deployment"}},
	} {
		if got := moved(before, writes(operands(c.generation, c.version))); !slices.Equal(got, c.want) {
			t.Errorf("generation %d, version %s: %q", c.generation, c.version, got)
		}
	}
	if got := moved(nil, before); !slices.Equal(got, []string{"ConfigMap", "Deployment"}) {
		t.Errorf("of all there is: %q", got)
	}
	if got := moved(before, nil); !slices.Equal(got, []string{"ConfigMap", "Deployment"}) {
		t.Errorf("of what is gone: %q", got)
	}
}

// What runs for a copy is the same as for another one, but for their names.
func TestProgramsOf(t *testing.T) {
	type m = map[string]any
	templates := func(name, image string) map[string]string {
		o := &newObject{Object: &observe.Object{Name: name}, like: &observe.Object{Name: "a-v1", Sample: "a"}}
		template := m{"metadata": m{"annotations": m{"hash": name}}, "spec": m{"volumes": []any{m{"name": name}}, "containers": []any{m{"name": "c", "image": image, "args": []any{"/etc/" + name}}}}}
		operands := map[string]observe.Operand{}
		for _, made := range []observe.Operand{
			{Kind: "Deployment", Name: name, Direct: true, Content: m{"spec": m{"template": template}}},
			{Kind: "CronJob", Name: name, Direct: true, Content: m{"spec": m{"jobTemplate": m{"spec": m{"template": template}}}}},
			{Kind: "ReplicaSet", Name: name, Content: m{"spec": m{"template": template}}}, {Kind: "Service", Name: name, Direct: true},
		} {
			operands[made.String()] = made
		}
		return programsOf(o, operands)
	}
	one, two, other := templates("a-new1", "i:1"), templates("a-new2", "i:1"), templates("a-new3", "i:2")
	if len(one) != 2 || one["Deployment"] != two["Deployment"] || one["CronJob"] != two["CronJob"] || one["Deployment"] == other["Deployment"] {
		t.Errorf("%q\n%q\n%q", one, two, other)
	}
}
