// Package graph is the upgrade graph of a package: its channels' edges, declared by the author and effective under the
// rule by which OLM's resolver chooses a successor, and the walks over them.
package graph

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/advice"
	"github.com/olmkit/olmkit/internal/catalog"
)

// Kind says which statement of a channel makes an edge.
type Kind string

// The kinds of edge.
const (
	Replaces  Kind = "replaces"
	Skips     Kind = "skips"
	SkipRange Kind = "skipRange"
)

// Edge is one upgrade that a channel speaks of.
type Edge struct {
	Package, Channel string
	From, To         string // bundle names
	Kind             Kind   // the first that applies, in the order replaces, skips, skipRange
	Declared         bool   // named by replaces or skips
	Effective        bool   // OLM would take it, were To the only candidate
	Next             bool   // OLM takes it with the whole channel to choose from
}

// propertyDeprecated forbids OLM to install a bundle (operator-lifecycle-manager v0.46.0,
// pkg/controller/registry/resolver/variable_types.go). The documents of schema olm.deprecations only warn.
const propertyDeprecated = "olm.deprecated"

// node is an entry of a channel with what OLM knows of its bundle.
type node struct {
	*catalog.Entry
	version   semver.Version
	skipRange semver.Range // nil when there is none, or none that parses: OLM passes over such a one
	forbidden bool
}

// nodes are the channel's entries. Of two with one name the first counts.
func nodes(p *catalog.Package, c *catalog.Channel) []*node {
	bundles := make(map[string]*catalog.Bundle, len(p.Bundles))
	for _, b := range p.Bundles {
		bundles[b.Name] = b
	}
	known := make(map[string]bool, len(c.Entries))
	list := make([]*node, 0, len(c.Entries))
	for i := range c.Entries {
		e := &c.Entries[i]
		if known[e.Name] {
			continue
		}
		known[e.Name] = true
		n := &node{Entry: e}
		if b := bundles[e.Name]; b != nil {
			n.version = b.Version
			n.forbidden = slices.ContainsFunc(b.Properties, func(p catalog.Property) bool { return p.Type == propertyDeprecated })
		}
		if r, err := semver.ParseRange(e.SkipRange); err == nil && e.SkipRange != "" {
			n.skipRange = r
		}
		list = append(list, n)
	}
	return list
}

// kind returns by which statement n follows from, or "" if it does not: operator-lifecycle-manager v0.46.0,
// pkg/controller/registry/resolver/resolver.go, getSubscriptionVariables, and cache/predicates.go.
func (n *node) kind(from *node) Kind {
	switch {
	case n.Replaces == from.Name:
		return Replaces
	case slices.Contains(n.Skips, from.Name):
		return Skips
	case n.skipRange != nil && n.skipRange(from.version):
		return SkipRange
	}
	return ""
}

// Edges returns every edge of the channel, declared or effective, sorted by the versions of From, then To. Edges from
// what is no entry of the channel are left out. Where OLM cannot order the channel (see Order), no edge is Next.
func Edges(p *catalog.Package, c *catalog.Channel) []Edge {
	list := nodes(p, c)
	byVersion := slices.Clone(list)
	slices.SortFunc(byVersion, func(a, b *node) int { return cmp.Or(a.version.Compare(b.version), strings.Compare(a.Name, b.Name)) })
	candidates, err := order(c.Name, p.Name, list)
	if err != nil {
		candidates = nil
	}
	var edges []Edge
	for _, from := range byVersion {
		next := successor(candidates, from)
		for _, to := range byVersion {
			kind := to.kind(from)
			if kind == "" || to == from {
				continue
			}
			edges = append(edges, Edge{
				Package: p.Name, Channel: c.Name, From: from.Name, To: to.Name, Kind: kind,
				Declared:  kind != SkipRange,
				Effective: !to.forbidden,
				Next:      to == next,
			})
		}
	}
	return edges
}

// successor returns what OLM upgrades from to: the first of the candidates, which stand in OLM's order, that follows it.
// It is from itself when from's own skipRange covers it and nothing nearer to the head does, and nil when nothing does.
func successor(candidates []*node, from *node) *node {
	for _, n := range candidates {
		if !n.forbidden && n.kind(from) != "" {
			return n
		}
	}
	return nil
}

// Successor returns the bundle to which OLM upgrades from an installed one, which need not be in the channel, or "" for
// none. It may be the same again, see GRA009 in package check.
func Successor(p *catalog.Package, c *catalog.Channel, installed string, version semver.Version) string {
	candidates, err := order(c.Name, p.Name, nodes(p, c))
	if err != nil {
		return ""
	}
	if next := successor(candidates, &node{Entry: &catalog.Entry{Name: installed}, version: version}); next != nil {
		return next.Name
	}
	return ""
}

// Order returns the channel's entries that OLM chooses from, the most preferred first: the head, and from it along
// replaces, without what any entry skips. The error says why OLM cannot order the channel; OLM then upgrades nobody.
func Order(p *catalog.Package, c *catalog.Channel) ([]string, error) {
	candidates, err := order(c.Name, p.Name, nodes(p, c))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(candidates))
	for i, n := range candidates {
		names[i] = n.Name
	}
	return names, nil
}

// order follows operator-lifecycle-manager v0.46.0, pkg/controller/registry/resolver/resolver.go, sortChannel.
func order(channel, pkg string, list []*node) ([]*node, error) {
	if len(list) == 0 {
		return nil, nil
	}
	byName := make(map[string]*node, len(list))
	for _, n := range list {
		byName[n.Name] = n
	}
	replaced, skipped := map[*node]bool{}, map[*node]bool{}
	for _, n := range list {
		if r := byName[n.Replaces]; r != nil && n.Replaces != "" {
			replaced[r] = true
		}
		for _, s := range n.Skips {
			if r := byName[s]; r != nil {
				replaced[r], skipped[r] = true, true
			}
		}
	}
	var heads []*node
	for _, n := range list {
		if !replaced[n] {
			heads = append(heads, n)
		}
	}
	if len(heads) == 0 {
		return nil, noHead(channel, pkg, list, byName)
	}
	var chain []*node
	for _, head := range heads {
		visited := map[*node]bool{}
		for n := head; n != nil; n = byName[n.Replaces] {
			if visited[n] {
				return nil, cycleError(channel, pkg, cycle(n, byName))
			}
			visited[n] = true
			if !skipped[n] {
				chain = append(chain, n)
			}
			if n.Replaces == "" {
				break
			}
		}
	}
	if len(heads) > 1 {
		names := make([]string, len(heads))
		for i, h := range heads {
			names[i] = fmt.Sprintf("%s (%s)", h.Name, h.At)
		}
		slices.Sort(names)
		return nil, advice.With(fmt.Errorf("channel %s of package %s has %d heads, entries that no other replaces or skips: %s",
			channel, pkg, len(heads), strings.Join(names, ", ")),
			"let the newest of them replace or skip the others, directly or along a chain")
	}
	return chain, nil
}

// cycle returns the entries that one comes to from n along replaces until n comes again.
func cycle(n *node, byName map[string]*node) []*node {
	round := []*node{n}
	for m := byName[n.Replaces]; m != n; m = byName[m.Replaces] {
		round = append(round, m)
	}
	return round
}

func cycleError(channel, pkg string, round []*node) error {
	var b strings.Builder
	for _, n := range round {
		fmt.Fprintf(&b, "%s (%s) replaces ", n.Name, n.At)
	}
	b.WriteString(round[0].Name)
	return advice.With(fmt.Errorf("channel %s of package %s has a cycle: %s", channel, pkg, b.String()),
		"make the oldest of them replace an older entry, or nothing")
}

// noHead says why every entry is replaced or skipped: there is a cycle, of replaces or of both.
func noHead(channel, pkg string, list []*node, byName map[string]*node) error {
	for _, start := range list {
		visited := map[*node]bool{}
		n := start
		for n != nil && n.Replaces != "" && !visited[n] {
			visited[n] = true
			n = byName[n.Replaces]
		}
		if n != nil && visited[n] {
			return cycleError(channel, pkg, cycle(n, byName))
		}
	}
	return advice.With(fmt.Errorf("channel %s of package %s has no head: each of its entries is replaced or skipped by another, the first at %s",
		channel, pkg, list[0].At),
		"let no entry replace or skip the newest")
}

// Mode chooses the hops of a plan.
type Mode string

// The modes: Chain is the longest replaces chain of the channel; Next adds for every entry the hop that OLM takes from
// it; All is every effective edge.
const (
	Chain Mode = "chain"
	Next  Mode = "next"
	All   Mode = "all"
)

// Modes are the modes in the order in which each adds to the one before.
var Modes = []Mode{Chain, Next, All}

// Options cut a plan.
type Options struct {
	Channel  string // the package's default channel when empty
	Mode     Mode
	From, To string // bundle name or version; keep only hops at or above From and at or below To
	MaxHops  int    // keep the newest hops; 0 for no limit
}

// Plan is the hops to walk, in order, and those that the options left out.
type Plan struct {
	Package, Channel string
	Hops             []Edge // the chain's hops come first, oldest first, so that each goes on from the last
	LeftOut          []Edge
}

// ErrOption is in the error of NewPlan when an option names what is not there.
var ErrOption = errors.New("no such")

// unknown is an error that names what there is instead.
func unknown(noun, name, where string, known []string) error {
	err := fmt.Errorf("%w %s in %s: %s", ErrOption, noun, where, name)
	if len(known) == 0 {
		return advice.With(err, "%s has none; look with 'olmkit catalog graph'", where)
	}
	return advice.With(err, "choose one of %s", strings.Join(known, ", "))
}

// NewPlan lays out the walk over one channel of p. The error says what in the options is not there (ErrOption), or why
// OLM cannot order the channel.
func NewPlan(p *catalog.Package, options Options) (Plan, error) {
	if !slices.Contains(Modes, options.Mode) {
		return Plan{}, unknown("mode", string(options.Mode), "a plan", []string{string(Chain), string(Next), string(All)})
	}
	name := cmp.Or(options.Channel, p.DefaultChannel)
	c := p.Channel(name)
	if c == nil {
		var known []string
		for _, c := range p.Channels {
			known = append(known, c.Name)
		}
		if options.Channel == "" {
			return Plan{}, advice.With(fmt.Errorf("package %s (%s) has no default channel", p.Name, p.At),
				"set defaultChannel of the package, or choose a channel: %s", strings.Join(known, ", "))
		}
		return Plan{}, unknown("channel", name, "package "+p.Name, known)
	}
	list := nodes(p, c)
	candidates, err := order(c.Name, p.Name, list)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Package: p.Name, Channel: c.Name}
	versions := map[string]semver.Version{}
	for _, n := range list {
		versions[n.Name] = n.version
	}
	within, err := bounds(p, c, options, list)
	if err != nil {
		return Plan{}, err
	}
	for _, e := range choose(Edges(p, c), replacesChain(list, candidates), options.Mode) {
		if within(versions[e.From], versions[e.To]) {
			plan.Hops = append(plan.Hops, e)
		} else {
			plan.LeftOut = append(plan.LeftOut, e)
		}
	}
	plan.limit(options.MaxHops, versions)
	return plan, nil
}

// replacesChain returns the names along replaces from the head to the oldest entry, skipped ones included, oldest first.
func replacesChain(list, candidates []*node) []string {
	if len(candidates) == 0 {
		return nil
	}
	byName := make(map[string]*node, len(list))
	for _, n := range list {
		byName[n.Name] = n
	}
	var names []string
	for n := candidates[0]; n != nil; n = byName[n.Replaces] {
		names = append(names, n.Name)
		if n.Replaces == "" {
			break
		}
	}
	slices.Reverse(names)
	return names
}

// choose returns those of edges that mode walks, the hops along chain first.
func choose(edges []Edge, chain []string, mode Mode) []Edge {
	rank := map[string]int{}
	for i, name := range chain {
		rank[name] = i + 1
	}
	along := func(e Edge) bool { return e.Kind == Replaces && rank[e.From] > 0 && rank[e.To] == rank[e.From]+1 }
	var first, rest []Edge
	for _, e := range edges {
		switch {
		case !e.Effective:
		case along(e):
			first = append(first, e)
		case mode == All, mode == Next && e.Next:
			rest = append(rest, e)
		}
	}
	slices.SortFunc(first, func(a, b Edge) int { return rank[a.From] - rank[b.From] })
	return append(first, rest...)
}

// bounds returns the test that From and To of the options make.
func bounds(p *catalog.Package, c *catalog.Channel, options Options, list []*node) (func(from, to semver.Version) bool, error) {
	find := func(text string) (semver.Version, error) {
		wanted, err := semver.ParseTolerant(text)
		for _, n := range list {
			if n.Name == text || err == nil && n.version.EQ(wanted) {
				return n.version, nil
			}
		}
		known := make([]string, len(list))
		for i, n := range list {
			known[i] = n.Name
		}
		return semver.Version{}, unknown("entry", text, fmt.Sprintf("channel %s of package %s", c.Name, p.Name), known)
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
	return func(from, to semver.Version) bool {
		return (lowest == nil || from.GTE(*lowest)) && (highest == nil || to.LTE(*highest))
	}, nil
}

// limit keeps the most newest hops: those to the highest versions, and from the highest among them.
func (p *Plan) limit(most int, versions map[string]semver.Version) {
	if most <= 0 || len(p.Hops) <= most {
		return
	}
	newest := slices.Clone(p.Hops)
	slices.SortStableFunc(newest, func(a, b Edge) int {
		return cmp.Or(versions[b.To].Compare(versions[a.To]), versions[b.From].Compare(versions[a.From]))
	})
	var hops []Edge
	for _, e := range p.Hops {
		if slices.Contains(newest[:most], e) {
			hops = append(hops, e)
		} else {
			p.LeftOut = append(p.LeftOut, e)
		}
	}
	p.Hops = hops
}
