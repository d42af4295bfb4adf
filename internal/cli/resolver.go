package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/resolver"
)

// Which resolver 'upgrade plan' asks.
const (
	resolverGraph = "graph" // of the channel's edges
	resolverOLM   = "olm"   // and OLM's own
)

// checkResolver refuses a resolver that there is not, or not of this version of OLM, or of these hops.
func checkResolver(asked string, f *planFlags) error {
	switch {
	case asked != resolverGraph && asked != resolverOLM:
		return usagef("--resolver %s: must be %s or %s", asked, resolverGraph, resolverOLM)
	case asked == resolverOLM && f.olm != olmV0:
		return hint.With(usagef("--resolver olm asks the resolver of OLM v0"), "leave out --olm %s", f.olm)
	case asked == resolverOLM && f.mode == string(graph.Switch):
		return hint.With(usagef("--resolver olm asks about one channel"), "leave out --edges switch")
	}
	return nil
}

// resolved asks OLM's resolver what a new Subscription to the channel of plan gets, if its head is planned, and what follows from
// each bundle that a hop of plan begins with. Where that is not what the channel's edges lead to, there is a finding.
func (s *session) resolved(ctx context.Context, c *catalog.Catalog, p *catalog.Package, plan graph.Plan) ([]report.Resolution, []finding.Finding, error) {
	channel := p.Channel(plan.Channel)
	if !resolvable(p, channel) {
		return nil, nil, nil // the findings of the plan say why OLM upgrades nobody
	}
	step := s.progress().Start("ask OLM's resolver")
	all, err := document.Until(ctx, func() ([]report.Resolution, error) { return resolutions(ctx, c, p, channel, plan) })
	if err = step.End(err); err != nil {
		return nil, nil, err
	}
	var findings []finding.Finding
	for _, r := range all {
		if r.Differs {
			findings = append(findings, differing(p, channel, r))
		}
	}
	return all, findings, nil
}

// resolvable reports whether OLM takes channel at all: its resolver is not asked about one that it refuses.
func resolvable(p *catalog.Package, channel *catalog.Channel) bool {
	return channel != nil && graph.New(p, channel).Err() == nil
}

func resolutions(ctx context.Context, c *catalog.Catalog, p *catalog.Package, channel *catalog.Channel, plan graph.Plan) ([]report.Resolution, error) {
	olm, err := resolver.Open(ctx, c, p.Name, channel.Name)
	if err != nil {
		return nil, err
	}
	g := graph.New(p, channel)
	var all []report.Resolution
	if plan.Head != "" { // a plan of what changed may be without it
		all = append(all, resolution("", plan.Head, olm.New(plan.Head)))
	}
	asked := map[string]bool{}
	for hop := range plan.All() {
		if asked[hop.From] {
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		asked[hop.From] = true
		next := g.NextOf(hop.From)
		all = append(all, resolution(hop.From, next, olm.From(hop.From, next)))
	}
	return all, nil
}

func resolution(from, planned string, a resolver.Answer) report.Resolution {
	r := report.Resolution{From: from, To: a.To, Planned: planned, Differs: a.To != planned, Missing: a.Missing}
	if r.Differs {
		r.Why = a.Why
	}
	for _, c := range a.Along {
		r.Along = append(r.Along, report.Change(c))
	}
	return r
}

// differing is the finding that OLM does not take what the channel's edges lead to.
func differing(p *catalog.Package, channel *catalog.Channel, r report.Resolution) finding.Finding {
	at := channel.At
	if e := channel.Entry(cmp.Or(r.Planned, r.From)); e != nil {
		at = e.At
	}
	who := "a new Subscription"
	if r.From != "" {
		who = "a Subscription with " + r.From
	}
	message := fmt.Sprintf("%s gets %s by the channel's edges, and from OLM %s", who, cmp.Or(r.Planned, "nothing"), cmp.Or(r.To, "nothing"))
	subject := finding.Subject{Package: p.Name, Channel: channel.Name, From: r.From, To: r.Planned}
	cause := r.Why
	if cause != "" {
		cause = "OLM's resolver says: " + cause
	}
	return check.Unresolved(subject, at, message, cause)
}
