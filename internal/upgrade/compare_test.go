package upgrade

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// decode reads YAML as the API server's clients do.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err == nil {
		return u.Object
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestLost(t *testing.T) {
	const head = "apiVersion: v1\nkind: T\n"
	for _, test := range []struct {
		name, want, got string
		lost            []string
	}{
		{"equal", "spec: {a: 1, b: [x, {c: true}]}", "spec: {a: 1, b: [x, {c: true}]}", nil},
		{"more is no loss", "spec: {a: 1}", "spec: {a: 1, b: 2}\nstatus: {}", nil},
		{"gone", "spec: {a: 1, b: {c: x}}", "spec: {b: {}}", []string{"spec.a was 1 and is gone", `spec.b.c was "x" and is gone`}},
		{"other value", "spec: {a: 1}", "spec: {a: 2}", []string{"spec.a was 1 and is 2"}},
		{"other type", "spec: {a: '1'}", "spec: {a: 1}", []string{`spec.a was "1" and is 1`}},
		{"scalar became a map", "spec: {a: x}", "spec: {a: {b: x}}", []string{`spec.a was "x" and is {"b":"x"}`}},
		{"map became a scalar", "spec: {a: {b: x}}", "spec: {a: x}", []string{`spec.a was {"b":"x"} and is "x"`}},
		{"empty values may be left out", "spec: {a: 0, b: '', c: false, d: {}, e: [], f: null, g: {h: {i: ''}}}", "spec: {}", nil},
		{"an empty value is not any value", "spec: {a: 0}", "spec: {a: 1}", []string{"spec.a was 0 and is 1"}},
		{"a number is a number", "spec: {a: 1}", "spec: {a: 1.0}", nil},
		{"big numbers are exact", "spec: {a: 9007199254740993}", "spec: {a: 9007199254740992}", []string{"spec.a was 9007199254740993 and is 9007199254740992"}},
		{"list grew", "spec: {a: [1]}", "spec: {a: [1, 2]}", []string{"spec.a was [1] and is [1,2]"}},
		{"list in another order", "spec: {a: [1, 2]}", "spec: {a: [2, 1]}", []string{"spec.a[0] was 1 and is 2", "spec.a[1] was 2 and is 1"}},
		{"data beside spec counts", "data: {k: v}", "spec: {}", []string{`data was {"k":"v"} and is gone`}},
		{"status and metadata do not", "metadata: {name: a}\nstatus: {x: 1}", "metadata: {name: b}", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, d := range lost(content(decode(t, head+test.want)), content(decode(t, head+test.got))) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(test.lost, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

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
		{"in maps", "v1", "spec: {map: {k: {a: s, b: 1}}, any: {k: {b: 1}}}", []string{"spec.map.k.b"}, "spec: {map: {k: {a: s}}, any: {k: {b: 1}}}"},
		{"in lists", "v1", "spec: {list: [{a: s}, {b: 1}]}", []string{"spec.list[1].b"}, "spec: {list: [{a: s}, {}]}"},
		{"an embedded object's head", "v1", "spec: {pod: {apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {}, more: 1}}", []string{"spec.pod.more"},
			"spec: {pod: {apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {}}}"},
		{"a version without schema", "v2", "spec: {x: 1}", nil, "spec: {x: 1}"},
		{"no such version", "v3", "spec: {x: 1}", nil, "spec: {x: 1}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := decode(t, test.object)
			if diff := cmp.Diff(test.unknown, unknown(d, test.version, o)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(decode(t, test.pruned), prune(d, test.version, o)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHideSecrets(t *testing.T) {
	c := map[string]any{"data": map[string]any{"password": "aHVudGVyMg==", "user": "YQ=="}, "type": "Opaque"}
	hideSecrets("ConfigMap", c)
	if c["data"].(map[string]any)["user"] != "YQ==" {
		t.Error("a ConfigMap is hidden")
	}
	hideSecrets("Secret", c)
	if said := fmt.Sprint(c); strings.Contains(said, "aHVudGVyMg") || !strings.Contains(said, "(hidden) sha256:") || c["type"] != "Opaque" {
		t.Error(said)
	}
}
