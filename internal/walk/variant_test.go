package walk

import (
	"reflect"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// What an object says of its end is tried, though nothing shows it as long as it is there.
func TestVariants(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3") // after the last hop the operator would be started again
	expectAll(t, p, plan, []pairing{
		{retains, retains, "", ""},
		{"", "", "", ""},
		{retains, "", code.DataLost, "v2 deletes ConfigMap a of a new object like it when that is deleted; v1 kept it; this is so with spec.onDelete: Retain"},
		{"", retains, code.NewUnowned, "v2 makes ConfigMap a for a new object like it without an owner reference, and it stayed when the object was deleted; with v1 it did not; this is so with spec.onDelete: Retain"},
	})
}

func TestChoices(t *testing.T) {
	enum := func(values ...string) apiextensionsv1.JSONSchemaProps {
		s := apiextensionsv1.JSONSchemaProps{Type: "string"}
		for _, v := range values {
			s.Enum = append(s.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + v + `"`)})
		}
		return s
	}
	byDefault := enum("a", "b")
	byDefault.Default = &apiextensionsv1.JSON{Raw: []byte(`"a"`)}
	d := thingDefinition()
	d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"followed": {Type: "boolean"}, "mode": enum("one", "two", "three"), "other": byDefault, "paused": {Type: "boolean"}, "reclaimPolicy": enum("Keep", "Drop", "Save"), "shards": {Type: "integer"}, "size": {Type: "integer"}, "storage": {Type: "string"}, "port": {Type: "integer"}, "tls": {Type: "boolean"},
	}}
	like := &observe.Object{Version: "v1", Author: map[string]any{"spec": map[string]any{"mode": "one", "reclaimPolicy": "Drop", "shards": int64(2), "size": int64(2), "storage": "1Gi", "port": int64(80), "tls": true}}}
	var names []string
	for _, v := range choices(d, like, judge.New{Follows: map[string]int{"spec.followed": judge.Surely, "spec.reclaimPolicy": judge.Surely, "spec.tls": 1}}) {
		names = append(names, v.name)
	}
	want := []string{" with spec.reclaimPolicy: Keep", " with spec.reclaimPolicy: Save", " with spec.mode: two", " with spec.other: b", " with spec.port: 87", " with spec.shards: 3", " with spec.storage: 2Gi", " with spec.tls: false"}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// What is made for a variant is held against what was made for the copy at first, but for names and what nobody chose.
func TestUnlike(t *testing.T) {
	made := func(name, kind, class string) observe.Operand {
		return observe.Operand{Kind: kind, Name: name, Direct: true, Content: map[string]any{"spec": map[string]any{"class": class, "of": name}}}
	}
	first := &newObject{Object: &observe.Object{Name: "a-new1"}, like: &observe.Object{Name: "a"}}
	o := &newObject{Object: &observe.Object{Name: "a-alt1a"}, like: first.like}
	operands := map[string]observe.Operand{"1": made("a-alt1a", "Service", "fast"), "2": made("a-alt1a-more", "ConfigMap", "same"), "3": made("a-alt1a", "Ingress", ""), "4": made("a-alt1a", "Secret", "other")}
	if got := o.unlike(operands); got != nil {
		t.Errorf("beside nothing: %q", got)
	}
	o.first = first.asSample(map[string]observe.Operand{"1": made("a-new1", "Service", "slow"), "2": made("a-new1-more", "ConfigMap", "same"), "4": made("a-new1", "Secret", "")})
	if got, want := o.unlike(operands), []string{"Ingress", "Service spec.class"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
