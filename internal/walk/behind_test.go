package walk

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/observe"
)

// TestBehind: what was made for an object and for a copy of it is the same but for names, fields that nobody can change, and what the cluster chooses.
func TestBehind(t *testing.T) {
	for name, c := range map[string]struct{ sample, copied, want string }{
		"the same":                           {"{Deployment a: {spec: {name: a, secret: users, of: [a]}}}", "{Deployment a-new2: {spec: {name: a-new2, secret: users-new7, of: [a-new2]}}}", ""},
		"another value":                      {"{Deployment a: {spec: {image: b}}}", "{Deployment a-new2: {spec: {image: c}}}", "Deployment spec.image"},
		"the sample has more":                {"{ConfigMap a: {data: {b: '1', c: '2'}}}", "{ConfigMap a-new2: {data: {b: '1'}}}", "ConfigMap data.c"},
		"the copy has more":                  {"{ConfigMap a: {data: {b: '1'}}}", "{ConfigMap a-new2: {data: {b: '1', a-new2: '2'}}}", "ConfigMap data.a"},
		"only the copy has it":               {"{}", "{PodDisruptionBudget a-new2: {}}", "PodDisruptionBudget"},
		"each under a name of its own":       {"{ConfigMap a-hl95k: {data: {b: '1'}}}", "{ConfigMap a-new2-x7c2d: {data: {b: '1'}}}", ""},
		"one more under a name of its own":   {"{ConfigMap a-hl95k: {}}", "{ConfigMap a-new2-x7c2d: {}, ConfigMap a-new2-z3f4c: {}}", "ConfigMap …-z3f4c"},
		"under a name that is no sum":        {"{ConfigMap a-config: {}}", "{ConfigMap a-new2-settings: {}}", "ConfigMap …-settings"},
		"another kind has a name of its own": {"{Service a-hl95k: {}}", "{ConfigMap a-new2-x7c2d: {}}", "ConfigMap …-*"},
		"only the sample has it":             {"{PodDisruptionBudget a: {}}", "{}", ""},
		"nobody can change it":               {"{StatefulSet a: {spec: {volumeClaimTemplates: [1], replicas: 3}}}", "{StatefulSet a-new2: {spec: {volumeClaimTemplates: [2], replicas: 2}}}", ""},
		"the cluster chooses it":             {"{Service a: {spec: {clusterIP: a, ports: [{nodePort: 1}]}}}", "{Service a-new2: {spec: {clusterIP: b, ports: [{nodePort: 2}]}}}", ""},
		"in another order":                   {"{Service a: {spec: {ports: [{name: a, port: 1}, {name: b, port: 2}]}}}", "{Service a-new2: {spec: {ports: [{name: b, port: 2}, {name: a, port: 1}]}}}", ""},
		"another item":                       {"{Service a: {spec: {ports: [{name: b, port: 1}, {name: c, port: 2}]}}}", "{Service a-new2: {spec: {ports: [{name: c, port: 3}, {name: b, port: 1}]}}}", "Service spec.ports.c.port"},
		"words in another order":             {"{Deployment a: {spec: {args: [b, c]}}}", "{Deployment a-new2: {spec: {args: [c, b]}}}", "Deployment spec.args[0], Deployment spec.args[1]"},
		"each has one of its own":            {"{Secret a: {data: 1}, Job a: {spec: 1}}", "{Secret a-new2: {data: 2}, Job a-new2: {spec: 2}}", ""},
		"the UID is in it":                   {"{ConfigMap a: {data: {uid: one}}}", "{ConfigMap a-new2: {data: {uid: two}}}", ""},
		"its name is in an image's":          {"{Deployment a: {spec: {image: 'a:1'}}}", "{Deployment a-new2: {spec: {image: 'a:1'}}}", ""},
	} {
		o, operands := besideOperands(t, c.sample, c.copied)
		var want []string
		if c.want != "" {
			want = strings.Split(c.want, ", ")
		}
		if found := o.behind(operands, nil); !slices.Equal(found, want) {
			t.Errorf("%s: %q, want %q", name, found, want)
		}
	}
}

// besideOperands are what was made for a sample called a, and for its copy a-new2, as sample and copied say.
func besideOperands(t *testing.T, sample, copied string) (*newObject, map[string]observe.Operand) {
	t.Helper()
	like := &observe.Object{Kind: "Pot", Name: "a", UID: "one"}
	o := &newObject{Object: &observe.Object{Kind: "Pot", Name: "a-new2", UID: "two"}, like: like, needs: []need{{Unstructured: &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "users-new7"}}}, of: "users"}}}
	operands := map[string]observe.Operand{}
	for of, text := range map[*observe.Object]string{like: sample, o.Object: copied} {
		var made map[string]map[string]any
		if err := yaml.Unmarshal([]byte(text), &made); err != nil {
			t.Fatal(err)
		}
		for named, content := range made {
			kind, name, _ := strings.Cut(named, " ")
			operands[of.Name+named] = observe.Operand{Kind: kind, Name: name, Of: of.String(), Direct: true, Content: content}
		}
	}
	return o, operands
}

// TestBeside: what only the sample has is told where the copy has another one of the kind in its place.
func TestBeside(t *testing.T) {
	for name, c := range map[string]struct{ sample, copied, want string }{
		"the same":                {"{Deployment a: {}, RoleBinding label-a: {}}", "{Deployment a-new2: {}, RoleBinding label-a-new2: {}}", ""},
		"another name":            {"{RoleBinding old-a: {}, RoleBinding label-a: {}, Role a: {}, Role b: {}}", "{RoleBinding label-a-new2: {}, Role b: {}}", "Role, RoleBinding old-…"},
		"none of the kind":        {"{PodDisruptionBudget a: {}}", "{Deployment a-new2: {}}", ""},
		"it was renamed":          {"{RoleBinding old-a: {}}", "{RoleBinding label-a-new2: {}}", ""},
		"an older one is kept":    {"{ConfigMap a-7x2c4d: {}, ConfigMap a-9b3f5c: {}}", "{ConfigMap a-new2-9b3f5c: {}}", ""},
		"a kind with many owners": {"{Secret a: {}, Secret b: {}}", "{Secret a-new2: {}}", ""},
	} {
		o, operands := besideOperands(t, c.sample, c.copied)
		if got := strings.Join(o.beside(operands), ", "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestSharesFields: a field that one manager applies and another one applies or updates, besides status, metadata and what the walk changes, is owned twice.
func TestSharesFields(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	applied := entry("operator", apply, "", `{"f:data":{"f:a":{},"f:b":{}},"f:spec":{"f:c":{}},"f:metadata":{"f:labels":{"f:app":{}}},"f:status":{"f:replicas":{}}}`)
	for name, c := range map[string]struct {
		other  metav1.ManagedFieldsEntry
		shares bool
	}{
		"the same field":       {entry("manager", update, "", `{"f:data":{"f:a":{}}}`), true},
		"some of the same":     {entry("manager", update, "", `{"f:data":{"f:a":{},"f:b":{}},"f:spec":{"f:c":{}}}`), true},
		"another field":        {entry("manager", update, "", `{"f:data":{"f:d":{}}}`), false},
		"metadata":             {entry("manager", update, "", `{"f:metadata":{"f:labels":{"f:app":{}}}}`), false},
		"the status":           {entry("manager", update, "status", `{"f:status":{"f:replicas":{}}}`), false},
		"the walk's":           {entry("olmkit", update, "", `{"f:data":{"f:a":{}}}`), false},
		"another applies, too": {entry("manager", apply, "", `{"f:data":{"f:a":{}}}`), true},
		"another applies else": {entry("manager", apply, "", `{"f:data":{"f:d":{}}}`), false},
		"not to be read":       {entry("manager", update, "", `{`), false},
	} {
		for _, list := range [][]metav1.ManagedFieldsEntry{{applied, c.other}, {c.other, applied}} {
			if shares := sharesFields(list); shares != c.shares {
				t.Errorf("%s: %t", name, shares)
			}
		}
	}
}

// What a ConfigMap says of objects of other kinds is theirs.
func TestWithoutEntries(t *testing.T) {
	of := func(data map[string]any) observe.Operand {
		return observe.Operand{Kind: "ConfigMap", Content: map[string]any{"data": data}}
	}
	others := map[string]bool{"www": true}
	if got := withoutEntries(of(map[string]any{"_zone": "ttl 5", "www.example.com": "A; team/www", "n.www": "x www"}), others)["data"]; !reflect.DeepEqual(got, map[string]any{"_zone": "ttl 5"}) {
		t.Errorf("%v", got)
	}
	if got := withoutEntries(of(map[string]any{"a": "n/www"}), others); len(got) > 0 {
		t.Errorf("nothing is its own: %v", got)
	}
	if got := withoutEntries(of(map[string]any{"a": "n/www"}), nil)["data"]; got == nil {
		t.Error("without others all is its own")
	}
}
