package graph

import (
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
)

// TestFirst: a walk begins where its first hop does, or installs the head of a channel that has no hops.
func TestFirst(t *testing.T) {
	t.Parallel()
	bundle := func(name, version, more string) string {
		return "---\n{schema: olm.bundle, package: tea, name: " + name + ", image: x/y, properties: [{type: olm.package, value: {packageName: tea, version: " + version + "}}" + more + "]}\n"
	}
	const head = "{schema: olm.package, name: tea, defaultChannel: stable}\n---\n{schema: olm.channel, package: tea, name: stable, entries: "
	one, two := bundle("tea.v1", "1.0.0", ""), bundle("tea.v2", "2.0.0", "")
	for name, test := range map[string]struct {
		catalog string
		options Options
		want    string
	}{
		"one release":             {head + "[{name: tea.v1}]}\n" + one, Options{}, "tea.v1"},
		"a hop":                   {head + "[{name: tea.v1}, {name: tea.v2, replaces: tea.v1}]}\n" + one + two, Options{}, "tea.v1"},
		"the hop is cut":          {head + "[{name: tea.v1}, {name: tea.v2, replaces: tea.v1}]}\n" + one + two, Options{From: "2.0.0"}, ""},
		"the hop is no upgrade":   {head + "[{name: tea.v1}, {name: tea.v2, replaces: tea.v1}]}\n" + one + bundle("tea.v2", "2.0.0", ", {type: olm.deprecated, value: {}}"), Options{}, "tea.v1"},
		"all that is, deprecated": {head + "[{name: tea.v1}]}\n" + bundle("tea.v1", "1.0.0", ", {type: olm.deprecated, value: {}}"), Options{}, ""},
		"replaces what is gone":   {head + "[{name: tea.v2, replaces: tea.v1}]}\n" + two, Options{}, "tea.v2"},
	} {
		test.options.Mode = All
		plan, err := NewPlan(catalog.Parse("catalog.yaml", []byte(test.catalog)).Find("tea"), test.options)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := plan.First(); got != test.want {
			t.Errorf("%s: the walk begins with %q, not %q", name, got, test.want)
		}
	}
}
