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
		version := func() string {
			v := fmt.Sprintf("%d.%d.%d", r.IntN(3), r.IntN(3), r.IntN(2))
			return v + []string{"", "", "", "-rc.1", "-x", "+build"}[r.IntN(6)]
		}
		var list []*node
		for range 1 + r.IntN(6) {
			var text strings.Builder
			for i := range 1 + r.IntN(4) {
				if i > 0 {
					text.WriteString([]string{" ", " ", " || ", "  "}[r.IntN(4)])
				}
				operator := []string{">=", "<", ">", "<=", "!", "!=", "", "= "}[r.IntN(8)]
				text.WriteString(operator + []string{version(), version(), version(), "1.x"}[r.IntN(4)])
			}
			n := &node{Entry: &catalog.Entry{SkipRange: text.String()}, forbidden: r.IntN(6) == 0}
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

func ranges(list []*node) []string {
	var all []string
	for _, n := range list {
		all = append(all, n.SkipRange)
	}
	return all
}
