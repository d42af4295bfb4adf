package graph

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
)

// A graph of both says where OLM v1 takes its users otherwise than OLM v0 does, and that of OLM v1 nothing of v0.
func TestDrawBoth(t *testing.T) {
	text := `schema: olm.package
name: tea
defaultChannel: c
---
schema: olm.channel
package: tea
name: c
entries:
- {name: tea.v1.0.0}
- {name: tea.v1.1.0, replaces: tea.v1.0.0}
- {name: tea.v1.2.0, replaces: tea.v1.1.0, skips: [tea.v1.1.0]}
- {name: tea.v1.3.0, replaces: tea.v1.2.0, skipRange: '<1.1.0'}
`
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0"} {
		text += "---\nschema: olm.bundle\npackage: tea\nname: tea.v" + version + "\nimage: i\nproperties: [{type: olm.package, value: {packageName: tea, version: " + version + "}}]\n"
	}
	p := catalog.Parse("catalog.yaml", []byte(text)).Packages[0]
	for name, c := range map[string]struct {
		draw   func(*catalog.Package, *catalog.Channel, bool) Drawing
		format string
		want   []string
	}{
		"both": {NewDrawingOfBoth, "text", []string{
			"   1.1.0  → 1.2.0  replaces\n",
			"   1.0.0  → 1.3.0  skipRange, not 1.1.0 (replaces)\n          OLM v1: the same, if pinned 1.1.0 (replaces)\n",
		}},
		"mermaid": {NewDrawingOfBoth, "mermaid", []string{"-.->|replaces, OLM v1 if pinned|", "-->|skipRange|"}},
		"dot":     {NewDrawingOfBoth, "dot", []string{`[label="replaces, OLM v1 if pinned", style=dotted]`}},
		"json":    {NewDrawingOfBoth, "json", []string{`"olm": "v0,v1"`, `"v1": {`}},
		"v1":      {NewV1Drawing, "text", []string{"   1.0.0  → 1.3.0  skipRange, if pinned 1.1.0 (replaces)\n", " * 1.3.0\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := Draw(&b, c.format, []Drawing{c.draw(p, p.Channels[0], false)}); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("no %q in\n%s", want, b.String())
				}
			}
		})
	}
}

// OLM v1 upgrades in channels that OLM v0 cannot order.
func TestDrawWithoutOrder(t *testing.T) {
	p := catalog.Parse("catalog.yaml", []byte(`schema: olm.package
name: tea
defaultChannel: c
---
schema: olm.channel
package: tea
name: c
entries: [{name: tea.v1.0.0}, {name: tea.v1.1.0, replaces: tea.v1.0.0}, {name: tea.v1.2.0, skips: [tea.v1.0.0]}]
---
schema: olm.bundle
package: tea
name: tea.v1.0.0
image: i
properties: [{type: olm.package, value: {packageName: tea, version: 1.0.0}}]
---
schema: olm.bundle
package: tea
name: tea.v1.1.0
image: i
properties: [{type: olm.package, value: {packageName: tea, version: 1.1.0}}]
---
schema: olm.bundle
package: tea
name: tea.v1.2.0
image: i
properties: [{type: olm.package, value: {packageName: tea, version: 1.2.0}}]
`)).Packages[0]
	d := NewDrawingOfBoth(p, p.Channels[0], false)
	if d.Problem == "" {
		t.Fatal("OLM v0 orders the channel")
	}
	for _, a := range d.Edges {
		v0, v1 := a.Taken()
		if want := map[string]Taken{"tea.v1.1.0": Possible, "tea.v1.2.0": Always}[a.To]; v1 != want || v0 == Always {
			t.Errorf("%s → %s: OLM v0 %s, OLM v1 %s, want %s", a.From, a.To, v0, v1, want)
		}
	}
	var b strings.Builder
	if err := Draw(&b, "text", []Drawing{NewV1Drawing(p, p.Channels[0], false)}); err != nil || strings.Contains(b.String(), "!") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
