package walk

import (
	"slices"
	"strconv"
	"testing"

	"github.com/olmkit/olmkit/internal/graph"
)

// FuzzShard: what is read as a shard takes a stretch of the plan, and no hop is lost or doubled.
func FuzzShard(f *testing.F) {
	for _, s := range []string{"0/1", "1/3", "auto", "auto/2", "2/2", "-1/2", "9223372036854775806/9223372036854775807", "0/99999999999999999999", "1", "/", "1/2/3"} {
		f.Add(s, "1", "4")
	}
	f.Fuzz(func(t *testing.T, s, index, of string) {
		shard, err := ParseShard(s, func(name string) string {
			switch name {
			case "CI_NODE_INDEX":
				return index
			case "CI_NODE_TOTAL":
				return of
			}
			return ""
		})
		if err != nil {
			return
		}
		if first := shard.Take(graph.Plan{Head: "a"}).First(); (first == "a") != (shard.Index == 0) {
			t.Errorf("shard %s of an installation alone begins with %q", s, first)
		}
		plan := graph.Plan{Hops: make([]graph.Edge, 7)}
		for i := range plan.Hops {
			plan.Hops[i].To = strconv.Itoa(i)
		}
		taken := shard.Take(plan)
		if len(taken.Hops)+len(taken.LeftOut) != len(plan.Hops) {
			t.Errorf("shard %s: %d hops and %d left out of %d", s, len(taken.Hops), len(taken.LeftOut), len(plan.Hops))
		}
		var before, after []graph.Edge
		if shard.Index > 0 {
			before = Shard{shard.Index - 1, shard.Of}.Take(plan).Hops
		}
		if shard.Index+1 < shard.Of {
			after = Shard{shard.Index + 1, shard.Of}.Take(plan).Hops
		}
		for _, hop := range taken.Hops {
			if slices.Contains(before, hop) || slices.Contains(after, hop) {
				t.Errorf("shard %s: hop %s is in two shards", s, hop.To)
			}
		}
	})
}
