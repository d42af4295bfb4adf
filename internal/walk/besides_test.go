package walk

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/progress"
)

// A walk tells on the way that it tries new objects, which takes the longest, and what it tries now.
func TestTellsOfNewObjects(t *testing.T) {
	p, plan := thingsOf(t, lifecycle.AllNamespaces, `{"size":1,"depth":40}`, "v1", "v2", "v3")
	synctest.Test(t, func(t *testing.T) {
		w := newDisposable()
		var out strings.Builder
		walk := w.connect(t, p, plan, Options{Progress: progress.New(&out)})
		defer time.Sleep(5 * time.Second)
		if _, err := walk.run(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "✓   try new objects on v1 (") {
			t.Errorf("%s", out.String())
		}
	})
}

// What only one of two samples asks for is tried as well, although the copy is one of the other: it says more.
func TestBesides(t *testing.T) {
	samples := `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1,"note":"x","paused":false}},
		{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b"},"spec":{"size":1,"depth":40}}]`
	p, plan := packageOf(t, lifecycle.AllNamespaces, samples, []string{"v1", "v2", "v3"}, thingDefinition)
	expectAll(t, p, plan, []pairing{
		{doubles, doubles, "", ""},
		{doubles, halves, code.DoesLess, "after a change of its spec.depth, what it asked for before stays in ConfigMap data.depth"},
		{paves, paves, "", ""},
		{paves, pavesOnce, code.DriftStays, "does not make Service again"},
	})
}

// A part of the spec that only one of two samples has is left out as well.
func TestBesidesParts(t *testing.T) {
	samples := `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1,"note":"x","paused":false}},
		{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b"},"spec":{"size":1,"extra":{"depth":40}}}]`
	p, plan := packageOf(t, lifecycle.AllNamespaces, samples, []string{"v1", "v2", "v3"}, func() *apiextensionsv1.CustomResourceDefinition {
		d := thingDefinition()
		d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["extra"] = apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"depth": {Type: "integer"}},
		}
		return d
	})
	for _, c := range []struct{ v2, code, says string }{
		{clears, "", ""}, {litters, code.DoesLess, "its Service stays after a change of its spec.extra (leaving that out)"},
	} {
		synctest.Test(t, func(t *testing.T) { newDisposable().expect(t, p, plan, clears, c.v2, c.code, c.says) })
	}
}
