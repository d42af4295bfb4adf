package graph

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/hint"
)

// Mode chooses the hops of a plan.
type Mode string

// The modes: Chain is the longest replaces chain of the channel; Next adds for every entry the hop that OLM takes from
// it; All is every effective edge. Switch is something else: the hops of those who come from another channel.
const (
	Chain  Mode = "chain"
	Next   Mode = "next"
	All    Mode = "all"
	Switch Mode = "switch"
)

// Modes are the modes within one channel, in the order in which each adds to the one before.
var Modes = []Mode{Chain, Next, All}

// Choices are all modes.
var Choices = append(slices.Clip(Modes), Switch)

// Options cut a plan.
type Options struct {
	Channel  string // the package's default channel when empty; under OLM v1 all channels
	OLMv1    bool   // the hops are those of OLM v1
	Mode     Mode
	From, To string // bundle name or version; keep only hops at or above From and at or below To
	MaxHops  int    // keep the newest hops; 0 for no limit
}

// Hops that all reach each other by skipRange are as many as the square of the entries. So a plan holds only the first
// MostHops, names only the first MostLeftOut of those left out, and counts at most MostCounted.
const (
	MostHops    = 10_000 // to walk them takes days
	MostLeftOut = 1_000
	MostCounted = 10_000_000
)

// Plan is the hops to walk, in order, and those that the options left out.
type Plan struct {
	Package, Channel string
	Head             string // bundle that OLM installs for who subscribes, "" if there is none or nothing is to be walked
	Hops             []Edge // the first MostHops; the chain's hops come first, oldest first, so that each goes on from the last
	More             int    // hops besides
	LeftOut          []Edge // the first MostLeftOut
	MoreLeftOut      int

	every iter.Seq[Edge] // nil for Hops
}

// First returns the bundle whose installation the walk begins with, or "" if there is nothing to walk: a channel without
// hops is walked by installing its head, unless the hops were left out.
func (p Plan) First() string {
	switch {
	case len(p.Hops) > 0:
		return p.Hops[0].From
	case len(p.LeftOut) > 0:
		return ""
	}
	return p.Head
}

// Count returns how many hops the plan has; MostCounted or more stands for any number from there on.
func (p Plan) Count() int { return len(p.Hops) + p.More }

// All are the hops, also those that are too many to hold.
func (p Plan) All() iter.Seq[Edge] {
	if p.every == nil {
		return slices.Values(p.Hops)
	}
	return p.every
}

// Keep returns p with the hops alone that keep, which is given their places in p, returns true for; it leaves out the others.
func (p Plan) Keep(keep func(i int, hop Edge) bool) Plan {
	kept := p
	kept.Hops, kept.More, kept.LeftOut = nil, 0, slices.Clip(p.LeftOut)
	every := p.All()
	kept.every = func(yield func(Edge) bool) {
		i := -1
		for hop := range every {
			if i++; keep(i, hop) && !yield(hop) {
				return
			}
		}
	}
	i := -1
	for hop := range every {
		i++
		switch {
		case !keep(i, hop):
			kept.leaveOut(hop)
		case len(kept.Hops) < MostHops:
			kept.Hops = append(kept.Hops, hop)
		default:
			kept.More++
		}
		if kept.Count() >= MostCounted {
			break
		}
	}
	return kept
}

func (p *Plan) leaveOut(hop Edge) {
	if len(p.LeftOut) < MostLeftOut {
		p.LeftOut = append(p.LeftOut, hop)
	} else {
		p.MoreLeftOut++
	}
}

// OptionError is in the error of NewPlan when an option names what is not there.
type OptionError struct{ error }

// unknown is an error that names what there is instead.
func unknown(noun, name, where string, known []string) error {
	err := error(OptionError{fmt.Errorf("%s has no %s %s", where, noun, name)})
	if len(known) == 0 {
		return hint.With(err, "%s has none; look with 'olmkit catalog graph'", where)
	}
	return hint.With(err, "choose one of %s", firstOf(known))
}

// NewPlan lays out the walk over one channel of p. The error says what in the options is not there (OptionError), or why
// OLM cannot order the channel.
func NewPlan(p *catalog.Package, options Options) (Plan, error) {
	if !slices.Contains(Choices, options.Mode) {
		return Plan{}, unknown("mode", string(options.Mode), "a plan", []string{string(Chain), string(Next), string(All), string(Switch)})
	}
	if options.OLMv1 {
		return newV1Plan(p, options)
	}
	name := cmp.Or(options.Channel, p.DefaultChannel)
	c := p.Channel(name)
	if c == nil {
		var known []string
		for _, c := range p.Channels {
			known = append(known, c.Name)
		}
		if len(known) == 0 {
			return Plan{}, hint.With(fmt.Errorf("package %s (%s) has no channel, and so no upgrades", p.Name, p.At),
				"bundles alone have none: 'olmkit catalog build' makes a catalog of them, with a package and its channels")
		}
		if options.Channel == "" && name != "" {
			return Plan{}, hint.With(fmt.Errorf("package %s (%s) has no channel %s, which is its default one", p.Name, p.At, name),
				"correct defaultChannel of the package, or choose a channel: %s", strings.Join(known, ", "))
		}
		if options.Channel == "" {
			return Plan{}, hint.With(fmt.Errorf("package %s (%s) has no default channel", p.Name, p.At),
				"set defaultChannel of the package, or choose a channel: %s", strings.Join(known, ", "))
		}
		return Plan{}, unknown("channel", name, "package "+p.Name, known)
	}
	g := New(p, c)
	if g.err != nil {
		return Plan{}, g.err
	}
	plan := Plan{Package: p.Name, Channel: c.Name, every: g.hops(options.Mode)}
	if options.Mode == Switch {
		plan.every = slices.Values(g.switches(p))
	}
	within, err := g.bounds(options)
	if err != nil {
		return Plan{}, err
	}
	if i := slices.IndexFunc(g.candidates, func(n *node) bool { return !n.forbidden }); i >= 0 && options.Mode != Switch {
		plan.Head = g.candidates[i].Name
	}
	plan = plan.Keep(func(_ int, e Edge) bool { return within(g.versionOf(e.From), g.versionOf(e.To)) })
	if options.MaxHops > 0 && plan.Count() > options.MaxHops {
		newest := g.newest(plan.All(), options.MaxHops)
		plan = plan.Keep(func(_ int, e Edge) bool { return newest[e] })
	}
	return plan, nil
}

// hops are the edges that mode walks, those along the replaces chain first.
func (g *Channel) hops(mode Mode) iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		chain := slices.Collect(g.chain())
		for i := len(chain) - 1; i > 0; i-- {
			if to := chain[i-1]; g.planned(mode, chain[i], to, Replaces) && !yield(g.edge(chain[i], to, Replaces)) {
				return
			}
		}
		edges := g.Main()
		if mode == All {
			edges = g.All()
		}
		for e := range edges {
			from, to := g.byName[e.From], g.byName[e.To]
			if !along(to, e.Kind) && g.planned(mode, from, to, e.Kind) && !yield(e) {
				return
			}
		}
	}
}

// along reports whether an edge of kind to an entry is one of the replaces chain.
func along(to *node, kind Kind) bool { return kind == Replaces && to.chained && to.Replaces != "" }

// planned reports whether mode walks an edge.
func (g *Channel) planned(mode Mode, from, to *node, kind Kind) bool {
	return kind != "" && !to.forbidden && (mode == All || along(to, kind) || mode == Next && to == from.next)
}

// Planned reports whether a plan of the channel has a hop from one entry to another. Where OLM cannot order the channel it
// has none.
func (g *Channel) Planned(mode Mode, from, to string) bool {
	a, b := g.byName[from], g.byName[to]
	return g.err == nil && a != nil && b != nil && a != b && g.planned(mode, a, b, b.kind(a))
}

// bounds returns the test that From and To of the options make.
func (g *Channel) bounds(options Options) (func(from, to semver.Version) bool, error) {
	find := func(text string) (semver.Version, error) {
		wanted, err := semver.ParseTolerant(text)
		for _, n := range g.list {
			if n.Name == text || err == nil && n.version.EQ(wanted) {
				return n.version, nil
			}
		}
		for name, version := range g.elsewhere {
			if name == text || err == nil && version.EQ(wanted) {
				return version, nil
			}
		}
		known := make([]string, len(g.list))
		for i, n := range g.list {
			known[i] = n.Name
		}
		return semver.Version{}, unknown("entry", text, fmt.Sprintf("channel %s of package %s", g.name, g.pkg), known)
	}
	var lowest, highest *semver.Version
	if options.From != "" {
		v, err := find(options.From)
		if err != nil {
			return nil, err
		}
		lowest = &v
	}
	if options.To != "" {
		v, err := find(options.To)
		if err != nil {
			return nil, err
		}
		highest = &v
	}
	if lowest != nil && highest != nil && lowest.GT(*highest) {
		return nil, hint.With(OptionError{fmt.Errorf("no upgrade leads from %s to %s, which is older", options.From, options.To)}, "name the older release first")
	}
	return func(from, to semver.Version) bool {
		return (lowest == nil || from.GTE(*lowest)) && (highest == nil || to.LTE(*highest))
	}, nil
}

// newest are the most newest of hops: those to the highest versions, and from the highest among them. It never holds more than
// twice as many.
func (g *Channel) newest(hops iter.Seq[Edge], most int) map[Edge]bool {
	older := func(a, b Edge) int {
		return cmp.Or(g.versionOf(b.To).Compare(g.versionOf(a.To)), g.versionOf(b.From).Compare(g.versionOf(a.From)))
	}
	var list []Edge
	cut := func() {
		slices.SortStableFunc(list, older)
		list = list[:min(most, len(list))]
	}
	full := false // the last of list is older than all that were cut
	for hop := range hops {
		if full && older(list[most-1], hop) <= 0 {
			continue
		}
		if list = append(list, hop); len(list) >= 2*most {
			cut()
			full = true
		}
	}
	cut()
	kept := make(map[Edge]bool, len(list))
	for _, hop := range list {
		kept[hop] = true
	}
	return kept
}
