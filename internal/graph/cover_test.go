package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/catalog"
)

// TestCover: the first range that holds a version, and what a range covers of a package, are what asking every range about
// every version says.
func TestCover(t *testing.T) {
	for seed := range 3000 {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		version := func() string { return randomVersion(r) }
		var list []*node
		for range 1 + r.IntN(6) {
			n := &node{Entry: &catalog.Entry{SkipRange: randomRange(r)}, forbidden: r.IntN(6) == 0}
			if holds, err := semver.ParseRange(n.SkipRange); err == nil {
				n.skipRange = holds
			}
			list = append(list, n)
		}
		c := newCover(list)
		var bundles []*catalog.Bundle
		for range 12 {
			v := semver.MustParse(version())
			bundles = append(bundles, &catalog.Bundle{Name: v.String(), Version: v})
			want := slices.IndexFunc(list, func(n *node) bool { return !n.forbidden && n.skipRange != nil && n.skipRange(v) })
			if got := c.of(v); got != want {
				t.Fatalf("seed %d: %s is first in range %d, not %d of %v", seed, v, want, got, ranges(list))
			}
		}
		slices.SortStableFunc(bundles, func(a, b *catalog.Bundle) int { return a.Version.Compare(b.Version) })
		for _, n := range list {
			if n.skipRange == nil {
				continue
			}
			want := slices.DeleteFunc(slices.Clone(bundles), func(b *catalog.Bundle) bool { return !n.skipRange(b.Version) })
			if first, count := Covered(n.SkipRange, bundles, 3); count != len(want) || !slices.Equal(first, want[:min(3, len(want))]) {
				t.Fatalf("seed %d: %q covers %d of %v, not %d", seed, n.SkipRange, len(want), bundles, count)
			}
		}
	}
}

func randomVersion(r *rand.Rand) string {
	v := fmt.Sprintf("%d.%d.%d", r.IntN(3), r.IntN(3), r.IntN(2))
	return v + []string{"", "", "", "-rc.1", "-x", "+build"}[r.IntN(6)]
}

func randomRange(r *rand.Rand) string {
	var text strings.Builder
	for i := range 1 + r.IntN(4) {
		if i > 0 {
			text.WriteString([]string{" ", " ", " || ", "  "}[r.IntN(4)])
		}
		operator := []string{">=", "<", ">", "<=", "!", "!=", "", "= "}[r.IntN(8)]
		text.WriteString(operator + []string{randomVersion(r), randomVersion(r), randomVersion(r), "1.x"}[r.IntN(4)])
	}
	return text.String()
}

// randomPackage has one channel, whose entries name each other at random.
func randomPackage(r *rand.Rand) (*catalog.Package, *catalog.Channel) {
	c := &catalog.Channel{Name: "c"}
	p := &catalog.Package{Name: "p", DefaultChannel: "c", Channels: []*catalog.Channel{c}}
	name := func() string { return fmt.Sprintf("p.%d", r.IntN(12)) }
	for i := range 10 {
		p.Bundles = append(p.Bundles, &catalog.Bundle{Name: fmt.Sprintf("p.%d", i), Package: "p", Version: semver.MustParse(randomVersion(r))})
		e := catalog.Entry{Name: fmt.Sprintf("p.%d", i), SkipRange: []string{"", randomRange(r)}[r.IntN(2)], Skips: [][]string{nil, nil, {name(), name()}}[r.IntN(3)]}
		if i > 0 {
			e.Replaces = []string{"", fmt.Sprintf("p.%d", i-1), fmt.Sprintf("p.%d", i-1), name()}[r.IntN(4)]
		}
		c.Entries = append(c.Entries, e)
	}
	return p, c
}

// TestAll: the edges of a channel are those that asking every entry about every other gives.
func TestAll(t *testing.T) {
	for seed := range 3000 {
		p, c := randomPackage(rand.New(rand.NewPCG(uint64(seed), 5)))
		g := New(p, c)
		var want []Edge
		for _, from := range g.byVersion {
			for _, to := range g.byVersion {
				if kind := to.kind(from); to != from && kind != "" {
					want = append(want, g.edge(from, to, kind))
				}
			}
		}
		if got := slices.Collect(g.All()); !slices.Equal(got, want) {
			t.Fatalf("seed %d: the edges of %v are %v, not %v", seed, c.Entries, got, want)
		}
	}
}

func ranges(list []*node) []string {
	var all []string
	for _, n := range list {
		all = append(all, n.SkipRange)
	}
	return all
}
