package walk

import (
	"cmp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/assert"
	"github.com/olmkit/olmkit/internal/observe"
)

// deploymentOf is an operand with so many replicas.
func deploymentOf(namespace, name string, replicas int64) runtime.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"app": "tea", "replicas": "some"}},
		"spec":     map[string]any{"replicas": replicas},
	}}
}

func TestMismatches(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	made := []*observe.Object{
		{CRD: "teas.example.com", Namespace: "samples", Name: "green-v1", Sample: "green"},
		{CRD: "teas.example.com", Namespace: "samples", Name: "green-v1-w", Sample: "green"},
		{CRD: "teas.example.com", Namespace: "samples", Name: "green-leaf-v1", Sample: "green-leaf"},
		{CRD: "cups.example.com", Namespace: "samples", Name: "green-v2", Sample: "green"},
	}
	c := &asserted{
		resources: fake.NewSimpleDynamicClient(runtime.NewScheme(),
			deploymentOf("samples", "green-v1", 3), deploymentOf("samples", "green-v1-w", 3), deploymentOf("samples", "green-leaf-v1-server", 1),
			deploymentOf("operator", "manager", 2), deploymentOf("operator", "green-v1", 9),
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "node"}}},
		),
		mapper: mapper, objects: made,
		namespaces: func(namespace string) []string { return []string{cmp.Or(namespace, "samples")} },
	}
	for name, test := range map[string]struct{ assertion, object, want string }{
		"a sample's name":                   {"metadata: {name: green}\nspec: {replicas: 3}", "", ""},
		"a sample's name, one is otherwise": {"metadata: {name: green}\nspec: {replicas: 4}", "Deployment/samples/green-v1", "spec.replicas: expected 4, found 3"},
		"the name that the walk gives":      {"metadata: {name: green-v1}\nspec: {replicas: 3}", "", ""},
		"a name with a sample's":            {"metadata: {name: green-leaf-server}\nspec: {replicas: 1}", "", ""},
		"a name and a namespace":            {"metadata: {name: manager, namespace: operator}\nspec: {replicas: 2}", "", ""},
		"not there":                         {"metadata: {name: black}", "Deployment/samples/black", "it is not there"},
		"not there by any name": {
			"metadata: {name: green-x}", "Deployment/samples/green-x",
			"it is not there, nor is any of Deployment/samples/green-v1-x, Deployment/samples/green-v1-w-x, Deployment/samples/green-v2-x",
		},
		"labels, any of them":  {"metadata: {labels: {app: tea}}\nspec: {replicas: 1}", "", ""},
		"labels, the nearest":  {"metadata: {labels: {app: tea}}\nspec: {replicas: 5}", "Deployment/samples/green-leaf-v1-server", "spec.replicas: expected 5, found 1"},
		"labels, in namespace": {"metadata: {namespace: operator, labels: {app: tea}}\nspec: {replicas: 2}", "", ""},
		"labels, none":         {"metadata: {labels: {app: milk}}", "Deployment", "there is none app=milk"},
		"no such kind":         {"kind: Kettle", "Kettle", `no matches for kind "Kettle" in version "apps/v1"`},
		"without namespaces":   {"apiVersion: v1\nkind: Node\nmetadata: {name: node}", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}
			if err := yaml.Unmarshal([]byte(test.assertion), &document); err != nil {
				t.Fatal(err)
			}
			text, err := yaml.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			assertions, err := assert.Parse("a.yaml", text)
			if err != nil {
				t.Fatal(err)
			}
			failed, err := c.mismatches(t.Context(), assertions)
			if err != nil {
				t.Fatal(err)
			}
			var object, got string
			for _, m := range failed {
				object, got = m.Object, strings.Join(m.Differences, "; ")
			}
			if object != test.object || got != test.want {
				t.Errorf("%s: %s", object, got)
			}
		})
	}
}

func TestRenamed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, sample, want string
		is                 bool
	}{
		{"tea", "tea", "tea-v1", true},
		{"tea-server", "tea", "tea-v1-server", true},
		{"my.tea", "tea", "my.tea-v1", true},
		{"teapot-tea", "tea", "teapot-tea-v1", true},
		{"teapot", "tea", "teapot", false},
		{"steam", "tea", "steam", false},
		{"tea", "", "tea", false},
	} {
		if got, is := renamed(test.name, test.sample, "tea-v1"); got != test.want || is != test.is {
			t.Errorf("%s with %s: %s, %t", test.name, test.sample, got, is)
		}
	}
}

// TestOwnName takes the sample's name for all objects that were made of it and are there, and another object's name for that alone.
func TestOwnName(t *testing.T) {
	a, kind := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME, namespace: samples}, spec: {replicas: 1}}`, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, meta.RESTScopeNamespace)
	c := &asserted{
		resources: fake.NewSimpleDynamicClient(runtime.NewScheme(), deploymentOf("samples", "tea", 1), deploymentOf("samples", "tea-v1-w", 2), deploymentOf("samples", "tea-once", 1)),
		mapper:    mapper, namespaces: func(namespace string) []string { return []string{namespace} },
		objects: []*observe.Object{
			{CRD: "teas.example.com", Namespace: "samples", Name: "tea", Sample: "tea"}, {CRD: "teas.example.com", Namespace: "samples", Name: "tea-v1-w", Sample: "tea"},
		},
	}
	for name, want := range map[string]string{"tea": "Deployment/samples/tea-v1-w", "tea-v1-w": "Deployment/samples/tea-v1-w", "tea-once": ""} {
		list, err := assert.Parse("a.yaml", []byte(strings.ReplaceAll(a, "NAME", name)))
		if err != nil {
			t.Fatal(err)
		}
		object, differences := c.look(t.Context(), list[0])
		if (len(differences) > 0) != (want != "") || want != "" && object != want {
			t.Errorf("%s: %s: %q, want %q", name, object, differences, want)
		}
	}
}
