package graph

import (
	"bytes"
	"slices"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
)

// FuzzGraph: no catalog makes the graph panic or go in circles, a plan has only hops that are edges, and every drawing of
// it can be made.
func FuzzGraph(f *testing.F) {
	f.Add([]byte(`
schema: olm.package
name: p
defaultChannel: c
---
schema: olm.channel
package: p
name: c
entries:
- name: p.v1
- {name: p.v2, replaces: p.v1, skips: [p.v0], skipRange: ">=0.1.0 <2.0.0"}
- {name: p.v3, replaces: p.v2}
---
schema: olm.bundle
package: p
name: p.v1
properties: [{type: olm.package, value: {packageName: p, version: 1.0.0}}]
---
schema: olm.bundle
package: p
name: p.v2
properties: [{type: olm.package, value: {packageName: p, version: 2.0.0-rc.1+x}}]
`))
	f.Add([]byte("schema: olm.channel\npackage: p\nname: c\nentries: [{name: a, replaces: b}, {name: b, replaces: a}]"))
	f.Add([]byte("schema: olm.channel\npackage: p\nname: c\nentries: [{name: a, replaces: a, skips: [a, a]}, {name: a}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := catalog.Parse("f", data)
		for _, p := range c.Packages {
			for _, channel := range p.Channels {
				g := New(p, channel)
				edges := slices.Collect(g.All())
				if g.Err() == nil && len(channel.Entries) > 0 && len(g.Order()) == 0 {
					t.Errorf("no head, and no error")
				}
				for _, b := range p.Bundles {
					g.Next(b.Name, b.Version)
				}
				for _, mode := range Modes {
					plan, err := NewPlan(p, Options{Channel: channel.Name, Mode: mode, MaxHops: 3})
					if err != nil {
						continue
					}
					for _, hop := range plan.Hops {
						if !slices.ContainsFunc(edges, func(e Edge) bool { return e.From == hop.From && e.To == hop.To }) {
							t.Errorf("%s to %s is no edge", hop.From, hop.To)
						}
					}
				}
				for _, format := range Formats {
					var b bytes.Buffer
					if err := Draw(&b, format, []Drawing{NewDrawing(p, channel, true)}); err != nil {
						t.Errorf("draw as %s: %v", format, err)
					}
				}
			}
		}
	})
}
