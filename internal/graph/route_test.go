package graph

import (
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/catalog"
)

func TestRoute(t *testing.T) {
	p := catalog.Parse("f", []byte(`
{schema: olm.package, name: tea, defaultChannel: c}
---
{schema: olm.channel, package: tea, name: c, entries: [{name: tea.v1}, {name: tea.v2, replaces: tea.v1}, {name: tea.v3, replaces: tea.v2, skipRange: <1.0.0}]}
---
{schema: olm.bundle, package: tea, name: tea.v1, properties: [{type: olm.package, value: {packageName: tea, version: 1.0.0}}]}
---
{schema: olm.bundle, package: tea, name: tea.v2, properties: [{type: olm.package, value: {packageName: tea, version: 2.0.0}}]}
---
{schema: olm.bundle, package: tea, name: tea.v3, properties: [{type: olm.package, value: {packageName: tea, version: 3.0.0}}]}
`)).Find("tea")
	route := New(p, p.Channel("c"))
	if route.Err() != nil {
		t.Fatal(route.Err())
	}
	if route.Head() != "tea.v3" || strings.Join(route.Chain(), " ") != "tea.v1 tea.v2 tea.v3" {
		t.Errorf("head %s, chain %v", route.Head(), route.Chain())
	}
	for _, test := range []struct{ installed, version, way string }{
		{"tea.v1", "1.0.0", "tea.v2 tea.v3"},
		{"tea.v2", "2.0.0", "tea.v3"},
		{"tea.v3", "3.0.0", ""},
		{"other.v0", "0.9.0", "tea.v3"},
		{"other.v4", "4.0.0", ""},
	} {
		version := semver.MustParse(test.version)
		way := strings.Join(route.Way(test.installed, version), " ")
		if way != test.way {
			t.Errorf("from %s: %s, want %s", test.installed, way, test.way)
		}
		if next := route.Next(test.installed, version); next != New(p, p.Channel("c")).Next(test.installed, version) {
			t.Errorf("from %s: %s is not what the channel says", test.installed, next)
		}
	}
}
