package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/test/support/expect"
)

func TestUnknownFields(t *testing.T) {
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(`
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          status: {type: object}
          spec:
            type: object
            properties:
              size: {type: integer}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: object, properties: {a: {type: string}}}}}
              map: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}
              any: {type: object, additionalProperties: true}
              list: {type: array, items: {type: object, properties: {a: {type: string}}}}
              pod: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}
  - name: v2
`), d); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, version, object string
		unknown               []string
		pruned                string
	}{
		{"none", "v1", "spec: {size: 1}", nil, "spec: {size: 1}"},
		{"at the top", "v1", "spec: {size: 1}\ndata: 1", []string{"data"}, "spec: {size: 1}"},
		{"nested", "v1", "spec: {replicas: 1, size: 2}", []string{"spec.replicas"}, "spec: {size: 2}"},
		{"where all may stay, known fields are still looked into", "v1", "spec: {free: {x: 1, known: {a: s, b: 1}}}", []string{"spec.free.known.b"}, "spec: {free: {x: 1, known: {a: s}}}"},
		{"in maps", "v1", "spec: {map: {k: {a: s, b: 1}}, any: {k: 1}}", []string{"spec.map.k.b"}, "spec: {map: {k: {a: s}}, any: {k: 1}}"},
		{"in maps of anything, but nothing below", "v1", "spec: {any: {k: {b: 1}}}", []string{"spec.any.k.b"}, "spec: {any: {k: {}}}"},
		{"in lists", "v1", "spec: {list: [{a: s}, {b: 1}]}", []string{"spec.list[1].b"}, "spec: {list: [{a: s}, {}]}"},
		{"an embedded object's head", "v1", "spec: {pod: {apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {}, more: 1}}", []string{"spec.pod.more"},
			"spec: {pod: {apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {}}}"},
		{"a version without schema", "v2", "spec: {x: 1}", nil, "spec: {x: 1}"},
		{"no such version", "v3", "spec: {x: 1}", nil, "spec: {x: 1}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := expect.Object(t, test.object)
			pruned, unknown := Prune(Structural(d, test.version), o)
			if diff := cmp.Diff(test.unknown, unknown); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(expect.Object(t, test.pruned), pruned); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDeprecated: a field is deprecated by its description, or one above it is as a whole; what is said of the spec is about some of its fields.
func TestDeprecated(t *testing.T) {
	said := func(text string, fields map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Description: text, Properties: fields}
	}
	schema := said("", map[string]apiextensionsv1.JSONSchemaProps{"spec": said("Some fields are deprecated.", map[string]apiextensionsv1.JSONSchemaProps{
		"used": said("How many.", nil), "old": said("Deprecated: use used.", nil), "unread": said("It is no longer read.", nil), "port": said("Wipe it to no longer need it.", nil),
		"some": said("Its size is deprecated.", map[string]apiextensionsv1.JSONSchemaProps{"class": said("", nil)}), "above": said("DEPRECATED, use used.", map[string]apiextensionsv1.JSONSchemaProps{"inner": said("", nil)}),
	})})
	for path, want := range map[string]bool{"spec.used": false, "spec.old": true, "spec.unread": true, "spec.port": false, "spec.some.class": false, "spec.above.inner": true, "spec.unknown.inner": false, "Secret a": false} {
		if got := Deprecated(&schema, path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
	if Deprecated(nil, "spec.old") {
		t.Error("without a schema nothing is known")
	}
}

// What the schema does not have is dropped; what is null there says nothing, and is not told of.
func TestPrune(t *testing.T) {
	schema := &structural.Structural{Generic: structural.Generic{Type: "object"}, Properties: map[string]structural.Structural{
		"spec": {Generic: structural.Generic{Type: "object"}, Properties: map[string]structural.Structural{
			"size":  {Generic: structural.Generic{Type: "integer", Nullable: true}},
			"items": {Generic: structural.Generic{Type: "array"}, Items: &structural.Structural{Generic: structural.Generic{Type: "object"}}},
		}},
	}}
	object := map[string]any{"spec": map[string]any{
		"size": nil, "color": "red", "metadata": map[string]any{"creationTimestamp": nil}, "created": nil,
		"items": []any{map[string]any{"at": nil}, map[string]any{"at": "x"}},
	}}
	pruned, unknown := Prune(schema, object)
	want := map[string]any{"spec": map[string]any{"size": nil, "items": []any{map[string]any{}, map[string]any{}}}}
	if diff := cmp.Diff(want, pruned); diff != "" {
		t.Errorf("what stays: %s", diff)
	}
	if diff := cmp.Diff([]string{"spec.color", "spec.items[1].at"}, unknown); diff != "" {
		t.Errorf("what is told of: %s", diff)
	}
}
