package graph

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

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

// dense is a package whose n entries all reach each other by skipRange.
func dense(n int) *catalog.Package {
	c := &catalog.Channel{Name: "c"}
	p := &catalog.Package{Name: "p", DefaultChannel: "c", Channels: []*catalog.Channel{c}}
	for i := range n {
		e := catalog.Entry{Name: fmt.Sprintf("p.v1.%d.0", i), SkipRange: ">=1.0.0 <2.0.0"}
		if i > 0 {
			e.Replaces = fmt.Sprintf("p.v1.%d.0", i-1)
		}
		c.Entries = append(c.Entries, e)
		p.Bundles = append(p.Bundles, &catalog.Bundle{Name: e.Name, Package: "p", Version: semver.MustParse(fmt.Sprintf("1.%d.0", i))})
	}
	return p
}

// TestDensePlan: a plan holds some of its hops, counts all, and goes through all.
func TestDensePlan(t *testing.T) {
	t.Parallel()
	const entries, hops = 200, 200 * 199
	plan, err := NewPlan(dense(entries), Options{Mode: All})
	if err != nil {
		t.Fatal(err)
	}
	every := slices.Collect(plan.All())
	if len(plan.Hops) != MostHops || plan.Count() != hops || len(every) != hops || !slices.Equal(every[:MostHops], plan.Hops) {
		t.Errorf("the plan holds %d hops, counts %d and goes through %d", len(plan.Hops), plan.Count(), len(every))
	}
	middle := plan.Keep(func(i int, _ Edge) bool { return 20_000 <= i && i < 20_100 })
	if !slices.Equal(middle.Hops, every[20_000:20_100]) || !slices.Equal(slices.Collect(middle.All()), middle.Hops) {
		t.Errorf("of hops 20000 to 20100 there are %d", middle.Count())
	}
	if len(middle.LeftOut) != MostLeftOut || middle.MoreLeftOut != hops-100-MostLeftOut {
		t.Errorf("of those left out %d are named, and %d more", len(middle.LeftOut), middle.MoreLeftOut)
	}
}

// TestNewest: --max-hops keeps those hops that come first when all are sorted.
func TestNewest(t *testing.T) {
	t.Parallel()
	for seed := range 500 {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		p, _ := randomPackage(r)
		all, err := NewPlan(p, Options{Mode: All})
		if err != nil || all.Count() == 0 {
			continue
		}
		most := 1 + r.IntN(all.Count())
		sorted := slices.Clone(all.Hops)
		slices.SortStableFunc(sorted, func(a, b Edge) int {
			return cmp.Or(p.Bundle(b.To).Version.Compare(p.Bundle(a.To).Version), p.Bundle(b.From).Version.Compare(p.Bundle(a.From).Version))
		})
		want := slices.DeleteFunc(slices.Clone(all.Hops), func(e Edge) bool { return !slices.Contains(sorted[:most], e) })
		cut, err := NewPlan(p, Options{Mode: All, MaxHops: most})
		if err != nil || !slices.Equal(cut.Hops, want) {
			t.Fatalf("seed %d: the newest %d of %v are %v, not %v (%v)", seed, most, all.Hops, cut.Hops, want, err)
		}
	}
}

// TestPlanned: Planned says of each two entries whether the plan has the hop.
func TestPlanned(t *testing.T) {
	t.Parallel()
	for seed := range 500 {
		p, c := randomPackage(rand.New(rand.NewPCG(uint64(seed), 9)))
		g := New(p, c)
		for _, mode := range Modes {
			plan, _ := NewPlan(p, Options{Mode: mode}) // without hops where OLM cannot order the channel
			for _, from := range c.Entries {
				for _, to := range c.Entries {
					there := slices.ContainsFunc(plan.Hops, func(e Edge) bool { return e.From == from.Name && e.To == to.Name })
					if got := g.Planned(mode, from.Name, to.Name); got != there {
						t.Fatalf("seed %d, %s: %s to %s is planned: %t, not %t", seed, mode, from.Name, to.Name, there, got)
					}
				}
			}
		}
	}
}

// TestDenseDrawing: a drawing counts the edges that are too many to draw.
func TestDenseDrawing(t *testing.T) {
	t.Parallel()
	p := dense(300)
	d := NewDrawing(p, p.Channel("c"), true)
	if len(d.Edges)+d.More != 300*299 || d.More == 0 {
		t.Errorf("%d edges are drawn, and %d more are counted", len(d.Edges), d.More)
	}
	for _, format := range Formats {
		var b strings.Builder
		if err := Draw(&b, format, []Drawing{d}); err != nil || !strings.Contains(b.String(), strconv.Itoa(d.More)) {
			t.Errorf("%s does not say that %d edges are left out (%v)", format, d.More, err)
		}
	}
}
