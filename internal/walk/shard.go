package walk

import (
	"fmt"
	"math/bits"
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

// Take leaves the shard's hops in plan and moves the others to what is left out. Shards are stretches of the plan, so that
// hops that go on from each other stay together as far as can be. A plan that is an installation alone is the first shard's.
func (s Shard) Take(plan graph.Plan) graph.Plan {
	if s.Of == 0 {
		return plan
	}
	return stretch(plan, s.until(s.Index, plan.Count()), s.until(s.Index+1, plan.Count()), s.Index == 0)
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
	cuts := []int{0}
	i, last := 0, graph.Edge{}
	for hop := range plan.All() {
		goesOn := hop.From == last.To && hop.Switch == ""
		if i > 0 && !goesOn && len(cuts) < n && i >= plan.Count()*len(cuts)/n {
			cuts = append(cuts, i)
		}
		if i, last = i+1, hop; len(cuts) == n || i == graph.MostCounted {
			break
		}
	}
	if len(cuts) == 1 {
		return []graph.Plan{plan}
	}
	parts := make([]graph.Plan, len(cuts))
	for i, begin := range cuts {
		end := graph.MostCounted
		if i+1 < len(cuts) {
			end = cuts[i+1]
		}
		parts[i] = stretch(plan, begin, end, i == 0)
	}
	return parts
}

// until returns how many of hops are in the shards before index.
func (s Shard) until(index, hops int) int {
	high, low := bits.Mul64(uint64(hops), uint64(index)) // there may be more shards than an int times hops can say
	quotient, _ := bits.Div64(high, low, uint64(s.Of))
	return int(quotient)
}
