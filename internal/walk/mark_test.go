package walk

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// TestMarks: an annotation and a label stay or are taken away; what is made anew tells nothing, nor what belongs to another operand or to others as well.
func TestMarks(t *testing.T) {
	made := map[string]observe.Operand{}
	var there []runtime.Object
	for _, name := range []string{"stays", "loses", "anew", "gone", "shared"} {
		o := observe.Operand{Kind: "ConfigMap", Namespace: "n", Name: name, UID: types.UID(name), Direct: name != "gone"}
		made[o.String()] = o
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "n", "name": name, "uid": name}}}
		if name == "shared" {
			object.SetOwnerReferences([]metav1.OwnerReference{{Name: "a", UID: "a"}, {Name: "b", UID: "b"}})
		}
		there = append(there, object)
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
	change("loses", mark, nil)
	change("stays", labelMark, nil)
	change("anew", []string{"metadata", "uid"}, "another")
	var is judge.New
	err := w.noteMarks(t.Context(), o, &is)
	if want := map[string]bool{"ConfigMap stays": true, "ConfigMap loses": false}; err != nil || !maps.Equal(is.Marks, want) {
		t.Errorf("annotations %v, want %v: %v", is.Marks, want, err)
	}
	if want := map[string]bool{"ConfigMap stays": false, "ConfigMap loses": true}; !maps.Equal(is.Labels, want) {
		t.Errorf("labels %v, want %v", is.Labels, want)
	}
}

// TestZero: what Go's types write of what is not there says nothing, however deep.
func TestZero(t *testing.T) {
	type m = map[string]any
	for _, nothing := range []any{nil, "", "0s", int64(0), false, m{}, m{"interval": "0s", "storage": m{"size": "0"}}, []any{m{"a": ""}}} {
		if !zero(nothing) {
			t.Errorf("%v says something", nothing)
		}
	}
	for _, something := range []any{"redis:8", int64(1), true, m{"a": m{"b": "1s"}}, []any{"a"}} {
		if zero(something) {
			t.Errorf("%v says nothing", something)
		}
	}
}
