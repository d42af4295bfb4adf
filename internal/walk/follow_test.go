package walk

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// What was written is known by its generation, or by what it says where it has none; what others write, as the status of a claim, does not count.
func TestMoved(t *testing.T) {
	operands := func(generation int64, version string) map[string]observe.Operand {
		all := map[string]observe.Operand{}
		for _, kind := range []string{"Deployment", "ConfigMap", "PersistentVolumeClaim", "ReplicaSet"} {
			o := observe.Operand{Kind: kind, Namespace: "n", Name: "a", Direct: kind != "ReplicaSet", ResourceVersion: version, Content: map[string]any{"data": version}}
			if kind == "Deployment" || kind == "ReplicaSet" {
				o.Marks = map[string]any{"generation": generation}
			}
			all[o.String()] = o
		}
		return all
	}
	before := writes(operands(1, "1"))
	for _, c := range []struct {
		generation int64
		version    string
		want       []string
	}{
		{1, "1", nil}, {1, "2", []string{"ConfigMap"}}, {2, "1", []string{"Deployment"}}, {2, "2", []string{"ConfigMap", "Deployment"}},
	} {
		if got := moved(before, writes(operands(c.generation, c.version))); !slices.Equal(got, c.want) {
			t.Errorf("generation %d, version %s: %q", c.generation, c.version, got)
		}
	}
	annotated := operands(1, "1")
	m := annotated["ConfigMap/n/a"]
	m.ResourceVersion = "2"
	annotated[m.String()] = m
	if got := moved(before, writes(annotated)); len(got) > 0 {
		t.Errorf("of what says the same: %q", got)
	}
	if got := moved(nil, before); !slices.Equal(got, []string{"ConfigMap", "Deployment"}) {
		t.Errorf("of all there is: %q", got)
	}
	if got := moved(before, nil); !slices.Equal(got, []string{"ConfigMap", "Deployment"}) {
		t.Errorf("of what is gone: %q", got)
	}
}

// What runs for a copy is the same as for another one, but for their names.
func TestProgramsOf(t *testing.T) {
	type m = map[string]any
	templates := func(name, image string) map[string]string {
		o := &newObject{Object: &observe.Object{Name: name}, like: &observe.Object{Name: "a-v1", Sample: "a"}}
		template := m{"metadata": m{"annotations": m{"hash": name}}, "spec": m{"volumes": []any{m{"name": name}}, "containers": []any{m{"name": "c", "image": image, "args": []any{"/etc/" + name}}}}}
		operands := map[string]observe.Operand{}
		for _, made := range []observe.Operand{
			{Kind: "Deployment", Name: name, Direct: true, Content: m{"spec": m{"template": template}}},
			{Kind: "CronJob", Name: name, Direct: true, Content: m{"spec": m{"jobTemplate": m{"spec": m{"template": template}}}}},
			{Kind: "ReplicaSet", Name: name, Content: m{"spec": m{"template": template}}}, {Kind: "Service", Name: name, Direct: true},
		} {
			operands[made.String()] = made
		}
		return programsOf(o, operands)
	}
	one, two, other := templates("a-new1", "i:1"), templates("a-new2", "i:1"), templates("a-new3", "i:2")
	if len(one) != 2 || one["Deployment"] != two["Deployment"] || one["CronJob"] != two["CronJob"] || one["Deployment"] == other["Deployment"] {
		t.Errorf("%q\n%q\n%q", one, two, other)
	}
}

// TestRevisions: what pods are made from is what workloads that were made for the object say, and which of that runs is told by the pods' labels; how
// many there are does not matter.
func TestRevisions(t *testing.T) {
	workload := func(kind, template string, replicas int64, direct bool) observe.Operand {
		return observe.Operand{Kind: kind, Name: "a", Direct: direct, Content: map[string]any{"spec": map[string]any{"replicas": replicas, "template": map[string]any{"x": template}}}}
	}
	pod := func(label, revision string) observe.Operand {
		return observe.Operand{Kind: "Pod", Marks: map[string]any{"labels": map[string]any{label: revision}}}
	}
	type operands = map[string]observe.Operand
	before := operands{"d": workload("Deployment", "1", 1, true), "r": workload("ReplicaSet", "1", 1, false), "p": pod("pod-template-hash", "1"), "j": pod("job-name", "5")}
	for name, c := range map[string]struct {
		after         operands
		changed, runs bool
	}{
		"more pods":            {operands{"d": workload("Deployment", "1", 2, true), "p": pod("pod-template-hash", "1"), "q": pod("pod-template-hash", "1")}, false, false},
		"another template":     {operands{"d": workload("Deployment", "2", 1, true), "p": pod("pod-template-hash", "1"), "j": pod("job-name", "6")}, true, false},
		"of it runs a pod":     {operands{"d": workload("Deployment", "2", 1, true), "p": pod("pod-template-hash", "1"), "q": pod("pod-template-hash", "2")}, true, true},
		"of it runs one alone": {operands{"d": workload("Deployment", "2", 1, true), "q": pod("controller-revision-hash", "2")}, true, true},
	} {
		if changed, runs := templatesOf(c.after) != templatesOf(before), revisionsOf(c.after) != revisionsOf(before); changed != c.changed || runs != c.runs {
			t.Errorf("%s: the template changed %t, another runs %t", name, changed, runs)
		}
	}
}

// TestUnsetImage: an image that the object does not name is changed if all that runs for it has the same, and the schema has such a field.
func TestUnsetImage(t *testing.T) {
	image := apiextensionsv1.JSONSchemaProps{Type: "string"}
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{"image": image}}}}
	runs := func(images ...string) map[string]observe.Operand {
		var containers []any
		for _, i := range images {
			containers = append(containers, map[string]any{"image": i})
		}
		return map[string]observe.Operand{
			"d": {Content: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}}}, "s": {Content: map[string]any{}},
		}
	}
	names := map[string]any{"spec": map[string]any{"image": "tea"}}
	for name, c := range map[string]struct {
		schema   *apiextensionsv1.JSONSchemaProps
		object   map[string]any
		operands map[string]observe.Operand
		want     any
	}{
		"one image":         {schema, nil, runs("tea:1", "tea:1"), "tea:1-olmkit"},
		"two images":        {schema, nil, runs("tea:1", "cup:1"), nil},
		"nothing runs":      {schema, nil, nil, nil},
		"a digest":          {schema, nil, runs("tea@sha256:1"), nil},
		"the object's own":  {schema, names, runs("tea:1"), nil},
		"no field for that": {&apiextensionsv1.JSONSchemaProps{}, nil, runs("tea:1"), nil},
	} {
		var got any
		for _, change := range unsetImage(c.schema, c.object, c.operands) {
			if got = change.there; change.back != nil {
				t.Errorf("%s: it is not taken back", name)
			}
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// described is a cluster that simulates images or does not.
type described struct {
	cluster.Cluster
	simulates bool
}

func (d described) Describe() cluster.Description { return cluster.Description{Simulates: d.simulates} }

// TestWordsOf: an image that nobody has is tried where it is simulated, or where what runs comes back from it; what the API server takes only alone is
// not tried.
func TestWordsOf(t *testing.T) {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	props := map[string]apiextensionsv1.JSONSchemaProps{"image": text, "schedule": text}
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: props}}}
	spec := map[string]any{"image": "tea:1", "schedule": "1 * * * *"}
	runs := func(kind string) map[string]observe.Operand {
		template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": "tea:1"}}, "schedule": "1 * * * *"}}
		return map[string]observe.Operand{"a": {Kind: kind, Direct: true, Content: map[string]any{"spec": map[string]any{"template": template}}}}
	}
	found := judge.Carried(spec, slices.Collect(maps.Values(runs("Deployment"))))
	unset := map[string]any{"schedule": "1 * * * *"}
	for name, c := range map[string]struct {
		simulates bool
		kind      string
		spec      map[string]any
		refused   int // of how many changes at a time the API server refuses
		want      string
	}{
		"a node would pull it":         {false, "Deployment", spec, 9, "spec.schedule"},
		"it is simulated":              {true, "StatefulSet", spec, 9, "spec.image spec.schedule"},
		"nothing is said of the image": {true, "StatefulSet", unset, 9, "spec.schedule spec.image"},
		"nor simulated":                {false, "StatefulSet", unset, 9, "spec.schedule"},
		"only alone":                   {true, "StatefulSet", unset, 2, "spec.schedule"},
		"not even that":                {true, "Deployment", spec, 1, ""},
	} {
		w := &walk{Cluster: &observe.Cluster{Provider: described{simulates: c.simulates}}}
		var got []string
		for _, change := range w.wordsOf(schema, &unstructured.Unstructured{Object: map[string]any{"spec": c.spec}}, runs(c.kind), found, func(changes []word) error {
			if len(changes) >= c.refused {
				return errors.New("refused")
			}
			return nil
		}) {
			got = append(got, change.String())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// TestNotBack: what was changed back is as before, or another than it was meanwhile; what stays as it was then is told field by field, but for notes, claims, what came back late, the
// number of pods that somebody scales, and what is there no more or anew. Of Secrets credentials count that are others than before.
func TestNotBack(t *testing.T) {
	const name = "a-new2"
	named := func(names ...string) (list []any) {
		for _, n := range names {
			list = append(list, map[string]any{"name": n})
		}
		return list
	}
	for title, c := range map[string]struct {
		kind                     string
		first, before, there, is map[string]any
		besides                  string // a kind that is there as well
		want                     []string
	}{
		"as before":            {kind: "Ingress", before: map[string]any{"host": "a"}, there: map[string]any{"host": "b"}, is: map[string]any{"host": "a"}},
		"as it was there":      {kind: "Ingress", before: map[string]any{"host": "a"}, there: map[string]any{"host": "b"}, is: map[string]any{"host": "b"}, want: []string{"Ingress host"}},
		"one more":             {kind: "Ingress", before: map[string]any{}, there: map[string]any{"host": []any{"b"}}, is: map[string]any{"host": []any{"b"}}, want: []string{"Ingress host[0]"}},
		"in another order":     {kind: "Service", first: map[string]any{"ports": named("a", "b", "c")}, before: map[string]any{"ports": named("a", "b", "c")}, there: map[string]any{"ports": named("a", "b")}, is: map[string]any{"ports": named("b", "c", "a")}},
		"one that stays":       {kind: "Service", before: map[string]any{"ports": named("a")}, there: map[string]any{"ports": named("b", "a")}, is: map[string]any{"ports": named("b", "a")}, want: []string{"Service ports.b.name"}},
		"another again":        {kind: "ConfigMap", before: map[string]any{"at": "1"}, there: map[string]any{"at": "2"}, is: map[string]any{"at": "3"}},
		"as at first":          {kind: "Ingress", first: map[string]any{"host": "b"}, before: map[string]any{"host": "a"}, there: map[string]any{"host": "b"}, is: map[string]any{"host": "b"}},
		"a note":               {kind: "Ingress", before: map[string]any{"annotations": "1"}, there: map[string]any{"annotations": "2"}, is: map[string]any{"annotations": "2"}},
		"a claim":              {kind: "PersistentVolumeClaim", before: map[string]any{"size": "1"}, there: map[string]any{"size": "2"}, is: map[string]any{"size": "2"}},
		"the number of pods":   {kind: "Deployment", before: map[string]any{"spec": map[string]any{"replicas": "1"}}, there: map[string]any{"spec": map[string]any{"replicas": "2"}}, is: map[string]any{"spec": map[string]any{"replicas": "2"}}, want: []string{"Deployment spec.replicas"}},
		"pods that are scaled": {kind: "Deployment", before: map[string]any{"spec": map[string]any{"replicas": "1"}}, there: map[string]any{"spec": map[string]any{"replicas": "2"}}, is: map[string]any{"spec": map[string]any{"replicas": "2"}}, besides: "HorizontalPodAutoscaler"},
		"a password":           {kind: "Secret", before: map[string]any{"data": map[string]any{"password": "1"}}, there: map[string]any{"data": map[string]any{"password": "2"}}, is: map[string]any{"data": map[string]any{"password": "3"}}, want: []string{"Secret data.password"}},
		"no password":          {kind: "Secret", before: map[string]any{"data": map[string]any{"at": "1"}}, there: map[string]any{"data": map[string]any{"at": "2"}}, is: map[string]any{"data": map[string]any{"at": "2"}}},
		"a certificate's key":  {kind: "Secret", before: map[string]any{"data": map[string]any{"tls.key": "1", "tls.crt": "1"}}, there: map[string]any{"data": map[string]any{"tls.key": "2", "tls.crt": "2"}}, is: map[string]any{"data": map[string]any{"tls.key": "2", "tls.crt": "2"}}},
		"gone":                 {kind: "Ingress", before: map[string]any{"host": "a"}, there: map[string]any{"host": "b"}},
	} {
		o := &newObject{Object: &observe.Object{Kind: "Pot", Namespace: "n", Name: name}}
		made := func(content map[string]any) map[string]observe.Operand {
			all := map[string]observe.Operand{}
			if content != nil {
				all["1"] = observe.Operand{Kind: c.kind, Namespace: "n", Name: name, Of: o.String(), Direct: true, Content: content}
			}
			if c.besides != "" {
				all["2"] = observe.Operand{Kind: c.besides, Namespace: "n", Name: name, Of: o.String(), Direct: true}
			}
			return all
		}
		if o.first = made(c.before); c.first != nil {
			o.first = made(c.first)
		}
		if got := o.notBack(made(c.before), made(c.there), made(c.is)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", title, got, c.want)
		}
	}
}

// TestTakes: a need that belongs to the copy is the user's no more; another of the name of another kind, and one that belongs to nobody, are not meant.
func TestTakes(t *testing.T) {
	o := &newObject{Object: &observe.Object{Kind: "Pot", Namespace: "n", Name: "a-new2"}, needs: []need{{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"kind": "ConfigMap", "metadata": map[string]any{"name": "page-new3"},
	}}, of: "page"}}}
	for of, want := range map[string]int{"Pot/n/a-new2": 1, "Pot/n/a": 0, "": 0} {
		got := o.takes(map[string]observe.Operand{"1": {Kind: "ConfigMap", Name: "page-new3", Of: of, Direct: true}, "2": {Kind: "Secret", Name: "page-new3", Of: of, Direct: true}})
		if len(got) != want || want > 0 && got[0] != "ConfigMap page" {
			t.Errorf("of %q: %q", of, got)
		}
	}
}

// TestShed: what was made for a copy directly and is gone is named as that of each copy; what comes and goes by itself, and what the copy needs, is not.
func TestShed(t *testing.T) {
	o := &newObject{Object: &observe.Object{Kind: "Pot", Name: "a-new1"}}
	before := map[string]observe.Operand{}
	for _, made := range []observe.Operand{
		{Kind: "ConfigMap", Name: "a-new1", Direct: true}, {Kind: "RoleBinding", Name: "a-new1-bob", Direct: true}, {Kind: "Service", Name: "a-new1", Direct: true}, {Kind: "ReplicaSet", Name: "a-new1-x"},
		{Kind: "Job", Name: "a-new1-x7k2p", Direct: true}, {Kind: "Job", Name: "a-new1-setup", Direct: true},
	} {
		before[made.String()] = made
	}
	now := maps.Clone(before)
	delete(now, "RoleBinding//a-new1-bob")
	delete(now, "ConfigMap//a-new1")
	delete(now, "ReplicaSet//a-new1-x")
	delete(now, "Job//a-new1-x7k2p")
	delete(now, "Job//a-new1-setup")
	if got := o.shed(before, now); !slices.Equal(got, []string{"ConfigMap", "Job …-setup", "RoleBinding …-bob"}) {
		t.Errorf("%q", got)
	}
	if got := o.shed(now, now); len(got) > 0 || len(before) != 6 {
		t.Errorf("nothing went: %q", got)
	}
}

// What is called after what generateName called has the same name for each copy.
func TestCalled(t *testing.T) {
	o := &newObject{Object: &observe.Object{Kind: "Pot", Name: "a-new1"}}
	for name, want := range map[string]string{
		"a-new1": "Service", "a-new1-head": "Service …-head", "a-new1-x7k2p-head-svc": "Service …-*-head-svc", "a-new1-tbbgk": "Service …-*", "a-new1-https": "Service …-https", "a-new1-https-2": "Service …-https-2",
		"a-new1-mysql": "Service …-mysql", "a-new1-tbbgkw": "Service …-tbbgkw", "other": "Service other",
	} {
		if got := o.called(observe.Operand{Kind: "Service", Name: name}); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestHonours: of what says something else than before, what says the number that is asked for; other lines, and parts of other numbers, do not.
func TestHonours(t *testing.T) {
	says := func(conf, args string) map[string]observe.Operand {
		return map[string]observe.Operand{
			"ConfigMap/n/a-new1": {Kind: "ConfigMap", Name: "a-new1", Direct: true, Content: map[string]any{"data": map[string]any{"conf": conf}}},
			"Deployment/n/a":     {Kind: "Deployment", Name: "a", Direct: true, Content: map[string]any{"spec": map[string]any{"args": args}}},
			"Pod/n/a":            {Kind: "Pod", Name: "a", Direct: true, Content: map[string]any{"spec": map[string]any{"args": args}}},
		}
	}
	o := &newObject{Object: &observe.Object{Name: "a-new1"}}
	before := says("size = 0\nlength = 10000\n", "--length=10000")
	for name, c := range map[string]struct {
		conf, args, wanted string
		want               []string
	}{
		"both":              {"size = 0\nlength = 0\n", "--length=0", "0", []string{"ConfigMap data.conf", "Deployment a spec.args"}},
		"one takes it back": {"size = 0\n", "--length=0", "0", []string{"Deployment a spec.args"}},
		"a part of another": {"size = 0\nlength = 100\n", "--length=1.0", "0", nil},
		"with a unit":       {"size = 0\nlength = 10001B\n", "--length 10001", "10001", []string{"ConfigMap data.conf", "Deployment a spec.args"}},
		"in a sum":          {"size = 0\nlength = ba0c\n", "0abc1-1 x-0 1.0.2", "0", nil},
		"no number":         {"size = 0\nlength = 0\n", "--length=0", "", nil},
	} {
		if got := o.honours(before, says(c.conf, c.args), c.wanted); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for path, want := range map[string]string{"spec.a.b": "7", "spec.a.b (to 0)": "7", "spec.c": "", "spec.d": ""} {
		if got := (step{Path: path, There: []byte(`{"spec":{"a":{"b":7},"c":"7"}}`)}).wanted(); got != want {
			t.Errorf("%s asks for %q, want %q", path, got, want)
		}
	}
}

// TestZeros: numbers that count nothing, and may be 0.
func TestZeros(t *testing.T) {
	var schema apiextensionsv1.JSONSchemaProps
	if err := yaml.Unmarshal([]byte(`{properties: {spec: {properties: {
		maxLength: {type: integer}, least: {type: integer, minimum: 1}, may: {type: integer, minimum: 0}, replicas: {type: integer}, port: {type: integer}, none: {type: integer}, unset: {type: integer}}}}}`), &schema); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range zeros(&schema, map[string]any{"spec": map[string]any{"maxLength": int64(5), "least": int64(5), "may": int64(5), "replicas": int64(5), "port": int64(5), "none": int64(0)}}) {
		got = append(got, s.Path+" "+string(s.There)+" "+string(s.Back))
	}
	want := []string{`spec.maxLength (to 0) {"spec":{"maxLength":0}} {"spec":{"maxLength":5}}`, `spec.may (to 0) {"spec":{"may":0}} {"spec":{"may":5}}`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
