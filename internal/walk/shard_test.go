package walk

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/graph"
)

// The parts of a plan are all of it, in its order, and no chain of hops is in two.
func TestChains(t *testing.T) {
	hops := func(ends ...string) (plan graph.Plan) {
		for _, s := range ends {
			from, to, _ := strings.Cut(s, " ")
			plan.Hops = append(plan.Hops, graph.Edge{From: from, To: to})
		}
		return plan
	}
	plan := hops("1 2", "2 3", "3 4", "1 3", "2 4", "1 4")
	switched := hops("1 2", "2 3")
	switched.Hops[1].Switch = "old"
	for name, c := range map[string]struct {
		plan graph.Plan
		n    int
		want string
	}{
		"one part":                 {plan, 1, "1 2, 2 3, 3 4, 1 3, 2 4, 1 4"},
		"two":                      {plan, 2, "1 2, 2 3, 3 4, 1 3 | 2 4, 1 4"},
		"three":                    {plan, 3, "1 2, 2 3, 3 4 | 1 3, 2 4 | 1 4"},
		"as many as can be":        {plan, 9, "1 2, 2 3, 3 4 | 1 3 | 2 4 | 1 4"},
		"a chain is one part":      {hops("1 2", "2 3", "3 4"), 4, "1 2, 2 3, 3 4"},
		"another channel's user":   {switched, 2, "1 2 | 2 3"},
		"an installation, no hops": {graph.Plan{Head: "1"}, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var parts []string
			left := 0
			for i, part := range Chains(c.plan, c.n) {
				var said []string
				for _, hop := range part.Hops {
					said = append(said, hop.From+" "+hop.To)
				}
				parts = append(parts, strings.Join(said, ", "))
				left += len(part.LeftOut)
				if (part.Head == c.plan.Head) != (i == 0 || c.plan.Head == "") {
					t.Errorf("part %d has the head %q", i, part.Head)
				}
			}
			if got := strings.Join(parts, " | "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if want := (len(parts) - 1) * len(c.plan.Hops); left != want {
				t.Errorf("%d hops are left out of the parts, want %d", left, want)
			}
		})
	}
}

// A part that installs more often has fewer hops.
func TestShardsTakeAsLong(t *testing.T) {
	var plan graph.Plan
	for _, s := range []string{"1 2", "2 3", "3 4", "4 5", "5 6", "2 4", "4 6", "3 5", "1 6", "2 6"} {
		plan.Hops = append(plan.Hops, graph.Edge{From: s[:1], To: s[2:]})
	}
	for i, want := range []int{5, 3, 2} {
		if hops := (Shard{i, 3}).Take(plan).Hops; len(hops) != want {
			t.Errorf("shard %d has %d hops, want %d: %v", i, len(hops), want, hops)
		}
	}
}

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
