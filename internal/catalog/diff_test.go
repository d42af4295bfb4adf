package catalog

import (
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	const before = `schema: olm.package
name: tea
defaultChannel: stable
description: Brews tea.
icon: {base64data: AAAA, mediatype: image/png}
---
schema: olm.channel
package: tea
name: stable
entries: [{name: tea.v1.0.0}]
---
schema: olm.bundle
package: tea
name: tea.v1.0.0
image: registry.example.com/tea:1.0.0
properties: [{type: olm.package, value: {packageName: tea, version: 1.0.0}}, {type: number, value: 9007199254740993}]
---
schema: com.example.leaves
package: tea
name: green
kind: {of: leaf, size: 1}
---
schema: com.example.leaves
package: tea
name: black
`
	for name, test := range map[string]struct {
		old, new string // replaced
		want     string
	}{
		"nothing": {"", "", ""},
		"order of fields": {
			"value: {packageName: tea, version: 1.0.0}", "value: {version: 1.0.0, packageName: tea}", "",
		},
		"order of fields elsewhere": {"kind: {of: leaf, size: 1}", "kind: {size: 1, of: leaf}", ""},
		"a number beyond floating point": {
			"9007199254740993", "9007199254740992", "~ package tea, bundle tea.v1.0.0: properties of type number\n",
		},
		"the description":           {"Brews tea.", "Brews.", "~ package tea: description\n"},
		"the icon":                  {"icon: {base64data: AAAA, mediatype: image/png}\n", "", "- package tea: icon\n"},
		"another schema":            {"size: 1", "size: 2", "~ package tea: document com.example.leaves green\n"},
		"another schema's document": {"name: black", "name: white", "- package tea: document com.example.leaves black\n+ package tea: document com.example.leaves white\n"},
		"a channel's field":         {"name: stable\nentries", "name: stable\nproperties: [{type: x, value: 1}]\nentries", "+ package tea: properties of channel stable\n"},
		"the package":               {"name: tea\ndefault", "name: tee\ndefault", "~ package tea: defaultChannel stable → (none)\n- package tea: description\n- package tea: icon\n+ package tee\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if !strings.Contains(before, test.old) {
				t.Fatalf("there is no %q", test.old)
			}
			changes := Diff(Parse("old", []byte(before)), Parse("new", []byte(strings.Replace(before, test.old, test.new, 1))))
			if err := WriteDiff(&b, changes); err != nil {
				t.Fatal(err)
			}
			if b.String() != test.want {
				t.Errorf("got\n%s\nwant\n%s", b.String(), test.want)
			}
		})
	}
}
