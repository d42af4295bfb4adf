package graph

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
)

func TestDrawText(t *testing.T) {
	for name, test := range map[string]struct{ entries, want string }{
		"one entry": {
			`[{name: tea.v1.0.0}]`,
			`package tea, channel c (default)
 * tea.v1.0.0
`,
		},
		"an entry without a way on": {
			`[{name: tea.v1.0.0}, {name: tea.v1.1.0, replaces: tea.v1.0.0}, {name: tea.v1.2.0, replaces: tea.v1.1.0, skips: [tea.v1.1.0]}]`,
			`package tea, channel c (default): tea.v…
 * 1.2.0
   1.1.0  → 1.2.0  replaces
   1.0.0  goes nowhere, not 1.1.0 (replaces)
`,
		},
		"names that have nothing in common": {
			`[{name: tea.v1.0.0}, {name: herbal-tea.v1.1.0, replaces: tea.v1.0.0}]`,
			`package tea, channel c (default)
 * herbal-tea.v1.1.0
   tea.v1.0.0         → herbal-tea.v1.1.0  replaces
`,
		},
		"a channel that OLM cannot order": {
			`[{name: tea.v1.0.0, replaces: tea.v1.1.0}, {name: tea.v1.1.0, replaces: tea.v1.0.0}]`,
			`package tea, channel c (default): tea.v…
  ! PROBLEM
   1.1.0  declared: 1.0.0 (replaces)
   1.0.0  declared: 1.1.0 (replaces)
`,
		},
		"more than a line has room for": {
			`[{name: tea.v1.0.0}, {name: tea.v1.1.0, skips: [tea.v1.0.0]}, {name: tea.v1.2.0, skips: [tea.v1.0.0], replaces: tea.v1.1.0},
			  {name: tea.v1.3.0, skips: [tea.v1.0.0], replaces: tea.v1.2.0}, {name: tea.v1.4.0, skips: [tea.v1.0.0], replaces: tea.v1.3.0}]`,
			`package tea, channel c (default): tea.v…
 * 1.4.0
   1.3.0  → 1.4.0  replaces
   1.2.0  → 1.3.0  replaces
   1.1.0  → 1.2.0  replaces
   1.0.0  → 1.4.0  skips, not 1.1.0 (skips), 1.2.0 (skips), 1.3.0 (skips)
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := "schema: olm.package\nname: tea\ndefaultChannel: c\n---\nschema: olm.channel\npackage: tea\nname: c\nentries: " + test.entries + "\n"
			for _, version := range []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0"} {
				for _, name := range []string{"tea", "herbal-tea"} {
					text += "---\nschema: olm.bundle\npackage: tea\nname: " + name + ".v" + version + "\nimage: i\nproperties: [{type: olm.package, value: {packageName: tea, version: " + version + "}}]\n"
				}
			}
			c := catalog.Parse("catalog.yaml", []byte(text))
			if err := c.Err(); err != nil {
				t.Fatal(err)
			}
			p := c.Find("tea")
			d := NewDrawing(p, p.Channel("c"), false)
			if d.Problem != "" {
				d.Problem = "PROBLEM"
			}
			var b strings.Builder
			if err := Draw(&b, "text", []Drawing{d}); err != nil {
				t.Fatal(err)
			}
			if b.String() != test.want {
				t.Errorf("got\n%s\nwant\n%s", b.String(), test.want)
			}
		})
	}
}

func TestWriteWrapped(t *testing.T) {
	var b strings.Builder
	writeWrapped(&b, "a  ", "   ", []string{strings.Repeat("b", 60), strings.Repeat("c", 20), "d"})
	want := "a  " + strings.Repeat("b", 60) + "\n   " + strings.Repeat("c", 20) + " d\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// In Mermaid, a name is a text and nothing else, whatever it says.
func TestDrawMermaidText(t *testing.T) {
	var b strings.Builder
	d := Drawing{Package: `p"]; fake[x`, Channel: "c%%{init}", Entries: []Entry{{Name: `a"]; b[c] --> d; accTitle: x #9829; <b>`}}}
	if err := Draw(&b, "mermaid", []Drawing{d}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if strings.Count(line, `"`) > 2 || strings.Contains(line, "%%{") || strings.Contains(line, "<b>") || strings.Contains(line, "#9829") {
			t.Errorf("%s", line)
		}
	}
	if !strings.Contains(b.String(), "a#quot;]; b[c] --#gt; d; accTitle: x #35;9829; #lt;b#gt;") {
		t.Error(b.String())
	}
}
