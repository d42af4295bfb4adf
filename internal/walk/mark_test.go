package walk

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/olmkit/olmkit/internal/observe"
)

// TestMarks: an annotation stays or is taken away, also if it comes back later; what is made anew tells nothing, nor what belongs to another operand.
func TestMarks(t *testing.T) {
	made := map[string]observe.Operand{}
	var there []runtime.Object
	for _, name := range []string{"stays", "loses", "anew", "gone"} {
		o := observe.Operand{Kind: "ConfigMap", Namespace: "n", Name: name, UID: types.UID(name), Direct: name != "gone"}
		made[o.String()] = o
		there = append(there, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "n", "name": name, "uid": name}}})
	}
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), there...)
	w := &walk{Cluster: &observe.Cluster{Dynamic: client}}
	o := &newObject{Object: &observe.Object{Name: "tea-new1"}}
	if err := w.markNew(t.Context(), o, made); err != nil || len(o.marked) != 3 {
		t.Fatal(err, o.marked)
	}
	resource := client.Resource(observe.OperandResource("ConfigMap")).Namespace("n")
	change := func(name string, path []string, value any) {
		t.Helper()
		if err := mergePatch(t.Context(), resource, name, patchOf(path, value)); err != nil {
			t.Fatal(err)
		}
	}
	kept := map[string]bool{}
	note := func() {
		t.Helper()
		if err := w.noteMarks(t.Context(), o, kept); err != nil {
			t.Fatal(err)
		}
	}
	change("loses", mark, nil)
	change("anew", []string{"metadata", "uid"}, "another")
	note()
	change("loses", mark, "1")
	note()
	if want := map[string]bool{"ConfigMap stays": true, "ConfigMap loses": false}; !maps.Equal(kept, want) {
		t.Errorf("%v, want %v", kept, want)
	}
}
