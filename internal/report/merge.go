package report

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/olmkit/olmkit/internal/finding"
)

// Merge makes one report of those of all shards of a walk: the one that the walk in one piece would have given, apart
// from how long things took (Seconds is the sum) and from what each shard installed afresh. The order of reports does not
// matter. The error says which shard is missing, there twice, or of another walk.
func Merge(reports []*Report) (*Report, error) {
	if len(reports) == 0 {
		return nil, fmt.Errorf("no report to merge")
	}
	shards, err := inOrder(reports)
	if err != nil {
		return nil, err
	}
	merged := &Report{APIVersion: APIVersion, Kind: KindUpgrade, Result: Passed, Graph: shards[0].Graph}
	planned := map[edge]bool{}
	for _, r := range shards {
		if r.Result == Failed {
			merged.Result = Failed
		}
		merged.Installations = append(merged.Installations, r.Installations...)
		merged.Hops = append(merged.Hops, r.Hops...)
		merged.Access = append(merged.Access, r.Access...)
		merged.Seconds += r.Seconds
		merged.Findings = append(merged.Findings, r.Findings...)
		for _, h := range r.Hops {
			planned[edgeOf(h)] = true
		}
		if err := merged.on(r.Cluster); err != nil {
			return nil, fmt.Errorf("shard %d of %d: %w", r.Shard.Index, r.Shard.Of, err)
		}
	}
	total := shards[0].planned()
	for i, r := range shards {
		if n := r.planned(); n != total {
			return nil, fmt.Errorf("shard %d of %d is of another plan: it has %d hops, and that of shard 0 %d", i, len(shards), n, total)
		}
	}
	for _, h := range shards[0].LeftOut {
		if !planned[edgeOf(h)] {
			merged.LeftOut = append(merged.LeftOut, h)
		}
	}
	merged.LeftOutCount = total - len(planned)
	finding.Sort(merged.Findings)
	merged.Findings = distinct(merged.Findings)
	return merged, nil
}

// inOrder returns reports by their shards, each of which must be there once.
func inOrder(reports []*Report) ([]*Report, error) {
	shards := slices.Clone(reports)
	for i, r := range shards {
		switch {
		case r.Kind != KindUpgrade:
			return nil, fmt.Errorf("report %d is of kind %q: only reports of 'upgrade test' are in shards", i+1, r.Kind)
		case r.Shard == nil:
			return nil, fmt.Errorf("report %d is of a whole walk, not of one shard", i+1)
		case r.Shard.Of != shards[0].Shard.Of:
			return nil, fmt.Errorf("report %d is of one of %d shards, the first of one of %d", i+1, r.Shard.Of, shards[0].Shard.Of)
		}
	}
	slices.SortStableFunc(shards, func(a, b *Report) int { return a.Shard.Index - b.Shard.Index })
	for i := range shards[0].Shard.Of {
		switch {
		case i >= len(shards) || shards[i].Shard.Index > i:
			return nil, fmt.Errorf("shard %d of %d is missing", i, shards[0].Shard.Of)
		case shards[i].Shard.Index < i:
			return nil, fmt.Errorf("shard %d of %d is there twice", shards[i].Shard.Index, shards[0].Shard.Of)
		}
	}
	if len(shards) > shards[0].Shard.Of {
		return nil, fmt.Errorf("shard %d of %d is there twice", shards[len(shards)-1].Shard.Index, shards[0].Shard.Of)
	}
	return shards, nil
}

// planned returns how many hops the whole plan has of which r walked a shard.
func (r *Report) planned() int {
	walked := map[edge]bool{} // some in several rounds
	for _, h := range r.Hops {
		walked[edgeOf(h)] = true
	}
	return len(walked) + r.leftOut()
}

// edge tells hops apart.
type edge struct{ pkg, channel, from, to string }

func edgeOf(h Hop) edge { return edge{h.Package, h.Channel, h.From, h.To} }

// on adds where a shard was walked.
func (r *Report) on(c *Cluster) error {
	switch {
	case c == nil: // a shard without hops
		return nil
	case r.Cluster == nil:
		r.Cluster = &Cluster{Kind: c.Kind, Kubernetes: c.Kubernetes, OLM: c.OLM}
	case r.Cluster.Kind != c.Kind || r.Cluster.Kubernetes != c.Kubernetes || r.Cluster.OLM != c.OLM:
		return fmt.Errorf("walked on %s, Kubernetes %s, OLM %s; others on %s, Kubernetes %s, OLM %s",
			c.Kind, c.Kubernetes, c.OLM, r.Cluster.Kind, r.Cluster.Kubernetes, r.Cluster.OLM)
	}
	for _, sentence := range c.Limitations {
		if !slices.Contains(r.Cluster.Limitations, sentence) {
			r.Cluster.Limitations = append(r.Cluster.Limitations, sentence)
		}
	}
	return nil
}

// distinct leaves out the findings that several shards made of the same thing, as the static ones are. They are sorted.
func distinct(findings []finding.Finding) []finding.Finding {
	return slices.CompactFunc(findings, func(a, b finding.Finding) bool {
		x, errX := json.Marshal(a)
		y, errY := json.Marshal(b)
		return errX == nil && errY == nil && string(x) == string(y)
	})
}
