package walk

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// TestLeftOut: a text that is there may be left out where nothing requires it, and no default comes in its place.
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
	var got []string
	for _, s := range leftOut(&schema, object) {
		got = append(got, s.Path+" "+string(s.There)+" "+string(s.Back))
	}
	want := []string{
		`spec.host (leaving that out) {"spec":{"host":null}} {"spec":{"host":"b"}}`,
		`spec.tls.issuer (leaving that out) {"spec":{"tls":{"issuer":null}}} {"spec":{"tls":{"issuer":"g"}}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLeftOutAsBefore: what nothing followed is not left out again, and of what was not tried no more than two.
func TestLeftOutAsBefore(t *testing.T) {
	steps := []step{{Path: "new"}, {Path: "followed"}, {Path: "ignored"}, {Path: "newer"}, {Path: "once"}, {Path: "newest"}}
	var got []string
	for _, s := range asBefore(steps, map[string]int{"followed": judge.Surely, "ignored": 0, "once": 1}, 2) {
		got = append(got, s.Path)
	}
	if want := []string{"new", "followed", "newer"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPartsLeftOut: a part of the spec may be left out as a whole where nothing requires it, and no default comes in its place; not one on which data
// depend.
func TestPartsLeftOut(t *testing.T) {
	var schema apiextensionsv1.JSONSchemaProps
	if err := yaml.Unmarshal([]byte(`{properties: {spec: {required: [pool], properties: {
		image: {properties: {tag: {type: string}}}, tls: {properties: {mode: {type: string}}}, labels: {additionalProperties: {type: string}}, storage: {properties: {size: {type: string}}},
		log: {default: {level: info}, properties: {level: {type: string}}}, pool: {properties: {limits: {properties: {cpu: {type: string}}}, size: {type: integer}}}, none: {properties: {a: {type: string}}},
		server: {properties: {persistence: {properties: {on: {type: boolean}}}}}}}}}`), &schema); err != nil {
		t.Fatal(err)
	}
	object := map[string]any{"spec": map[string]any{
		"image": map[string]any{"tag": "1"}, "tls": map[string]any{"mode": "on"}, "labels": map[string]any{"a": "b"}, "storage": map[string]any{"size": "1Gi"},
		"log": map[string]any{"level": "info"}, "server": map[string]any{"persistence": map[string]any{"on": true}}, "pool": map[string]any{"limits": map[string]any{"cpu": "2"}, "size": int64(1)},
	}}
	var got []string
	for _, s := range partsLeftOut(&schema, object) {
		got = append(got, string(s.Back))
	}
	if want := []string{`{"spec":{"image":{"tag":"1"}}}`, `{"spec":{"pool":{"limits":{"cpu":"2"}}}}`, `{"spec":{"tls":{"mode":"on"}}}`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWithoutPulls: where nodes pull images, what names a part of one is left as it is, however it names it.
func TestWithoutPulls(t *testing.T) {
	containers := []any{map[string]any{"image": "tea.example.com/pots/tea:v1.2@sha256:0a"}}
	operands := map[string]observe.Operand{"a": {Kind: "Deployment", Content: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}}}}
	object := map[string]any{"spec": map[string]any{
		"version": "1.2", "mode": "ea", "image": map[string]any{"repository": "pots/tea"}, "pods": []any{map[string]any{"image": "tea.example.com/pots/tea:v1.2"}}, "name": "tea", "digest": "sha256:0a", "size": "1",
	}}
	all := []string{"spec.version", "spec.mode", "spec.image (leaving that out)", "spec.pods", "spec.name", "spec.digest", "spec.size", "spec.none"}
	for simulates, want := range map[bool][]string{true: all, false: {"spec.mode", "spec.size", "spec.none"}} {
		var steps []step
		for _, path := range all {
			steps = append(steps, step{Path: path})
		}
		w := &walk{Cluster: &observe.Cluster{Provider: described{simulates: simulates}}}
		var got []string
		for _, s := range w.withoutPulls(steps, object, operands) {
			got = append(got, s.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("simulated %t: %q, want %q", simulates, got, want)
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

// TestFewer: there is to be one of what many are counted of, where the schema allows that and no claims go, and a list is to have an item less, unless data depend on it.
func TestFewer(t *testing.T) {
	for name, c := range map[string]struct {
		properties, spec string
		claims           bool
		want             []string
	}{
		"a count":            {"replicas: {type: integer}", "{replicas: 3}", false, []string{`spec.replicas (to 1) {"spec":{"replicas":1}} {"spec":{"replicas":3}}`}},
		"claims go":          {"replicas: {type: integer}", "{replicas: 3}", true, nil},
		"there must be more": {"replicas: {type: integer, minimum: 2}", "{replicas: 3}", false, nil},
		"there is one":       {"replicas: {type: integer}", "{replicas: 1}", false, nil},
		"a list":             {"users: {type: array}", "{users: [{name: a}, {name: b}]}", true, []string{`spec.users (without the last) {"spec":{"users":[{"name":"a"}]}} {"spec":{"users":[{"name":"a"},{"name":"b"}]}}`}},
		"one item":           {"a: {properties: {users: {type: array}}}", "{a: {users: [b]}}", false, []string{`spec.a.users (without the last) {"spec":{"a":{"users":[]}}} {"spec":{"a":{"users":["b"]}}}`}},
		"no item":            {"users: {type: array}", "{users: []}", false, nil},
		"data":               {"volumes: {type: array}", "{volumes: [a, b]}", false, nil},
	} {
		var schema apiextensionsv1.JSONSchemaProps
		if err := yaml.Unmarshal([]byte("{properties: {spec: {properties: {"+c.properties+"}}}}"), &schema); err != nil {
			t.Fatal(err)
		}
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte("{apiVersion: v1, kind: A, spec: "+c.spec+"}"), &object); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range fewer(&schema, object.Object, c.claims) {
			got = append(got, s.Path+" "+string(s.There)+" "+string(s.Back))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestUnset: what is left out and takes one of few values is set to one, unless that would pause all of the object.
func TestUnset(t *testing.T) {
	var schema apiextensionsv1.JSONSchemaProps
	if err := yaml.Unmarshal([]byte(`{properties: {spec: {properties: {
		tls: {type: boolean}, metrics: {type: boolean}, mode: {type: string, enum: ["", fast, slow]}, image: {type: string}, size: {type: integer}, paused: {type: boolean},
		log: {properties: {json: {type: boolean}}}, backup: {properties: {suspend: {type: boolean}}}, none: {properties: {on: {type: boolean}}}}}}}`), &schema); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range unset(&schema, map[string]any{"spec": map[string]any{"metrics": false, "log": map[string]any{}, "backup": map[string]any{}}}, giveSwitch) {
		got = append(got, string(s.There)+" "+string(s.Back))
	}
	want := []string{`{"spec":{"mode":"fast"}} {"spec":{"mode":null}}`, `{"spec":{"tls":true}} {"spec":{"tls":null}}`, `{"spec":{"backup":{"suspend":true}}} {"spec":{"backup":{"suspend":null}}}`, `{"spec":{"log":{"json":true}}} {"spec":{"log":{"json":null}}}`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestUnwellAtNone: what an object that is asked for none says of itself is waited for.
func TestUnwellAtNone(t *testing.T) {
	said := func(ready string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"namespace": "n", "name": "a"},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready, "reason": "NoServers"}}},
		}}
	}
	well := ""
	for name, c := range map[string]struct {
		ready string
		later bool
		was   judge.New
		well  bool
		after time.Duration
	}{
		"it is well":                    {"True", false, judge.New{}, true, 0},
		"it is not":                     {"False", false, judge.New{}, false, boldLimit},
		"it is not, and was before":     {"False", false, judge.New{AtNone: &well}, false, judge.EffectLimit},
		"it is later, and was before":   {"False", true, judge.New{AtNone: &well}, true, 20 * time.Second},
		"it is later, and nobody knows": {"False", true, judge.New{}, false, boldLimit},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), said(c.ready))
			things := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}
			o := &newObject{Object: &observe.Object{Kind: "Thing", CRD: "things.example.com", Resource: things.GroupResource(), Version: "v1", Namespace: "n", Name: "a"}}
			w := &walk{Cluster: &observe.Cluster{Dynamic: client, Watcher: observe.NewWatcher(nil, nil, "operators")}}
			w.Watcher.See(nil, thingDefinition(), false)
			began := time.Now()
			if c.later {
				go func() {
					time.Sleep(20 * time.Second)
					_, _ = client.Resource(things).Namespace("n").Update(t.Context(), said("True"), metav1.UpdateOptions{})
				}()
			}
			why, err := w.unwellAtNone(t.Context(), o, c.was)
			if took := time.Since(began); err != nil || (*why == "") != c.well || took < c.after || took > c.after+5*time.Second {
				t.Errorf("%s: %q after %s, %v", name, *why, took, err)
			}
			time.Sleep(time.Minute)
		})
	}
}
