package walk

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/test/support/expect"
)

// An object that names one of another kind may be there before that, and go after it.
func TestEarly(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1}},
		{"apiVersion":"example.com/v1","kind":"Holder","metadata":{"name":"h"},"spec":{"thing":"a"}}]`, []string{"v1", "v2", "v3"}, thingDefinition, holderDefinition)
	expectOfHolders(t, p, plan, []pairing{
		{"", "", "", ""},
		{"", misses, code.NewIgnored, "this is so if it is created before Thing a"},
		{"", clings, code.DoesLess, "v2 does not let a new object like it go when Thing a, which it names, is gone"},
		{clings, clings, "", ""},
		{"", tires, code.DoesLess, "nothing that is made for it follows a change of its Thing a's spec.size; this is so if it is created before Thing a"},
		{tires, tires, "", ""},
		{"", favours, code.DoesLess, "nothing that is made for it follows a change of its Thing a's spec.size, which two objects name; this is so if it is created before Thing a"},
		{"", sticks, code.DoesLess, "nothing that is made for it follows a change of its spec.thing (to name another)"},
		{heeds, heeds, "", ""},
		{heeds, heedsOnce, code.ReadyEarly, "the status of a new object like it goes on to say status.conditions[Ready] when Thing a, which it names, is gone, for 10s; with v1 it did not"},
		{seals, seals, "", ""},
		{seals, sealsOnce, code.DoesLess, "nothing that is made for it follows a change of its Thing a's own Secret; this is so if it is created before Thing a"},
		{sealsOnce, sealsOnce, "", ""},
		{recounts, recounts, "", ""},
		{recounts, countsOnce, code.StatusStale, "v2 does not tell in status.holders of Thing/olmkit-samples/a of new objects of other kinds"},
		{countsOnce, countsOnce, "", ""},
	})
}

// What a selector picks follows labels.
func TestUnlabel(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","labels":{"app":"x"}},"spec":{"size":1}},
		{"apiVersion":"example.com/v1","kind":"Holder","metadata":{"name":"h"},"spec":{"thing":"a","selector":{"matchLabels":{"app":"x"}}}}]`, []string{"v1", "v2", "v3"}, thingDefinition, holderDefinition)
	expectOfHolders(t, p, plan, []pairing{
		{"", "", "", ""},
		{"", takesAll, code.DoesLess, "nothing that is made for it follows a change of its label app, by which a Holder selects it"},
		{takesAll, takesAll, "", ""},
		{"", takesFar, code.OperandChanged, "v2 has what is made for objects of one namespace say something of one like it of another, which nothing did with v1: ConfigMap/olmkit-samples/of-h"},
		{takesFar, takesFar, "", ""},
	})
}

// What is made for who selects an object follows what that says.
func TestRelays(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","labels":{"app":"x"}},"spec":{"size":1,"depth":1}},
		{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b"},"spec":{"size":1}},
		{"apiVersion":"example.com/v1","kind":"Holder","metadata":{"name":"h"},"spec":{"thing":"b","selector":{"matchLabels":{"app":"x"}}}}]`, []string{"v1", "v2", "v3"}, thingDefinition, holderDefinition)
	expectOfHolders(t, p, plan, []pairing{
		{weighs, weighs, "", ""},
		{weighs, weighsOnce, code.DoesLess, "after a change of its spec.depth, what is made for others and tells of it says the same as before, not only for 30s: ConfigMap of-h and ConfigMap of-h-v1-w"},
		{weighsOnce, weighsOnce, "", ""},
	})
}

func TestSelected(t *testing.T) {
	labels := map[string]string{"app": "db", "tier": "gold", "zone": "a", "own": "x"}
	spec := map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "db", "other": "b"}, "matchExpressions": []any{
			map[string]any{"key": "tier", "operator": "In", "values": []any{"gold", "silver"}}, map[string]any{"key": "zone", "operator": "NotIn", "values": []any{"a"}},
			map[string]any{"key": "none", "operator": "Exists"},
		}},
		"template": map[string]any{"labels": map[string]any{"own": "x"}},
	}
	if got, want := selected(spec, "", labels), []string{"app", "tier"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := selected(map[string]any{"databaseSelector": map[string]any{"zone": "a"}}, "", labels); !slices.Equal(got, []string{"zone"}) {
		t.Errorf("a plain selector: %q", got)
	}
}

// What does not go without what it names gets that back, and is not left for the end.
func TestDeserted(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1}},
		{"apiVersion":"example.com/v1","kind":"Holder","metadata":{"name":"h"},"spec":{"thing":"a"}}]`, []string{"v1", "v2", "v3"}, thingDefinition, holderDefinition)
	synctest.Test(t, func(t *testing.T) {
		w := newDisposable()
		w.holders, w.behaviour["v1"], w.behaviour["v2"], w.behaviour["v3"] = true, clings, clings, clings
		r, err := w.walk(t.Context(), t, p, plan, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := codes(r.Findings); strings.Contains(got, code.Uninstall) {
			t.Errorf("%s: %s", got, expect.Said(r.Findings))
		}
	})
}
