package walk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/test/support/expect"
)

// TestHarmless prefers one more of what an object counts, and leaves alone what is delicate or bounded.
func TestHarmless(t *testing.T) {
	integer := apiextensionsv1.JSONSchemaProps{Type: "integer"}
	at := func(most float64) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "integer", Maximum: ptr.To(most)}
	}
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"size": at(3), "port": integer, "retention": integer, "only": at(1), "maxReplicas": integer,
		"server": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"replicas": integer}},
		"choice": {Type: "integer", Enum: []apiextensionsv1.JSON{{Raw: []byte("1")}}},
	}}}}
	object := map[string]any{"spec": map[string]any{
		"size": int64(3), "port": int64(80), "retention": int64(7), "only": int64(1), "maxReplicas": int64(5), "choice": int64(1), "unknown": int64(1),
		"server": map[string]any{"replicas": int64(1)}, "list": []any{int64(1)},
	}}
	var got []string
	for _, s := range harmless(schema, object) {
		got = append(got, fmt.Sprintf("%s back %s", s.There, s.Back))
	}
	want := []string{
		`{"spec":{"size":2}} back {"spec":{"size":3}}`,
		`{"spec":{"server":{"replicas":2}}} back {"spec":{"server":{"replicas":1}}}`,
		`{"spec":{"server":{"replicas":3}}} back {"spec":{"server":{"replicas":1}}}`,
		`{"spec":{"maxReplicas":6}} back {"spec":{"maxReplicas":5}}`,
		`{"spec":{"maxReplicas":4}} back {"spec":{"maxReplicas":5}}`,
		`{"spec":{"maxReplicas":7}} back {"spec":{"maxReplicas":5}}`,
		`{"spec":{"retention":8}} back {"spec":{"retention":7}}`,
		`{"spec":{"retention":6}} back {"spec":{"retention":7}}`,
		`{"spec":{"retention":9}} back {"spec":{"retention":7}}`,
		`{"metadata":{"annotations":{"olmkit.dev/nudge":"1"}}} back {"metadata":{"annotations":{"olmkit.dev/nudge":null}}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if only := harmless(nil, map[string]any{}); len(only) != 1 {
		t.Errorf("without a schema and a spec: %d steps", len(only))
	}
}

// TestBold changes all that has a small number of values, one field at a time, and nothing that would be made up.
func TestBold(t *testing.T) {
	text := &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"size": {Type: "integer"}, "port": {Type: "integer"}, "adminPort": {Type: "integer", Maximum: ptr.To(8085.0)}, "nodePort": {Type: "integer"}, "export": {Type: "integer"},
		"paused": {Type: "boolean"}, "image": {Type: "string"},
		"config": {Type: "object", AdditionalProperties: text}, "empty": {Type: "object", AdditionalProperties: text},
		"policy": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"Keep"`)}, {Raw: []byte(`"Delete"`)}}},
		"only":   {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"One"`)}}},
		"server": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"replicas": {Type: "integer"}}},
	}}}}
	object := map[string]any{"spec": map[string]any{
		"size": int64(3), "port": int64(80), "adminPort": int64(8080), "nodePort": int64(30080), "export": int64(1), "paused": false, "image": "a:b", "config": map[string]any{"a": "1", "b": "2"}, "empty": map[string]any{},
		"policy": "Keep", "only": "One", "server": map[string]any{"replicas": int64(1)}, "unknown": true, "list": []any{int64(1)},
	}}
	var got []string
	for _, s := range bold(schema, object) {
		got = append(got, fmt.Sprintf("%s: %s back %s", s.Path, s.There, s.Back))
	}
	want := []string{
		`spec.adminPort: {"spec":{"adminPort":8073}} back {"spec":{"adminPort":8080}}`,
		`spec.config: {"spec":{"config":{"a":null}}} back {"spec":{"config":{"a":"1"}}}`,
		`spec.paused: {"spec":{"paused":true}} back {"spec":{"paused":false}}`,
		`spec.policy: {"spec":{"policy":"Delete"}} back {"spec":{"policy":"Keep"}}`,
		`spec.port: {"spec":{"port":87}} back {"spec":{"port":80}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	first, others := partition(bold(schema, object), func(path string) bool { return path == "spec.policy" || path == "spec.paused" })
	if len(first) != 2 || first[0].Path != "spec.paused" || first[1].Path != "spec.policy" || len(others) != 3 || others[1].Path != "spec.config" {
		t.Errorf("wanted are %v, others %v", first, others)
	}
	if none := bold(nil, object); len(none) > 0 {
		t.Errorf("without a schema: %d steps", len(none))
	}
}

// A change that cannot be taken back is the operator's doing as long as the cluster answers: nobody can write the object any more.
func TestNotTakenBack(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.behaviour["v2"] = chokes
		r, err := w.walk(t.Context(), t, p, plan, Options{})
		if err != nil {
			t.Fatal(err)
		}
		const want = "error U403 Thing/olmkit-samples/a: the walk's change of spec.size cannot be taken back: failed calling webhook: connection refused"
		if found := expect.Said(r.Hops[0].Findings); r.Hops[0].Result != report.Failed || !slices.Contains(found, want) {
			t.Errorf("%s: %s", r.Hops[0].Result, strings.Join(found, "\n"))
		}
	})
}

// A new version may refuse some values of a field, and not all that differ.
func TestChangeRefused(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	for behaviour, want := range map[string]string{
		freezes: `error U519 Thing/olmkit-samples/a: v2 refuses each change of its spec.size that was tried, and v1 took one: things.example.com "a" is forbidden: admission webhook "things" denied the request`,
		limits:  "",
	} {
		t.Run(behaviour, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.behaviour["v2"], w.behaviour["v3"] = behaviour, behaviour
				r, err := w.walk(t.Context(), t, p, plan, Options{})
				if err != nil {
					t.Fatal(err)
				}
				found := expect.Said(r.Hops[0].Findings)
				if want == "" && r.Hops[0].Result != report.Passed || want != "" && !slices.Contains(found, want) {
					t.Errorf("%s: %s", r.Hops[0].Result, strings.Join(found, "\n"))
				}
				if r.Hops[1].Result != report.Passed {
					t.Errorf("what v2 refused v3 may refuse as well: %s", strings.Join(expect.Said(r.Hops[1].Findings), "\n"))
				}
			})
		})
	}
}

// What an object does not say any more is told, and so is that it is not well once its spec was changed and changed back, although it was
// well after the upgrade.
func TestSaysLess(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	for behaviour, want := range map[string]struct{ begins, has string }{
		hushes:  {"warning U520 Thing/olmkit-samples/a: its status says nothing any more of status.endpoint", ""},
		sickens: {"error U504 Thing/olmkit-samples/a: ", "it was well when the upgrade was through, and not any more later"},
	} {
		t.Run(behaviour, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.behaviour["v1"], w.behaviour["v2"] = reports, behaviour
				found := expect.Said(w.firstHop(t, p, plan).Findings)
				if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, want.begins) && strings.Contains(f, want.has) }) {
					t.Error(strings.Join(found, "\n"))
				}
			})
		})
	}
}

// TestWords changes texts and lists that were found in what is made for the object, where another value is known that means something.
func TestWords(t *testing.T) {
	text, list := apiextensionsv1.JSONSchemaProps{Type: "string"}, apiextensionsv1.JSONSchemaProps{Type: "array"}
	fields := map[string]any{
		"image": "r/a:1", "tag": "1", "schedule": "0 * * * *", "args": []any{"a", "b"}, "hosts": []any{"h"}, "name": "n", "unseen": []any{"x"},
		"memory": "9Mi", "volumeSize": "1Gi", "capacity": "1Gi",
	}
	properties, found := map[string]apiextensionsv1.JSONSchemaProps{}, map[string]judge.Carriage{}
	for name, value := range fields {
		properties[name] = text
		if _, is := value.([]any); is {
			properties[name] = list
		}
	}
	spec := map[string]any{"image": "r/a:1", "tag": "1", "schedule": "0 * * * *", "args": []any{"a", "b"}, "hosts": []any{"h"}, "name": "n", "memory": "9Mi", "volumeSize": "1Gi", "capacity": "1Gi"}
	for path, carriage := range judge.Carried(spec, []observe.Operand{{Kind: "Deployment", Content: spec}}) {
		found[path] = carriage
	}
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: properties}}}
	var got []string
	for _, c := range words(schema, map[string]any{"spec": fields}, found) {
		got = append(got, fmt.Sprintf("%s: %v back %v shows %v and not %v", c, c.there, c.back, c.text, c.item))
	}
	want := []string{
		"spec.args: [a] back [a b] shows <nil> and not b", "spec.hosts: [] back [h] shows <nil> and not h", "spec.image: r/a:1-olmkit back r/a:1 shows r/a:1-olmkit and not <nil>", "spec.memory: 10Mi back 9Mi shows 10Mi and not <nil>",
		"spec.schedule: 7 * * * * back 0 * * * * shows 7 * * * * and not <nil>", "spec.tag: 1-olmkit back 1 shows 1-olmkit and not <nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	shown := map[string]observe.Operand{"Deployment/n/a": {Kind: "Deployment", Content: map[string]any{"image": "r/a:1-olmkit", "args": []any{"a"}}}}
	for i, want := range []bool{true, true, true, false, false, true} {
		if c := words(schema, map[string]any{"spec": fields}, found)[i]; c.shows(shown) != want {
			t.Errorf("%s shows: %v", c, !want)
		}
	}
	for _, c := range [][2]string{
		{"r:5000/a", "r:5000/a:olmkit"}, {"r/a@sha256:0", "r/a@sha256:0"}, {"docker://a:1", "docker://a:1"},
	} {
		if got := otherWord("image", c[0]); got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
	}
	for value, want := range map[string]string{"shop.example.com": "olmkit-shop.example.com", "shop": "shop", "10.0.0.1": "10.0.0.1", "*.example.com": "*.example.com", "http://a.b": "http://a.b"} {
		if got := otherWord("hostName", value); got != want {
			t.Errorf("of the host %s: %s, want %s", value, got, want)
		}
	}
	for value, want := range map[string]string{"256Mi": "257Mi", "1Gi": "2Gi", "10m": "11m", "30s": "31s", "100mb": "101mb", "9ms": "10ms", "1": "1", "0s": "0s", "1h30m": "1h30m", "8.2": "8.2", "7x": "7x", "-1s": "-1s", "redis": "redis"} {
		if got := otherWord("memory", value); got != want {
			t.Errorf("of the amount %s: %s, want %s", value, got, want)
		}
	}
	if got := otherWord("schedule", "7 1 * * *") + otherWord("archiveSchedule", "*/5 1 * * *") + otherWord("cron", "once in a blue moon") + otherWord("schedule", "@daily"); got != "8 1 * * *7 1 * * *once in a blue moon@daily" {
		t.Error(got)
	}
}

// What an operator cannot make smaller again stays as large as the walk's change had it: the next release is asked for more.
func TestGrowsOnly(t *testing.T) {
	p, plan := thingsOf(t, lifecycle.AllNamespaces, `{"size":6}`, "v1", "v2", "v3")
	expectAll(t, p, plan, []pairing{
		{grows, grows, "", ""},
		{grows, fits, "", ""},
		{fits, fits, "", ""},
		{fits, grows, code.DoesLess, "spec.size"},
	})
	synctest.Test(t, func(t *testing.T) {
		w := newDisposable()
		w.behaviour["v1"], w.behaviour["v2"], w.behaviour["v3"] = grows, grows, grows
		walk := w.connect(t, p, plan, Options{})
		if _, err := walk.run(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // until the manager sees that nothing is wanted any more
		if w.stuck.IsZero() || !walk.takenBack.After(w.stuck) {
			t.Errorf("a sample is as it was at %s, and its operator could do nothing for it at %s", walk.takenBack, w.stuck)
		}
	})
}

// What says already what the next release takes for granted, changes nothing when it is left out.
func TestUsual(t *testing.T) {
	p, plan := thingsOf(t, lifecycle.AllNamespaces, `{"size":6,"note":"7h"}`, "v1", "v2", "v3")
	expectAll(t, p, plan, []pairing{
		{presumes, presumes, "", ""},
		{presumes, presumesSame, "", ""},
		{presumesSame, presumesSame, "", ""},
		{presumes, presumesLast, code.DoesLess, "nothing that is made for it follows a change of its spec.note (leaving that out)"},
	})
}
