package assert

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const tea = `{"apiVersion":"tea.example.com/v1","kind":"Tea","metadata":{"name":"green-v1","labels":{"cup":"big"}},
"spec":{"size":3,"ratio":0.5,"leaves":["a","b"]},
"status":{"ready":2,"conditions":[{"type":"Available","status":"True"},{"type":"Degraded","status":"False","message":"fine"}]}}`

func TestDifferences(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fields string // of the assertion
		want   []string
	}{
		"nothing but the kind":            {"", nil},
		"a subset":                        {"spec: {size: 3}\nstatus: {ready: 2}", nil},
		"one number, written in two ways": {"spec: {size: 3.0, ratio: 0.5}", nil},
		"a list":                          {"spec: {leaves: [a, b]}", nil},
		"subsets in a list":               {"status: {conditions: [{type: Available}, {type: Degraded, status: 'False'}]}", nil},
		"a label":                         {"metadata: {labels: {cup: big}}", nil},
		"other values, sorted":            {"status: {ready: 3}\nspec: {size: 4}", []string{"spec.size: expected 4, found 3", "status.ready: expected 3, found 2"}},
		"a text for a number":             {"spec: {size: '3'}", []string{"spec.size: types are not comparable, string - int64"}},
		"a field that is not there":       {"spec: {milk: true}", []string{"spec.milk is missing"}},
		"a mapping that is not there":     {"spec: {sugar: {spoons: 1}}", []string{"spec.sugar is missing"}},
		"a shorter list":                  {"spec: {leaves: [a]}", []string{`spec.leaves: lengths of slices don't match, found ["a","b"]`}},
		"another item":                    {"spec: {leaves: [a, c]}", []string{`spec.leaves[1]: expected "c", found "b"`}},
		"a list for a number":             {"spec: {size: [3]}", []string{"spec.size: expected a slice, found 3"}},
		"an expression":                   {"spec: {(size > `2`): true}", nil},
		"a filter":                        {"status:\n  (conditions[?type == 'Available']): [{status: 'True'}]", nil},
		"each item":                       {"status:\n  ~.conditions:\n    (type != ''): true", nil},
		"an expression that is wrong":     {"spec: {(size > `3`): true}", []string{"spec.(size > `3`): expected true, found false"}},
		"CEL":                             {"spec: {(cel; object.size > 2): true}", nil},
		"no such function":                {"spec: {(grow(size)): true}", []string{"spec.(grow(size)): unknown function: grow"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := Parse("tea.yaml", []byte("apiVersion: tea.example.com/v1\nkind: Tea\n"+test.fields))
			if err != nil {
				t.Fatal(err)
			}
			var object map[string]any
			if err := utiljson.Unmarshal([]byte(tea), &object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, list[0].Differences(object)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDifferencesAreBounded(t *testing.T) {
	t.Parallel()
	list, err := Parse("tea.yaml", []byte("apiVersion: v1\nkind: Tea\nspec: {leaves: short}"))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("ä", 3*longest)
	got := list[0].Differences(map[string]any{"spec": map[string]any{"leaves": long}})
	if len(got) != 1 || len([]rune(got[0])) > 3*longest {
		t.Errorf("%q", got)
	}
	fields := "apiVersion: v1\nkind: Tea\n"
	for _, c := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		fields += c + ": 1\n"
	}
	if list, err = Parse("tea.yaml", []byte(fields)); err != nil {
		t.Fatal(err)
	}
	if got = list[0].Differences(map[string]any{}); len(got) != most+1 || got[most] != "and 16 more" {
		t.Errorf("%q", got)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	list, err := Parse("tea.yaml", []byte(`apiVersion: tea.example.com/v1
kind: Tea
metadata: {name: green, namespace: pot}
---
apiVersion: kuttl.dev/v1beta1
kind: TestAssert
timeout: 90
collectors: [{type: pod}]
---
apiVersion: v1
kind: Pod
metadata:
  labels: {cup: big, (size): small}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 {
		t.Fatalf("%d assertions", len(list))
	}
	for i, want := range []Assertion{
		{Name: "green", Namespace: "pot", Labels: map[string]string{}},
		{Labels: map[string]string{"cup": "big"}},
	} {
		got := list[i]
		if got.Name != want.Name || got.Namespace != want.Namespace || !cmp.Equal(got.Labels, want.Labels) || got.Timeout != 90*time.Second {
			t.Errorf("%+v", got)
		}
	}
	if at := list[1].At.String(); at != "tea.yaml:10:1" {
		t.Error(at)
	}
	if kind := list[0].Kind.String(); kind != "tea.example.com/v1, Kind=Tea" {
		t.Error(kind)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: v1\nkind: Pod\n"
	for name, test := range map[string]struct{ text, want string }{
		"nothing":                 {"# nothing\n", "a.yaml: there is no object in it"},
		"no YAML":                 {"a: [", "a.yaml:1"},
		"a list":                  {"- a\n", "a.yaml:1:1: an assertion is a mapping with apiVersion and kind"},
		"no kind":                 {head + "---\napiVersion: v1\n", "a.yaml:4:1: an assertion is a mapping"},
		"an apiVersion too deep":  {"apiVersion: a/b/c\nkind: Pod\n", "a.yaml:1:1: an assertion is a mapping"},
		"a key twice":             {head + "spec: {a: 1, a: 2}\n", "the key a stands twice"},
		"a broken expression":     {head + "spec:\n  (size >): true\n", "a.yaml:1:1: spec.(size >)"},
		"an expression as a name": {head + "metadata:\n  name: (join('-', ['a']))\n", "a.yaml:4:3: metadata.name is a text, and no expression"},
		"a number as a namespace": {head + "metadata: {namespace: 1}\n", "metadata.namespace is a text"},
		"commands":                {head + "---\napiVersion: kuttl.dev/v1beta1\nkind: TestAssert\ncommands: []\n", "a.yaml:6:1: the field commands of a TestAssert is not supported"},
		"no time":                 {"apiVersion: kuttl.dev/v1beta1\nkind: TestAssert\ntimeout: 0\n", "a.yaml:3:1: the timeout of a TestAssert"},
		"a test of chainsaw":      {"apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\n", "a.yaml:1:1: a Test runs a test and asserts nothing"},
		"a step of kuttl":         {"apiVersion: kuttl.dev/v1beta1\nkind: TestStep\n", "a.yaml:1:1: a TestStep runs a test"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Parse("a.yaml", []byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func FuzzAssert(f *testing.F) {
	f.Add("spec: {size: 3}", tea)
	f.Add("status:\n  (conditions[?type == 'Available']): [{status: 'True'}]", tea)
	f.Add("status:\n  ~x.conditions -> y:\n    ($x >= `0`): true", tea)
	f.Add("spec: {(cel; object.size > 2): true, leaves: null}", `{"spec":{"leaves":{"a":[null]}}}`)
	f.Fuzz(func(t *testing.T, fields, object string) {
		list, err := Parse("a.yaml", []byte("apiVersion: v1\nkind: Pod\n"+fields))
		if err != nil {
			return
		}
		var o map[string]any
		if utiljson.Unmarshal([]byte(object), &o) != nil {
			return
		}
		for _, a := range list {
			for _, d := range a.Differences(o) {
				if len(d) > 20*longest {
					t.Errorf("a difference of %d bytes", len(d))
				}
			}
		}
	})
}
