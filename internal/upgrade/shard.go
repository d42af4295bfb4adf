package upgrade

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/olmkit/olmkit/internal/graph"
)

// Shard is one of several parts of a plan that can be walked apart, on a cluster each.
type Shard struct {
	Index int // from 0
	Of    int // 0 for the whole plan
}

// ParseShard reads INDEX/OF.
func ParseShard(s string) (Shard, error) {
	i, n, _ := strings.Cut(s, "/")
	index, err1 := strconv.Atoi(i)
	of, err2 := strconv.Atoi(n)
	if err1 != nil || err2 != nil || index < 0 || index >= of {
		return Shard{}, fmt.Errorf("shard %q: it is INDEX/OF, with 0 <= INDEX < OF", s)
	}
	return Shard{index, of}, nil
}

// Take leaves the shard's hops in plan and moves the others to what is left out. Shards are stretches of the plan, so that
// hops that go on from each other stay together as far as can be.
func (s Shard) Take(plan graph.Plan) graph.Plan {
	if s.Of == 0 {
		return plan
	}
	begin, end := len(plan.Hops)*s.Index/s.Of, len(plan.Hops)*(s.Index+1)/s.Of
	taken := plan
	taken.Hops = plan.Hops[begin:end:end]
	taken.LeftOut = append(append(append([]graph.Edge{}, plan.LeftOut...), plan.Hops[:begin]...), plan.Hops[end:]...)
	return taken
}
