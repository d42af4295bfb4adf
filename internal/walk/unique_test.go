package walk

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// A copy of what is there once alone is none; it is tried with another host.
func TestUnique(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1,"host":"www.example.com"}}]`, []string{"v1", "v2", "v3"}, definitionWith("host"))
	for _, c := range []struct{ v1, v2, code, says string }{
		{hosted, hosted, "", ""},
		{accepts, accepts, "", ""},
		{hosted, hostedFree, code.NewUnowned, "v2 makes ConfigMap a for a new object like it without an owner reference"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newDisposable()
			w.expect(t, p, plan, c.v1, c.v2, c.code, c.says)
			if w.hosts["a"] != "www.example.com" || w.hosts["a-v1-w"] == "www.example.com" || w.hosts["a-v1-w"] == "" {
				t.Errorf("the sample does not have its host alone: %v", w.hosts)
			}
			for name, host := range w.hosts {
				if name != "a" && !strings.HasPrefix(name, "a-new1") && host == "www.example.com" {
					t.Errorf("%s has the sample's host: %v", name, w.hosts)
				}
			}
		})
	}
}

// Of two that say the same, the second is served once the first is gone, and not before.
func TestContests(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1,"host":"www.example.com"}}]`, []string{"v1", "v2", "v3"}, definitionWith("host"))
	expectAll(t, p, plan, []pairing{
		{hostedNext, hostedNext, "", ""},
		{hostedNext, hosted, code.DoesLess, "v2 does not serve an object like it that says in spec.host the same as one that was there before it, once that is deleted"},
		{hostedNext, hostedBoth, code.DoesLess, "v2 serves two objects like it that say the same in spec.host, of which v1 served the first one alone"},
	})
}

// A copy that is to make what is the sample's already makes something of another name: what an operator does for neither shows nothing of what it does for one.
func TestNamesMade(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1,"secretName":"tea"}}]`, []string{"v1", "v2", "v3"}, definitionWith("secretName"))
	expectAll(t, p, plan, []pairing{
		{titles, titles, "", ""},
		{titlesTakes, titlesTakes, "", ""},
		{titles, titlesNone, code.NewIgnored, "within 45s nothing is made that belongs to it"},
	})
}

// definitionWith defines Things that have a text in a field of their spec.
func definitionWith(field string) func() *apiextensionsv1.CustomResourceDefinition {
	return func() *apiextensionsv1.CustomResourceDefinition {
		d := thingDefinition()
		d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		return d
	}
}

// Whoever of two objects has what their sample names at the moment, both want it.
func TestNamesTaken(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1,"secretName":"tea"}}]`, []string{"v1", "v2"}, definitionWith("secretName"))
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.behaviour["v1"], w.behaviour["v2"] = titlesTakes, titlesTakes
		walk := w.connect(t, p, plan, Options{})
		defer time.Sleep(5 * time.Second)
		if _, err := walk.run(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		if len(walk.makes) != 1 {
			t.Errorf("what it names is not known: %v", walk.makes)
		}
	})
}

func TestUniquesOf(t *testing.T) {
	like := &observe.Object{CRD: "things.example.com", Version: "v1", Name: "a", Sample: "a", Author: map[string]any{"spec": map[string]any{
		"host": "www.example.com", "note": "x",
	}}}
	other := &observe.Object{CRD: "things.example.com", Version: "v1", Name: "b", Sample: "b", Author: map[string]any{"spec": map[string]any{"host": "b.example.com"}}}
	r := &lifecycle.Release{CRDs: []*apiextensionsv1.CustomResourceDefinition{definitionWith("host")()}}
	w := &walk{Cluster: &observe.Cluster{Objects: []*observe.Object{like, other}}, memory: newMemory()}
	if got, want := w.uniquesOf(r, like), []string{"spec.host"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	other.Author["spec"].(map[string]any)["host"] = "www.example.com"
	if got := w.uniquesOf(r, like); len(got) > 0 {
		t.Errorf("two have the same, and it is unique: %q", got)
	}
	w.uniques[ofVersion(like)] = []string{"spec.host", "spec.other"}
	object := &unstructured.Unstructured{Object: like.Author}
	copied, uniques := w.withUniques(object, like, client.ObjectKey{Namespace: "n", Name: "a-new1"})
	again, _ := w.withUniques(object, like, client.ObjectKey{Namespace: "n", Name: "a-new1"})
	host, _, _ := unstructured.NestedString(copied.Object, "spec", "host")
	same, _, _ := unstructured.NestedString(again.Object, "spec", "host")
	if len(uniques) != 1 || uniques[0] != (unique{host, "www.example.com"}) || host != same || host == "www.example.com" || object.Object["spec"].(map[string]any)["host"] != "www.example.com" {
		t.Errorf("%v, %q and then %q, the sample is %v", uniques, host, same, object.Object)
	}
}

func TestUniqueText(t *testing.T) {
	key := client.ObjectKey{Namespace: "n", Name: "a"}.String()
	for text, want := range map[string]string{"www": "wwwx5zr5", "www.example.com": "wwwx5zr5.example.com", "app.": "appx5zr5.", "/var": "/varx5zr5", "": "x5zr5"} {
		if got := uniqueText(text, key); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	of := func(name string) string {
		return uniqueText("www", unnumbered(client.ObjectKey{Namespace: "n", Name: name}.String()))
	}
	if of("www-own1") != of("www-new2") || of("www-alt1a") != of("www-alt2a") || of("www-alt1a") == of("www-alt1b") || of("www-new1") == of("www") {
		t.Error("one is as another, or not as that of the release before")
	}
}
