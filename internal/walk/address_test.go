package walk

import (
	"testing"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// TestLeads walks to releases that say of new objects where their Service is.
func TestLeads(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1}}]`, []string{"v1", "v2", "v3"}, thingDefinition)
	expectAll(t, p, plan, []pairing{
		{leads, leads, "", ""},
		{leads, strays, "U510 U525", "the ConfigMap data.server of a new object like it leads to a.olmkit-samples.svc:6380 with v2, where there is no Service; with v1 it led to one"},
	})
}
