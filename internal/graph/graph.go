// Package graph is the upgrade graph of a package: its channels' edges, declared by the author and effective under the
// rule by which OLM's resolver chooses a successor, and the walks over them.
package graph

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/hint"
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
	Switch           string // the channel that a Subscription with From has before it is changed to Channel; "" for Channel itself
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
	place     int // among those that OLM chooses from, -1 for others
	rank      int // by version
	next      *node
	chained   bool // on the way from the head along replaces

	replaced, skipped bool  // by another entry; what is skipped is replaced as well
	visited           *node // from which head, in order
}

// nodes are the channel's entries. Of two with one name the first counts.
func nodes(p *catalog.Package, c *catalog.Channel) ([]*node, map[string]*node) {
	byName := make(map[string]*node, len(c.Entries))
	list := make([]*node, 0, len(c.Entries))
	room := make([]node, len(c.Entries))
	for i := range c.Entries {
		e := &c.Entries[i]
		if byName[e.Name] != nil {
			continue
		}
		n := &room[i]
		*n = node{Entry: e, place: -1}
		byName[e.Name] = n
		if b := p.Bundle(e.Name); b != nil {
			n.version = b.Version
			n.forbidden = slices.ContainsFunc(b.Properties, func(p catalog.Property) bool { return p.Type == propertyDeprecated })
		}
		if e.SkipRange != "" {
			if r, err := semver.ParseRange(e.SkipRange); err == nil {
				n.skipRange = r
			}
		}
		list = append(list, n)
	}
	return list, byName
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

// Channel is the upgrade graph of a channel, made once for many questions. What it takes to make and to ask grows with the
// entries and what they name, and not with the edges that skipRanges make, which grow with the square of that.
type Channel struct {
	pkg, name  string
	list       []*node // in the order of the entries
	byName     map[string]*node
	byVersion  []*node
	ranged     []*node // those with a skipRange, by version
	candidates []*node // that OLM chooses from, the head first
	err        error   // why OLM cannot order the channel
	replacing  map[string][]*node
	skipping   map[string][]*node
	covering   *cover // of the candidates
	circles    func() map[string]bool
	elsewhere  map[string]semver.Version // of bundles of other channels, by name
}

// New returns the graph of channel c of p.
func New(p *catalog.Package, c *catalog.Channel) *Channel {
	g := &Channel{pkg: p.Name, name: c.Name}
	g.circles = sync.OnceValue(g.findCircles)
	g.list, g.byName = nodes(p, c)
	g.candidates, g.err = g.order()
	if g.err != nil {
		g.candidates = nil
	}
	for i, n := range g.candidates {
		n.place = i
	}
	for n := range g.chain() {
		n.chained = true
	}
	g.replacing, g.skipping = make(map[string][]*node, len(g.list)), map[string][]*node{}
	room := make([]*node, len(g.list)) // most names are replaced once
	for i, n := range g.list {
		if others := g.replacing[n.Replaces]; others != nil {
			g.replacing[n.Replaces] = append(others, n)
		} else {
			room[i] = n
			g.replacing[n.Replaces] = room[i : i+1 : i+1]
		}
		for _, s := range n.Skips {
			g.skipping[s] = append(g.skipping[s], n)
		}
	}
	g.covering = newCover(g.candidates)
	g.byVersion = slices.Clone(g.list)
	slices.SortFunc(g.byVersion, byVersion)
	for i, n := range g.byVersion {
		n.rank, n.next = i, g.successor(n.Name, n.version)
		if n.skipRange != nil {
			g.ranged = append(g.ranged, n)
		}
	}
	return g
}

func byVersion(a, b *node) int {
	return cmp.Or(a.version.Compare(b.version), strings.Compare(a.Name, b.Name))
}

// Err says why OLM cannot order the channel; OLM then upgrades nobody. It is nil where OLM can.
func (g *Channel) Err() error { return g.err }

// Order returns the channel's entries that OLM chooses from, the most preferred first: the head, and from it along
// replaces, without what any entry skips.
func (g *Channel) Order() []string {
	names := make([]string, len(g.candidates))
	for i, n := range g.candidates {
		names[i] = n.Name
	}
	return names
}

// edge is the edge between two entries that kind makes.
func (g *Channel) edge(from, to *node, kind Kind) Edge {
	return Edge{
		Package: g.pkg, Channel: g.name, From: from.Name, To: to.Name, Kind: kind,
		Declared:  kind != SkipRange,
		Effective: !to.forbidden,
		Next:      to == from.next,
	}
}

// declared appends to list the entries that replace or skip from, by version, each once.
func (g *Channel) declared(list []*node, from *node) []*node {
	list = append(append(list, g.replacing[from.Name]...), g.skipping[from.Name]...)
	return unique(list)
}

// unique sorts list by version.
func unique(list []*node) []*node {
	slices.SortFunc(list, byRank)
	return slices.Compact(list)
}

// All are the edges of the channel, declared or effective, by the versions of From, then To. Edges from what is no entry of
// the channel are left out. Where OLM cannot order the channel (see Err), no edge is Next.
func (g *Channel) All() iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		var declared []*node
		for from, covering := range g.covered() {
			declared = g.declared(declared[:0], from)
			for _, to := range declared {
				for len(covering) > 0 && covering[0].rank < to.rank {
					if covering[0] != from && !yield(g.edge(from, covering[0], SkipRange)) {
						return
					}
					covering = covering[1:]
				}
				if len(covering) > 0 && covering[0] == to {
					covering = covering[1:]
				}
				if to != from && !yield(g.edge(from, to, declaredKind(from, to))) {
					return
				}
			}
			for _, to := range covering {
				if to != from && !yield(g.edge(from, to, SkipRange)) {
					return
				}
			}
		}
	}
}

// declaredKind is the kind of an edge to an entry that replaces or skips from.
func declaredKind(from, to *node) Kind {
	if to.Replaces == from.Name {
		return Replaces
	}
	return Skips
}

// Main are those edges of All that are Declared or Next, in the same order.
func (g *Channel) Main() iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		var targets []*node
		for _, from := range g.byVersion {
			targets = g.declared(targets[:0], from)
			covering := -1 // where among targets the entry is that OLM takes though nobody declared it
			if from.next != nil {
				if at, found := slices.BinarySearchFunc(targets, from.next, byRank); !found {
					targets, covering = slices.Insert(targets, at, from.next), at
				}
			}
			for i, to := range targets {
				kind := declaredKind(from, to)
				if i == covering {
					kind = SkipRange
				}
				if to != from && !yield(g.edge(from, to, kind)) {
					return
				}
			}
		}
	}
}

// Has reports whether All has the edge from one entry to another.
func (g *Channel) Has(from, to string) bool {
	a, b := g.byName[from], g.byName[to]
	return a != nil && b != nil && a != b && b.kind(a) != ""
}

// successor returns what OLM upgrades from an installed bundle to: the first of the candidates, which stand in OLM's order,
// that follows it. It is the bundle itself when its own skipRange covers it and nothing nearer to the head does, and nil when
// nothing does.
func (g *Channel) successor(installed string, version semver.Version) *node {
	best := len(g.candidates)
	if i := g.covering.of(version); i >= 0 {
		best = i
	}
	for _, list := range [][]*node{g.replacing[installed], g.skipping[installed]} {
		for _, n := range list {
			if n.place >= 0 && !n.forbidden {
				best = min(best, n.place)
			}
		}
	}
	if best == len(g.candidates) {
		return nil
	}
	return g.candidates[best]
}

// Next returns the bundle to which OLM upgrades from an installed one in a single step, or "" for none. The installed one
// need not be in the channel; what it is upgraded to may be the same again, see GRA009 in package check.
func (g *Channel) Next(installed string, version semver.Version) string {
	if n := g.successor(installed, version); n != nil {
		return n.Name
	}
	return ""
}

// order follows operator-lifecycle-manager v0.46.0, pkg/controller/registry/resolver/resolver.go, sortChannel.
func (g *Channel) order() ([]*node, error) {
	if len(g.list) == 0 {
		return nil, nil
	}
	for _, n := range g.list {
		if r := g.byName[n.Replaces]; r != nil && n.Replaces != "" {
			r.replaced = true
		}
		for _, s := range n.Skips {
			if r := g.byName[s]; r != nil {
				r.replaced, r.skipped = true, true
			}
		}
	}
	var heads []*node
	for _, n := range g.list {
		if !n.replaced {
			heads = append(heads, n)
		}
	}
	if len(heads) == 0 {
		return nil, g.noHead()
	}
	var chain []*node
	for _, head := range heads {
		for n := head; n != nil && (n.visited == nil || n.visited == head); n = g.byName[n.Replaces] {
			if n.visited != nil {
				return nil, g.cycleError(n)
			}
			n.visited = head
			if !n.skipped {
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
		return nil, hint.With(fmt.Errorf("channel %s of package %s has %d heads, entries that no other replaces or skips: %s",
			g.name, g.pkg, len(heads), firstOf(names)),
			"let the newest of them replace or skip the others, directly or along a chain")
	}
	return chain, nil
}

// told is how many entries of a channel an error names.
const told = 20

// firstOf joins as many of names as an error tells.
func firstOf(names []string) string {
	if len(names) <= told {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:told], ", "), len(names)-told)
}

// cycleError names the entries that one comes to from n along replaces until n comes again.
func (g *Channel) cycleError(n *node) error {
	var b strings.Builder
	count := 0
	for m := n; count == 0 || m != n; m = g.byName[m.Replaces] {
		if count++; count <= told {
			fmt.Fprintf(&b, "%s (%s) replaces ", m.Name, m.At)
		}
	}
	if count > told {
		fmt.Fprintf(&b, "%d others, one after the other, and the last of them ", count-told)
	}
	b.WriteString(n.Name)
	return hint.With(fmt.Errorf("channel %s of package %s has a cycle: %s", g.name, g.pkg, b.String()),
		"make the oldest of them replace an older entry, or nothing")
}

// noHead says why every entry is replaced or skipped: there is a cycle, of replaces or of both.
func (g *Channel) noHead() error {
	visited := map[*node]*node{} // from which start
	for _, start := range g.list {
		n := start
		for n != nil && n.Replaces != "" && visited[n] == nil {
			visited[n] = start
			n = g.byName[n.Replaces]
		}
		if n != nil && visited[n] == start {
			return g.cycleError(n)
		}
	}
	return hint.With(fmt.Errorf("channel %s of package %s has no head: each of its entries is replaced or skipped by another, the first at %s",
		g.name, g.pkg, g.list[0].At),
		"let no entry replace or skip the newest")
}
