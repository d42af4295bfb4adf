package walk

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/olmkit/olmkit/internal/graph"
)

// Shard is one of several parts of a plan that can be walked apart, on a cluster each.
type Shard struct {
	Index int // from 0
	Of    int // 0 for the whole plan
}

// runners are the variables by which CI systems tell one of several equal jobs which it is and how many there are, and
// from what number they count.
var runners = []struct {
	index, of string
	first     int
}{
	{"JOB_COMPLETION_INDEX", "", 0}, // of a Kubernetes Indexed Job, which does not say how many there are
	{"CI_NODE_INDEX", "CI_NODE_TOTAL", 1},
	{"CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0},
	{"BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0},
}

// ParseShard reads INDEX/OF, or auto or auto/OF, where the environment says the rest.
func ParseShard(s string, getenv func(string) string) (Shard, error) {
	i, n, _ := strings.Cut(s, "/")
	if i == "auto" {
		var err error
		if i, n, err = fromRunner(n, getenv); err != nil {
			return Shard{}, fmt.Errorf("shard %s: %w", s, err)
		}
	}
	index, err1 := strconv.Atoi(i)
	of, err2 := strconv.Atoi(n)
	if err1 != nil || err2 != nil || index < 0 || index >= of {
		return Shard{}, fmt.Errorf("shard %s: part %q of %q: must be INDEX/OF, with 0 <= INDEX < OF", s, i, n)
	}
	return Shard{index, of}, nil
}

// fromRunner returns the index, from 0, and the number of shards, which is of unless that is empty.
func fromRunner(of string, getenv func(string) string) (string, string, error) {
	for _, r := range runners {
		i := getenv(r.index)
		if i == "" {
			continue
		}
		index, err := strconv.Atoi(i)
		if err != nil {
			return "", "", fmt.Errorf("the variable %s is %q, which is no number", r.index, i)
		}
		if of == "" && r.of != "" {
			of = getenv(r.of)
		}
		if of == "" {
			return "", "", fmt.Errorf("the variable %s says which shard this is, and none of how many: write auto/N", r.index)
		}
		return strconv.Itoa(index - r.first), of, nil
	}
	var known []string
	for _, r := range runners {
		known = append(known, r.index)
	}
	return "", "", fmt.Errorf("no variable says which shard this is (%s): write INDEX/OF", strings.Join(known, ", "))
}

// Take leaves the shard's hops in plan and moves the others to what is left out. Shards are stretches of the plan that take
// about as long as each other: hops that go on from each other stay together as far as can be, since each part of a chain begins with an
// installation. A plan that is an installation alone is the first shard's.
func (s Shard) Take(plan graph.Plan) graph.Plan {
	if s.Of == 0 {
		return plan
	}
	cuts := append(cutsOf(plan, s.Of, false), graph.MostCounted)
	if s.Index >= len(cuts)-1 {
		return stretch(plan, 0, 0, s.Index == 0)
	}
	return stretch(plan, cuts[s.Index], cuts[s.Index+1], s.Index == 0)
}

// stretch leaves the hops of plan from begin to before end in it, and the installation of its head if it is the first.
func stretch(plan graph.Plan, begin, end int, first bool) graph.Plan {
	taken := plan.Keep(func(i int, _ graph.Edge) bool { return begin <= i && i < end })
	if !first {
		taken.Head = ""
	}
	return taken
}

// Chains splits plan into at most n parts, which together are all of it. No hop that goes on from the one before is parted from that:
// what older releases stored is there in each as in the whole. So there may be fewer parts, and longer ones.
func Chains(plan graph.Plan, n int) []graph.Plan {
	cuts := append(cutsOf(plan, n, true), graph.MostCounted)
	if len(cuts) <= 2 {
		return []graph.Plan{plan}
	}
	var parts []graph.Plan
	for i, begin := range cuts[:len(cuts)-1] {
		parts = append(parts, stretch(plan, begin, cuts[i+1], i == 0))
	}
	return parts
}

// installCost is how long an installation takes, with what is tried on it and its removal, in hops.
const installCost = 1

// cutsOf returns with which hops at most n parts of plan begin, of which the longest is as short as can be. Whole ones part no chain.
func cutsOf(plan graph.Plan, n int, whole bool) []int {
	var fresh []bool // for each hop, whether it begins with an installation
	var last graph.Edge
	for hop := range plan.All() {
		fresh = append(fresh, len(fresh) == 0 || hop.From != last.To || hop.Switch != "")
		if last = hop; len(fresh) == graph.MostCounted {
			break
		}
	}
	longest := sort.Search(len(fresh)*(1+installCost), func(longest int) bool {
		_, fit := pack(fresh, longest, n, whole)
		return fit
	})
	cuts, _ := pack(fresh, longest, n, whole)
	return cuts
}

// pack fills parts one after the other, none of which takes longer than longest. It reports whether that makes at most n; none is left empty
// while there is something for it.
func pack(fresh []bool, longest, n int, whole bool) (cuts []int, fit bool) {
	left := len(fresh)
	if whole {
		left = 0
		for _, f := range fresh {
			if f {
				left++
			}
		}
	}
	took := 0
	for i := 0; i < len(fresh); left-- {
		end := i + 1
		for whole && end < len(fresh) && !fresh[end] {
			end++
		}
		hops, install := end-i, 0
		if fresh[i] {
			install = installCost
		}
		if len(cuts) == 0 || took+hops+install > longest || left <= n-len(cuts) {
			cuts, took, install = append(cuts, i), 0, installCost
		}
		took += hops + install
		if fit = took <= longest && len(cuts) <= n; !fit {
			return nil, false
		}
		i = end
	}
	return cuts, true
}
