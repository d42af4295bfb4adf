package judge

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

func TestJudgeReturned(t *testing.T) {
	thing := func(uid, version string, spec map[string]any, written string) *unstructured.Unstructured {
		metadata := map[string]any{"name": "a", "namespace": "n", "uid": uid, "labels": map[string]any{"team": "x"}}
		if written != "" {
			metadata["annotations"] = map[string]any{observe.Writes: written}
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/" + version, "kind": "Thing", "metadata": metadata, "spec": spec,
		}}
	}
	type views = map[string]*unstructured.Unstructured
	before := views{
		"v1":      thing("1", "v1", map[string]any{"port": int64(80), "size": int64(2)}, ""),
		"v1beta1": thing("1", "v1beta1", map[string]any{"containerPort": int64(80)}, ""),
	}
	of := func(written bool, acked int64) *observe.Object {
		o := &observe.Object{Kind: "Thing", Namespace: "n", Name: "a", Version: "v1", UID: "1", Written: written, Author: before["v1"].Object, Views: before}
		o.Acked.Store(acked)
		return o
	}
	expect.Findings(t, Returned(of(false, 0), before))
	expect.Findings(t, Returned(of(false, 0), views{
		"v1":      thing("1", "v1", map[string]any{"port": int64(11211)}, ""),
		"v1beta1": thing("1", "v1beta1", map[string]any{"containerPort": int64(11211)}, ""),
	}), "error U802 Thing/n/a: compared with before the upgrade: as v1 spec.port was 80 and is 11211; spec.size was 2 and is gone; as v1beta1 spec.containerPort was 80 and is 11211")
	expect.Findings(t, Returned(of(false, 0), views{"v1": thing("2", "v1", map[string]any{"port": int64(80), "size": int64(2)}, "")}),
		"error U802 Thing/n/a: it was deleted and made anew: its UID is another")

	read := func(n string) views {
		return views{"v1": thing("1", "v1", map[string]any{"port": int64(80), "size": int64(2)}, n)}
	}
	expect.Findings(t, Returned(of(true, 7), read("7")))
	expect.Findings(t, Returned(of(true, 7), read("6")), "error U802 Thing/n/a: write number 7 through v1 was acknowledged, but the object has number 6")
}

// TestFieldsLostBefore: what an operator made of a field before any upgrade is no loss, what is lost later is.
func TestFieldsLostBefore(t *testing.T) {
	thing := func(size, image string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size, "image": image}}}
	}
	o := &observe.Object{Kind: "Thing", Namespace: "n", Name: "a", Version: "v1", Author: thing("3", "x").Object, First: map[string]*unstructured.Unstructured{"v1": thing("4", "x")}}
	d := &apiextensionsv1.CustomResourceDefinition{}
	expect.Findings(t, FieldFindings(o, d, "v1", thing("4", "x"), ""))
	expect.Findings(t, FieldFindings(o, d, "v1", thing("4", "y"), ""), `error U302 Thing/n/a: read as v1: spec.image was "x" and is "y"`)
	expect.Findings(t, FieldFindings(o, d, "v1", thing("5", "x"), ""), `error U302 Thing/n/a: read as v1: spec.size was "3" and is "5"`)
	o.First = nil
	expect.Findings(t, FieldFindings(o, d, "v1", thing("4", "x"), ""), `error U302 Thing/n/a: read as v1: spec.size was "3" and is "4"`)
}

// TestTags: what an annotation holds of an object's status is the operator's, as are, of a restored object, annotations with
// another value; what is gone is lost.
func TestTags(t *testing.T) {
	thing := func(annotations map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"annotations": annotations}}}
	}
	const held = "conversion"
	for name, test := range map[string]struct {
		restored bool
		was, is  map[string]any
		want     []string
	}{
		"a held status changes": {
			was: map[string]any{held: `{"spec": {"a": 1}, "status": {"node": "x"}}`}, is: map[string]any{held: `{"status":{"node":"y"},"spec":{"a":1}}`},
		},
		"a held status is gone": {was: map[string]any{held: `{"status": {"node": "x"}}`}},
		"a held field is another": {
			was: map[string]any{held: `{"spec": {"a": 1}}`}, is: map[string]any{held: `{"spec": {"a": 2}}`},
			want: []string{"error U302 Thing/n/a: read as v1: metadata.annotations.conversion.spec.a was 1 and is 2"},
		},
		"another value": {
			was: map[string]any{"note": "x"}, is: map[string]any{"note": "y"},
			want: []string{`error U302 Thing/n/a: read as v1: metadata.annotations.note was "x" and is "y"`},
		},
		"another value, restored": {
			restored: true, was: map[string]any{"at": "noon"}, is: map[string]any{"at": "one"},
			want: []string{`warning U307 Thing/n/a: read as v1, compared with what was restored: metadata.annotations.at was "noon" and is "one"`},
		},
		"gone, restored": {
			restored: true, was: map[string]any{"note": "x", held: `{"spec": {"a": 1}}`},
			want: []string{`error U302 Thing/n/a: read as v1: metadata.annotations.conversion was {"spec":{"a":1}} and is gone; metadata.annotations.note was "x" and is gone`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &observe.Object{Kind: "Thing", Namespace: "n", Name: "a", Version: "v1", Author: thing(test.was).Object, Restored: test.restored}
			expect.Findings(t, FieldFindings(o, nil, "v1", thing(test.is), ""), test.want...)
		})
	}
}

// TestNewDefaults tells what nobody sets any more for a new object, and neither what its author wrote nor what has another value.
func TestNewDefaults(t *testing.T) {
	spec := func(fields map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": "a", "uid": "1"}, "spec": fields}
	}
	o := &observe.Object{
		Kind: "Thing", Name: "a", Author: spec(map[string]any{"image": "i"}),
		Created: spec(map[string]any{"image": "i", "size": int64(3), "storage": map[string]any{"class": "fast"}, "password": "x"}),
	}
	for _, test := range []struct {
		name string
		made map[string]any
		want []string
	}{
		{"as before", o.Created, nil},
		{"another value", spec(map[string]any{"image": "i", "size": int64(3), "storage": map[string]any{"class": "fast"}, "password": "y"}), nil},
		{"what the author wrote is told elsewhere", spec(map[string]any{"size": int64(3), "storage": map[string]any{"class": "fast"}, "password": "x"}), nil},
		{"two defaults", spec(map[string]any{"image": "i", "storage": map[string]any{}, "password": "x"}),
			[]string{`warning U307 Thing/a: v2 leaves empty in a new object what was set before: spec.size was 3 and is gone; spec.storage.class was "fast" and is gone`}},
	} {
		t.Run(test.name, func(t *testing.T) { expect.Findings(t, NewDefaults(o, "v2", test.made), test.want...) })
	}
}

// TestStatusGone tells what a status has no word of any more, and neither other values, nor lists, nor what is empty when all is well.
func TestStatusGone(t *testing.T) {
	status := func(fields map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	}
	is := func(condition, status string) map[string]any {
		return map[string]any{"type": condition, "status": status}
	}
	o := &observe.Object{Kind: "Thing", Name: "a", Version: "v1", Views: map[string]*unstructured.Unstructured{"v1": status(map[string]any{
		"endpoint": "a:6379", "nodes": map[string]any{"ready": int64(3)}, "phase": "Running", "conditions": []any{is("Ready", "True"), is("PodsReady", "True"), is("BackupFailed", "True"), is("DisksReady", "False")},
		"lastBackup": "yesterday", "message": "fine", "failed": int64(0), "startTime": "now", "pods": map[string]any{"a-5d8f7": "ready"}, "elasticNode": "e",
	})}}
	for _, test := range []struct {
		name string
		now  *unstructured.Unstructured
		want []string
	}{
		{"other values", status(map[string]any{"endpoint": "b:6379", "nodes": map[string]any{"ready": int64(0)}, "phase": "Ready", "pods": map[string]any{"b-6d9f8": "ready"}, "elasticNode": "f", "conditions": []any{is("PodsReady", "False")}}), nil},
		{"no words", status(map[string]any{"phase": "Running", "nodes": map[string]any{}, "pods": map[string]any{}}), []string{"warning U520 Thing/a: its status says nothing any more of status.elasticNode, status.endpoint, status.nodes.ready, condition PodsReady"}},
		{"no status", &unstructured.Unstructured{}, []string{"warning U520 Thing/a: its status says nothing any more of status.elasticNode, status.endpoint, status.nodes, status.phase, status.pods, condition PodsReady"}},
	} {
		t.Run(test.name, func(t *testing.T) { expect.Findings(t, StatusGone(o, test.now, true), test.want...) })
	}
	o.Views["v1alpha1"] = status(map[string]any{"phase": "Running"})
	silent := status(map[string]any{"nodes": map[string]any{"ready": int64(3)}, "pods": map[string]any{}, "elasticNode": "e", "conditions": []any{is("PodsReady", "True")}})
	expect.Findings(t, StatusGone(o, silent, false), "warning U520 Thing/a: its status says nothing any more of status.phase")
	expect.Findings(t, StatusGone(o, silent, true), "warning U520 Thing/a: its status says nothing any more of status.endpoint, status.phase")
	o.Version = "v2"
	expect.Findings(t, StatusGone(o, &unstructured.Unstructured{}, true))
}

// A status that told of the newest generation before must do so after changes, too.
func TestStatusStays(t *testing.T) {
	object := func(generation, observed int64) *unstructured.Unstructured {
		status := map[string]any{}
		if observed > 0 {
			status["observedGeneration"] = observed
		}
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": generation}, "status": status}}
	}
	for _, c := range []struct {
		before, now *unstructured.Unstructured
		want        []string
	}{
		{object(1, 1), object(3, 3), nil},
		{object(1, 1), object(3, 1), []string{"error U503 Thing/a: after changes of it status.observedGeneration is 1, the generation 3; before the upgrade the status told the newest"}},
		{object(2, 1), object(4, 1), nil}, {object(1, 0), object(3, 0), nil}, {object(1, 1), object(3, 0), nil},
	} {
		o := &observe.Object{Kind: "Thing", Name: "a", Version: "v1", Views: map[string]*unstructured.Unstructured{"v1": c.before}}
		expect.Findings(t, StatusStays(o, c.now), c.want...)
	}
	expect.Findings(t, StatusStays(&observe.Object{Kind: "Thing", Name: "a", Version: "v1"}, object(3, 1)))
}
