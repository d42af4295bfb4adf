package walk

import (
	"slices"
	"testing"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// What names an object of another kind is tried in a new namespace, too, where it names the copy that is there.
func TestNewNamespaceOfHolders(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Holder","metadata":{"name":"h"},"spec":{"thing":"a"}},
		{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1}}]`, []string{"v1", "v2", "v3"}, thingDefinition, holderDefinition)
	expectOfHolders(t, p, plan, []pairing{
		{"", "", "", ""},
		{"", settles, code.NewIgnored, "v2 does nothing for an object like it in a namespace that is newer than the operator's pod"},
		{settles, settles, "", ""},
	})
}

// What names an object in another namespace is tried where it may say that.
func TestFar(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Holder","metadata":{"name":"h"},"spec":{"thingRef":{"name":"a"}}},
		{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1}}]`, []string{"v1", "v2", "v3"}, thingDefinition, holderDefinition)
	expectOfHolders(t, p, plan, []pairing{
		{"", "", "", ""},
		{"", nearby, code.NewIgnored, "v2 does less for an object like it that says the namespace of what it names"},
		{nearby, nearby, "", ""},
		{nearby, "", "", ""},
		{tallies, tallies, "", ""},
		{tallies, talliesNear, code.NewIgnored, "v2 does less for an object like it that says the namespace of what it names"},
		{talliesNear, talliesNear, "", ""},
		{tallies, talliesNames, code.OperandChanged, "v2 has what is made for objects of one namespace say something of one like it of another, which nothing did with v1: ConfigMap/olmkit-samples/a-holders"},
		{talliesNames, talliesNames, "", ""},
		{tallies, talliesLast, code.DoesLess + " " + code.Behind, "after a change of its spec.thingRef.name (to name another), ConfigMap a-holders of what it named before goes on telling of it"},
		{talliesLast, talliesLast, "", ""},
	})
}

// What names others comes after these; what names one that is not there does not come at all.
func TestNamedFirst(t *testing.T) {
	sample := func(kind, name, namespace string, spec map[string]any) *newObject {
		like := &observe.Object{CRD: kind, Kind: kind, Namespace: namespace, Name: name, Author: map[string]any{"spec": spec}}
		return &newObject{Object: &observe.Object{CRD: kind, Kind: kind, Namespace: "new", Name: name + "-new1"}, like: like}
	}
	pot, tea := sample("Pot", "p", "n", map[string]any{"size": "big"}), sample("Tea", "t", "n", map[string]any{"potRef": "p", "shopName": "s"})
	cup, spoon := sample("Cup", "c", "n", map[string]any{"teaName": "t"}), sample("Spoon", "sp", "n", map[string]any{"cup": "other"})
	shop, namesake := sample("Shop", "s", "", map[string]any{}), sample("Mug", "p", "n", map[string]any{"potName": "p"})
	lost := sample("Cup", "other", "n", nil)
	w := teaWalk()
	for _, o := range []*newObject{pot, tea, cup, spoon, shop, namesake, lost} {
		w.Objects = append(w.Objects, o.like)
	}
	if is, want := w.namedFirst([]*newObject{cup, spoon, namesake, tea, pot}), []*newObject{pot, namesake, tea, cup}; !slices.Equal(is, want) {
		t.Errorf("%v", is)
	}
	needs := w.namedAmong([]*newObject{pot, tea}, cup.like)
	if len(needs) != 1 || needs[0].of != "t" || needs[0].GetName() != "t-new1" || needs[0].GetNamespace() != "new" || needs[0].like != tea.like {
		t.Errorf("%v", needs)
	}
}
