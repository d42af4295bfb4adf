package walk

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// An object that names one of another kind may be there before that, and go after it.
func TestEarly(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1}},
		{"apiVersion":"example.com/v1","kind":"Holder","metadata":{"name":"h"},"spec":{"thing":"a"}}]`, []string{"v1", "v2", "v3"}, thingDefinition, holderDefinition)
	for _, c := range []struct{ v1, v2, code, says string }{
		{"", "", "", ""},
		{"", misses, code.NewIgnored, "this is so if it is created before Thing a"},
		{"", clings, code.DoesLess, "v2 does not let a new object like it go when Thing a, which it names, is gone"},
		{clings, clings, "", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.holders, w.takes = true, func(context.Context) error { return nil }
			w.expect(t, p, plan, c.v1, c.v2, c.code, c.says)
		})
	}
}
