package walk

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// TestRename: what a spec names is named otherwise below keys that tell of settings, and nowhere else.
func TestRename(t *testing.T) {
	for name, c := range map[string]struct{ spec, want, kind string }{
		"a key that tells":                {"adminSecret: users", "adminSecret: users-new1", ""},
		"below a key that tells":          {"auth: {secretRef: {name: users}}", "auth: {secretRef: {name: users-new1}}", ""},
		"in a list":                       {"envFrom: [{secretRef: {name: users}}, {secretRef: {name: other}}]", "envFrom: [{secretRef: {name: users-new1}}, {secretRef: {name: other}}]", ""},
		"a list of names":                 {"tlsSecrets: [users, other]", "tlsSecrets: [users-new1, other]", ""},
		"below a key that does not tell":  {"database: users", "", ""},
		"a part of it":                    {"adminSecret: users-new", "", ""},
		"a number":                        {"adminSecret: 5", "", ""},
		"beside a kind":                   {"copies: [{kind: Secret, name: users}, {kind: User, name: users}]", "copies: [{kind: Secret, name: users-new1}, {kind: User, name: users}]", ""},
		"beside a key that tells of some": {"adminSecret: other, team: users", "", ""},
		"a kind as the key says":          {"database: users", "database: users-new1", "Database"},
		"a kind's name":                   {"databaseName: users", "databaseName: users-new1", "Database"},
		"a part of the kind":              {"cluster: {name: users}", "cluster: {name: users-new1}", "KafkaCluster"},
		"a kind that is referred to":      {"databaseRef: {name: users}, dbName: users", "databaseRef: {name: users-new1}, dbName: users", "Database"},
		"another kind":                    {"owner: users, kind: Team, name: users", "", "Database"},
	} {
		var spec, want map[string]any
		if err := yaml.Unmarshal([]byte("{"+c.spec+"}"), &spec); err != nil {
			t.Fatal(err)
		}
		if c.want == "" {
			c.want = c.spec
		}
		if err := yaml.Unmarshal([]byte("{"+c.want+"}"), &want); err != nil {
			t.Fatal(err)
		}
		if c.kind == "" {
			c.kind = "Secret"
		}
		if got := names(spec, c.kind, "users"); got != (c.want != c.spec) {
			t.Errorf("%s: it names it: %t", name, got)
		}
		rename(spec, c.kind, "users", "users-new1", false)
		got, _ := json.Marshal(spec)
		wanted, _ := json.Marshal(want)
		if string(got) != string(wanted) {
			t.Errorf("%s: %s, want %s", name, got, wanted)
		}
	}
}

func TestOtherData(t *testing.T) {
	for name, c := range map[string]struct{ object, there, back string }{
		"a word":           {"{kind: ConfigMap, data: {a: word}}", `{"data":{"a":"word0"}}`, `{"data":{"a":"word"}}`},
		"a number":         {"{kind: ConfigMap, data: {a: '9'}}", `{"data":{"a":"10"}}`, `{"data":{"a":"9"}}`},
		"a line":           {`{kind: ConfigMap, data: {a: "word\n", b: "9\n"}}`, `{"data":{"a":"word0\n","b":"10\n"}}`, `{"data":{"a":"word\n","b":"9\n"}}`},
		"lines":            {`{kind: ConfigMap, data: {a: "b\nc"}}`, `{"data":{"a":"b\n\nc"}}`, `{"data":{"a":"b\nc"}}`},
		"what has a form":  {`{kind: ConfigMap, data: {a: "true", b: "{}", c: "redis://h:6379", d: "-----BEGIN X\nY\n", e: "", f: "\n"}}`, "", ""},
		"a secret":         {"{kind: Secret, data: {a: d29yZA==}}", `{"data":{"a":"d29yZDA="}}`, `{"data":{"a":"d29yZA=="}}`},
		"what is no text":  {"{kind: Secret, data: {a: /w==, b: d29yZA==}}", `{"data":{"b":"d29yZDA="}}`, `{"data":{"a":"/w==","b":"d29yZA=="}}`},
		"nothing":          {"{kind: ConfigMap}", "", ""},
		"no text whatever": {"{kind: Secret, data: {a: /w==}}", "", ""},
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(c.object), &object.Object); err != nil {
			t.Fatal(err)
		}
		if there, back := otherData(object, otherText); string(there) != c.there || string(back) != c.back {
			t.Errorf("%s: there %s and back %s", name, there, back)
		}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "-----BEGIN X\nY\n", "b": "{}"}}}
	if there, back := otherData(object, otherFile); string(there) != `{"data":{"a":"-----BEGIN X\nY\n\n","b":"{}\n"}}` || string(back) != `{"data":{"a":"-----BEGIN X\nY\n","b":"{}"}}` {
		t.Errorf("files: there %s and back %s", there, back)
	}
}

func TestMounting(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want bool
	}{
		"a volume":            {"{template: {spec: {volumes: [{name: x, secret: {secretName: users-new1}}]}}}", true},
		"a projected one":     {"{template: {spec: {volumes: [{name: x, projected: {sources: [{configMap: {name: users-new1}}]}}]}}}", true},
		"of another":          {"{template: {spec: {volumes: [{name: x, secret: {secretName: users}}]}}}", false},
		"in the environment":  {"{template: {spec: {containers: [{envFrom: [{secretRef: {name: users-new1}}]}]}}}", false},
		"nothing that is one": {"{replicas: 1}", false},
	} {
		content := map[string]any{}
		if err := yaml.Unmarshal([]byte(c.spec), &content); err != nil {
			t.Fatal(err)
		}
		operands := map[string]observe.Operand{}
		for _, of := range []string{"StatefulSet/a", "Deployment/b", "Deployment/c"} {
			operands[of] = observe.Operand{Kind: strings.Split(of, "/")[0], Content: map[string]any{"spec": content}}
		}
		if got := mounting(operands, "users-new1"); c.want != slices.Equal(got, []string{"Deployment", "StatefulSet"}) || !c.want && len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestWithoutNeeds: what the walk changes itself is nothing that an operator makes, also where that has become its owner.
func TestWithoutNeeds(t *testing.T) {
	copied := &unstructured.Unstructured{}
	copied.SetKind("Secret")
	copied.SetName("users-new1")
	copied.SetNamespace("n")
	of := func(kind, namespace, name string) observe.Operand {
		return observe.Operand{Kind: kind, Namespace: namespace, Name: name}
	}
	operands := map[string]observe.Operand{"a": of("Secret", "n", "users-new1"), "b": of("Secret", "n", "users"), "c": of("Service", "n", "users-new1"), "d": of("Secret", "other", "users-new1")}
	rest := without(operands, []need{{Unstructured: copied, of: "users"}})
	if _, there := rest["a"]; there || len(rest) != 3 || len(operands) != 4 {
		t.Errorf("what is left is %v of %v", rest, operands)
	}
}

// What an object names is copied to where the copy is; what an object without a namespace names stays where it is.
func TestNamesakes(t *testing.T) {
	secret, pot := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	for o, manifest := range map[*unstructured.Unstructured]string{
		secret: "{apiVersion: v1, kind: Secret, metadata: {name: registry, namespace: place}}",
		pot:    "{apiVersion: example.com/v1, kind: Pot, metadata: {name: a}, spec: {copies: [{kind: Secret, name: registry, namespace: place}]}}",
	} {
		if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
			t.Fatal(err)
		}
	}
	w := teaWalk()
	w.Place.Mode = lifecycle.AllNamespaces
	w.options.Samples = []*unstructured.Unstructured{pot, secret}
	for _, c := range []struct{ namespace, other, want string }{{"place", "place", "place"}, {"place", "other", "other"}, {"", "", "place"}} {
		needs := w.namesakesIn(pot, c.namespace, c.other)
		if len(needs) != 1 || needs[0].of != "registry" || needs[0].GetNamespace() != c.want || !names(naming(pot, needs).Object["spec"], needs[0].GetKind(), needs[0].GetName()) {
			t.Errorf("%+v: %+v", c, needs)
		}
	}
	if secret.GetName() != "registry" || secret.GetNamespace() != "place" {
		t.Errorf("the sample became %s", secret.GetName())
	}
}
