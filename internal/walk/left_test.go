package walk

import (
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// TestLeftOut: a text that is there may be left out where nothing requires it, and no default comes in its place; not what an image
// says that cannot be had.
func TestLeftOut(t *testing.T) {
	var schema apiextensionsv1.JSONSchemaProps
	if err := yaml.Unmarshal([]byte(`{properties: {spec: {required: [image], properties: {
		image: {type: string}, host: {type: string}, class: {type: string, default: small}, empty: {type: string}, replicas: {type: integer},
		storage: {required: [class], properties: {class: {type: string}, size: {type: string}}}, tls: {required: [mode], properties: {mode: {type: string}, issuer: {type: string}}}}}}}`), &schema); err != nil {
		t.Fatal(err)
	}
	object := map[string]any{"spec": map[string]any{
		"image": "a", "host": "b", "class": "c", "empty": "", "replicas": int64(2), "unknown": "d", "storage": map[string]any{"class": "e", "size": "1Gi"}, "tls": map[string]any{"mode": "f", "issuer": "g"},
	}}
	host, issuer := `spec.host (leaving it out) {"spec":{"host":null}} {"spec":{"host":"b"}}`, `spec.tls.issuer (leaving it out) {"spec":{"tls":{"issuer":null}}} {"spec":{"tls":{"issuer":"g"}}}`
	for _, c := range []struct{ images, want []string }{{nil, []string{host, issuer}}, {[]string{"tea:g"}, []string{host}}} {
		var got []string
		for _, s := range leftOut(&schema, object, c.images) {
			got = append(got, s.Path+" "+string(s.There)+" "+string(s.Back))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("where %q run: %q, want %q", c.images, got, c.want)
		}
	}
}

// TestLeftOutAsBefore: what nothing followed is not left out again, and of what was not tried no more than two.
func TestLeftOutAsBefore(t *testing.T) {
	steps := []step{{Path: "new"}, {Path: "followed"}, {Path: "ignored"}, {Path: "newer"}, {Path: "once"}, {Path: "newest"}}
	var got []string
	for _, s := range leftOutAsBefore(steps, map[string]int{"followed": judge.Surely, "ignored": 0, "once": 1}) {
		got = append(got, s.Path)
	}
	if want := []string{"new", "followed", "newer"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPartsLeftOut: a part of the spec may be left out as a whole where nothing requires it, and no default comes in its place; not one on which data
// depend, nor one of which an image says something that cannot be had.
func TestPartsLeftOut(t *testing.T) {
	var schema apiextensionsv1.JSONSchemaProps
	if err := yaml.Unmarshal([]byte(`{properties: {spec: {required: [pool], properties: {
		image: {properties: {tag: {type: string}}}, tls: {properties: {mode: {type: string}}}, labels: {additionalProperties: {type: string}}, storage: {properties: {size: {type: string}}},
		log: {default: {level: info}, properties: {level: {type: string}}}, pool: {properties: {limits: {properties: {cpu: {type: string}}}, size: {type: integer}}}, none: {properties: {a: {type: string}}}}}}}`), &schema); err != nil {
		t.Fatal(err)
	}
	object := map[string]any{"spec": map[string]any{
		"image": map[string]any{"tag": "1"}, "tls": map[string]any{"mode": "on"}, "labels": map[string]any{"a": "b"}, "storage": map[string]any{"size": "1Gi"},
		"log": map[string]any{"level": "info"}, "pool": map[string]any{"limits": map[string]any{"cpu": "2"}, "size": int64(1)},
	}}
	image, limits, tls := `{"spec":{"image":{"tag":"1"}}}`, `{"spec":{"pool":{"limits":{"cpu":"2"}}}}`, `{"spec":{"tls":{"mode":"on"}}}`
	for _, c := range []struct{ images, want []string }{{nil, []string{image, limits, tls}}, {[]string{"tea:1"}, []string{limits, tls}}} {
		var got []string
		for _, s := range partsLeftOut(&schema, object, c.images) {
			got = append(got, string(s.Back))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("where %q run: %q, want %q", c.images, got, c.want)
		}
	}
}

// TestNoneOf: the count nearest to the top is to be 0 where the schema allows that.
func TestNoneOf(t *testing.T) {
	for name, c := range map[string]struct{ properties, spec, want string }{
		"a count":            {"replicas: {type: integer}", "{replicas: 2}", `spec.replicas (to 0) {"spec":{"replicas":0}} {"spec":{"replicas":2}}`},
		"it may be none":     {"size: {type: integer, minimum: 0}", "{size: 2}", `spec.size (to 0) {"spec":{"size":0}} {"spec":{"size":2}}`},
		"there must be some": {"replicas: {type: integer, minimum: 1}", "{replicas: 2}", ""},
		"there are none":     {"replicas: {type: integer}", "{replicas: 0}", ""},
		"nothing is said":    {"replicas: {type: integer}", "{}", ""},
		"of some numbers":    {"replicas: {type: integer, enum: [1, 3]}", "{replicas: 3}", ""},
		"it limits":          {"maxReplicas: {type: integer}", "{maxReplicas: 3}", ""},
		"another number":     {"seconds: {type: integer}", "{seconds: 3}", ""},
		"the nearest":        {"a: {properties: {replicas: {type: integer}}}, replicas: {type: integer}", "{a: {replicas: 1}, replicas: 2}", `spec.replicas (to 0) {"spec":{"replicas":0}} {"spec":{"replicas":2}}`},
	} {
		var schema apiextensionsv1.JSONSchemaProps
		if err := yaml.Unmarshal([]byte("{properties: {spec: {properties: {"+c.properties+"}}}}"), &schema); err != nil {
			t.Fatal(err)
		}
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte("{kind: Pot, apiVersion: v1, spec: "+c.spec+"}"), &object); err != nil {
			t.Fatal(err)
		}
		got := ""
		if s := toNone(&schema, object.Object); s != nil {
			got = s.Path + " " + string(s.There) + " " + string(s.Back)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestScaledToNone: a workload that had pods is to have none, or is gone, or no pod is left.
func TestScaledToNone(t *testing.T) {
	made := func(kind string, replicas int64) map[string]observe.Operand {
		return map[string]observe.Operand{kind: {Kind: kind, Direct: true, Content: map[string]any{"spec": map[string]any{"replicas": replicas}}}}
	}
	for name, c := range map[string]struct {
		before, now map[string]observe.Operand
		none        bool
	}{
		"it has none":     {made("Deployment", 2), made("Deployment", 0), true},
		"it is gone":      {made("Deployment", 2), nil, true},
		"it has some":     {made("Deployment", 2), made("Deployment", 1), false},
		"it had none":     {made("Deployment", 0), made("Deployment", 0), false},
		"of a workload's": {made("ReplicaSet", 2), made("ReplicaSet", 0), false},
		"no pod is left":  {map[string]observe.Operand{"p": {Kind: "Pod"}}, nil, true},
		"a pod is left":   {map[string]observe.Operand{"p": {Kind: "Pod"}}, map[string]observe.Operand{"q": {Kind: "Pod"}}, false},
	} {
		if none := scaledToNone(c.before, c.now); none != c.none {
			t.Errorf("%s: %t", name, none)
		}
	}
}

// TestFitness: a sample is copied rather if the copy before was of it, it is well, needs something, is of the stored version, runs something and, of alike
// ones, asks for more.
func TestFitness(t *testing.T) {
	w := teaWalk()
	d := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Storage: true}}}}
	sample := func(version string, values ...any) *observe.Object {
		return &observe.Object{Version: version, Author: map[string]any{"spec": map[string]any{"of": values, "in": map[string]any{"it": true}}}}
	}
	fits := []int{
		w.fitness(sample("v1beta1", 1, 2, 3), d, false, false, false), w.fitness(sample("v1beta1"), d, true, false, false), w.fitness(sample("v1", 1), d, false, false, false),
		w.fitness(sample("v1", 1, 2), d, false, false, false), w.fitness(sample("v1beta1", 1, 2), d, false, true, false), w.fitness(sample("v1"), d, true, true, false),
		w.fitness(sample("v1", 1), d, true, true, false), w.fitness(sample("v1beta1"), d, false, false, true),
	}
	if !slices.IsSorted(fits) || len(slices.Compact(fits)) < 8 {
		t.Errorf("from the least fit: %v", fits)
	}
}

// TestFresh: what Secrets of the same names say is compared by key, unless they are the same Secret.
func TestFresh(t *testing.T) {
	first := map[string]summed{"… password": {"1", "a"}, "… user": {"1", "b"}, "kept key": {"2", "c"}, "gone key": {"3", "d"}}
	other := map[string]summed{"… password": {"4", "e"}, "… user": {"4", "b"}, "kept key": {"2", "c"}, "new key": {"5", "f"}}
	if got, want := apartFrom(other, first), map[string]bool{"… password": true, "… user": false}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	o := &newObject{Object: &observe.Object{Kind: "Pot", Name: "a-new2"}}
	made := func(kind, name, of string) observe.Operand {
		return observe.Operand{Kind: kind, Name: name, UID: "1", Of: of, Content: map[string]any{"data": map[string]any{"key": "(hidden) 1"}}}
	}
	sums := sumsOf(o, map[string]observe.Operand{"own": made("Secret", "a-new2-users", o.String()), "other": made("Secret", "a", "Pot/a"), "settings": made("ConfigMap", "a-new2", o.String())})
	if want := map[string]summed{"…-users key": {"1", "(hidden) 1"}}; !maps.Equal(sums, want) {
		t.Errorf("%v, want %v", sums, want)
	}
}
