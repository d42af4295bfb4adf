package walk

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/observe"
)

// TestRename: what a spec names is named otherwise below keys that tell of settings, and nowhere else.
func TestRename(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"a key that tells":                {"adminSecret: users", "adminSecret: users-new1"},
		"below a key that tells":          {"auth: {secretRef: {name: users}}", "auth: {secretRef: {name: users-new1}}"},
		"in a list":                       {"envFrom: [{secretRef: {name: users}}, {secretRef: {name: other}}]", "envFrom: [{secretRef: {name: users-new1}}, {secretRef: {name: other}}]"},
		"a list of names":                 {"tlsSecrets: [users, other]", "tlsSecrets: [users-new1, other]"},
		"below a key that does not tell":  {"database: users", ""},
		"a part of it":                    {"adminSecret: users-new", ""},
		"a number":                        {"adminSecret: 5", ""},
		"beside a key that tells of some": {"adminSecret: other, team: users", ""},
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
		if got := names(spec, "users", false); got != (c.want != c.spec) {
			t.Errorf("%s: it names it: %t", name, got)
		}
		rename(spec, "users", "users-new1", false)
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
		"lines":            {`{kind: ConfigMap, data: {a: "b\nc"}}`, `{"data":{"a":"b\nc\n"}}`, `{"data":{"a":"b\nc"}}`},
		"a secret":         {"{kind: Secret, data: {a: d29yZA==}}", `{"data":{"a":"d29yZDA="}}`, `{"data":{"a":"d29yZA=="}}`},
		"what is no text":  {"{kind: Secret, data: {a: /w==, b: d29yZA==}}", `{"data":{"b":"d29yZDA="}}`, `{"data":{"a":"/w==","b":"d29yZA=="}}`},
		"nothing":          {"{kind: ConfigMap}", "", ""},
		"no text whatever": {"{kind: Secret, data: {a: /w==}}", "", ""},
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(c.object), &object.Object); err != nil {
			t.Fatal(err)
		}
		if there, back := otherData(object); string(there) != c.there || string(back) != c.back {
			t.Errorf("%s: there %s and back %s", name, there, back)
		}
	}
}

// TestWithoutNeeds: what the walk changes itself is nothing that an operator makes, also where that has become its owner.
func TestWithoutNeeds(t *testing.T) {
	copied := &unstructured.Unstructured{}
	copied.SetKind("Secret")
	copied.SetName("users-new1")
	operands := map[string]observe.Operand{"a": {Kind: "Secret", Name: "users-new1"}, "b": {Kind: "Secret", Name: "users"}, "c": {Kind: "Service", Name: "users-new1"}}
	rest := without(operands, []need{{copied, "Secret users"}})
	if _, there := rest["a"]; there || len(rest) != 2 || len(operands) != 3 {
		t.Errorf("what is left is %v of %v", rest, operands)
	}
}
