package walk

import (
	"testing"

	"github.com/olmkit/olmkit/internal/managerlog"
)

func TestOfNewNamespace(t *testing.T) {
	const said = `Reconciler error {"namespace": "olmkit-samples-x7k2p", "error": "it is being terminated"}`
	for name, c := range map[string]struct {
		group managerlog.Group
		want  bool
	}{
		"there":          {managerlog.Group{Excerpt: said, Objects: []string{"olmkit-samples-x7k2p/a"}}, true},
		"of no object":   {managerlog.Group{Excerpt: said}, true},
		"also elsewhere": {managerlog.Group{Excerpt: said, Objects: []string{"olmkit-samples-x7k2p/a", "olmkit-samples/a"}}, false},
		"elsewhere":      {managerlog.Group{Excerpt: "Reconciler error olmkit-samples/a", Objects: []string{"olmkit-samples/a"}}, false},
		"a panic":        {managerlog.Group{Excerpt: said, Panic: true}, false},
	} {
		if got := ofNewNamespace(c.group); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
