package graph

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/hint"
)

// V1 is the upgrade graph of a package as OLM v1 takes it: operator-controller v1.10.0, internal/operator-controller/resolve/catalog.go
// and catalogmetadata/filter/successors.go. A bundle follows those that its entry in a wanted channel replaces, skips or has in its skipRange,
// one step back. Of those that follow, OLM v1 takes the newest, one that is not deprecated if it can. Nothing orders a channel,
// and none is the default: who names no channel wants all. Entries of other channels do not count: to choose among channels,
// resolve/catalog.go deletes the others from the very slice in which successors are looked for.
type V1 struct {
	pkg, channel string
	list         []*v1Bundle // of the wanted channels, the most preferred first
}

// v1Bundle is a bundle with what makes it follow others.
type v1Bundle struct {
	*catalog.Bundle
	version    semver.Version     // without build metadata
	release    []semver.PRVersion // the build metadata, which OLM v1 compares as well
	deprecated bool               // by a document of schema olm.deprecations
	replaces   map[string]bool    // by its entries
	skips      map[string]bool    //
	ranges     []semver.Range     //
	follows    map[*v1Bundle]Kind // those of the list that it follows
}

// NewV1 returns the graph of the named channel of p, or of all channels.
func NewV1(p *catalog.Package, channel string) *V1 {
	g := &V1{pkg: p.Name, channel: channel}
	deprecated := map[string]bool{}
	for _, d := range p.Deprecations {
		if d.Schema == catalog.SchemaBundle {
			deprecated[d.Name] = true
		}
	}
	byName := map[string]*v1Bundle{}
	for _, c := range p.Channels {
		if channel != "" && c.Name != channel {
			continue
		}
		for _, e := range c.Entries {
			b := p.Bundle(e.Name)
			if b == nil {
				continue
			}
			n := byName[e.Name]
			if n == nil {
				n = &v1Bundle{Bundle: b, deprecated: deprecated[b.Name], replaces: map[string]bool{}, skips: map[string]bool{}}
				n.version, n.release = versionAndRelease(b.Version)
				byName[e.Name] = n
				g.list = append(g.list, n)
			}
			n.add(e)
		}
	}
	slices.SortStableFunc(g.list, preferred)
	for _, n := range g.list {
		n.follows = map[*v1Bundle]Kind{}
		for _, from := range g.list {
			if kind := n.kind(from.Name, from.Version); from != n && kind != "" {
				n.follows[from] = kind
			}
		}
	}
	return g
}

func (n *v1Bundle) add(e catalog.Entry) {
	if e.Replaces != "" {
		n.replaces[e.Replaces] = true
	}
	for _, s := range e.Skips {
		n.skips[s] = true
	}
	if e.SkipRange != "" {
		if r, err := semver.ParseRange(e.SkipRange); err == nil {
			n.ranges = append(n.ranges, r)
		}
	}
}

// kind returns by which statement n follows what is installed, or "".
func (n *v1Bundle) kind(installed string, version semver.Version) Kind {
	switch {
	case n.replaces[installed]:
		return Replaces
	case n.skips[installed]:
		return Skips
	case slices.ContainsFunc(n.ranges, func(r semver.Range) bool { return r(version) }):
		return SkipRange
	}
	return ""
}

// versionAndRelease parts a version as OLM v1 does: build metadata are the release of a bundle, unless they cannot be compared.
func versionAndRelease(v semver.Version) (semver.Version, []semver.PRVersion) {
	var release []semver.PRVersion
	for _, build := range v.Build {
		part, err := semver.NewPRVersion(build)
		if err != nil {
			return v, nil
		}
		release = append(release, part)
	}
	v.Build = nil
	return v, release
}

// newer compares two bundles by version and release.
func newer(a, b *v1Bundle) int {
	if c := b.version.Compare(a.version); c != 0 || len(a.release) == 0 && len(b.release) == 0 {
		return c
	}
	switch {
	case len(a.release) == 0:
		return 1
	case len(b.release) == 0:
		return -1
	}
	return semver.Version{Pre: b.release}.Compare(semver.Version{Pre: a.release})
}

// preferred is the order in which OLM v1 chooses.
func preferred(a, b *v1Bundle) int {
	if a.deprecated != b.deprecated {
		if a.deprecated {
			return 1
		}
		return -1
	}
	return newer(a, b)
}

// Next returns what OLM v1 installs where a bundle is installed, or, where installed is "", what it begins with; "" for nothing. It is the
// bundle itself where nothing newer follows it. A ClusterExtension that is SelfCertified takes the newest whatever is installed.
func (g *V1) Next(installed string, version semver.Version, selfCertified bool) string {
	now := &v1Bundle{}
	now.version, now.release = versionAndRelease(version)
	for _, n := range g.list {
		if installed == "" || selfCertified || n.kind(installed, version) != "" || newer(n, now) == 0 {
			return n.Name
		}
	}
	return ""
}

// edges are all of the graph, by the versions of From, then To.
func (g *V1) edges() iter.Seq[Edge] {
	oldest := slices.Clone(g.list)
	slices.SortStableFunc(oldest, func(a, b *v1Bundle) int { return cmp.Or(newer(b, a), cmp.Compare(a.Name, b.Name)) })
	return func(yield func(Edge) bool) {
		for _, from := range oldest {
			next := g.Next(from.Name, from.Version, false)
			for _, to := range oldest {
				if kind, follows := to.follows[from]; follows && !yield(g.edge(from, to, kind, next)) {
					return
				}
			}
		}
	}
}

func (g *V1) edge(from, to *v1Bundle, kind Kind, next string) Edge {
	return Edge{
		Package: g.pkg, Channel: g.channel, From: from.Name, To: to.Name, Kind: kind,
		Declared: kind != SkipRange, Effective: true, Next: to.Name == next,
	}
}

// chain is the way from the oldest bundle to the one that OLM v1 prefers, on which each replaces the one before, as edges.
func (g *V1) chain() []Edge {
	if len(g.list) == 0 {
		return nil
	}
	var chain []Edge
	passed := map[*v1Bundle]bool{}
	for to := g.list[0]; to != nil && !passed[to]; {
		passed[to] = true
		var before *v1Bundle
		for from, kind := range to.follows {
			if kind == Replaces && (before == nil || newer(from, before) < 0) {
				before = from
			}
		}
		if before != nil && !passed[before] {
			chain = append(chain, g.edge(before, to, Replaces, g.Next(before.Name, before.Version, false)))
		}
		to = before
	}
	slices.Reverse(chain)
	return chain
}

// newV1Plan lays out the walk as NewPlan does, for OLM v1.
func newV1Plan(p *catalog.Package, options Options) (Plan, error) {
	if options.Channel != "" && p.Channel(options.Channel) == nil {
		var known []string
		for _, c := range p.Channels {
			known = append(known, c.Name)
		}
		return Plan{}, unknown("channel", options.Channel, "package "+p.Name, known)
	}
	g := NewV1(p, options.Channel)
	if len(g.list) == 0 {
		return Plan{}, hint.With(fmt.Errorf("package %s (%s) has no bundle in a channel", p.Name, p.At), "add entries to a channel")
	}
	named := &Channel{pkg: p.Name, name: options.Channel, byName: map[string]*node{}} // for the options that name bundles
	for _, n := range g.list {
		of := &node{Entry: &catalog.Entry{Name: n.Name}, version: n.Version}
		named.list, named.byName[n.Name] = append(named.list, of), of
	}
	within, err := named.bounds(options)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Package: p.Name, Channel: options.Channel, Head: g.list[0].Name, every: g.hops(options.Mode)}
	plan = plan.Keep(func(_ int, e Edge) bool { return within(named.byName[e.From].version, named.byName[e.To].version) })
	if options.MaxHops > 0 && plan.Count() > options.MaxHops {
		newest := named.newest(plan.All(), options.MaxHops)
		plan = plan.Keep(func(_ int, e Edge) bool { return newest[e] })
	}
	return plan, nil
}

// hops are the edges that mode walks, those of the chain first.
func (g *V1) hops(mode Mode) iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		chain := g.chain()
		for _, e := range chain {
			if !yield(e) {
				return
			}
		}
		if mode == Chain {
			return
		}
		for e := range g.edges() {
			if (mode == All || e.Next) && !slices.Contains(chain, e) && !yield(e) {
				return
			}
		}
	}
}

// Bundles are those of the wanted channels, the most preferred first.
func (g *V1) Bundles() []*catalog.Bundle {
	list := make([]*catalog.Bundle, len(g.list))
	for i, n := range g.list {
		list[i] = n.Bundle
	}
	return list
}

// Follows reports whether OLM v1 goes from one bundle to another by an edge.
func (g *V1) Follows(from, to *catalog.Bundle) bool {
	i := slices.IndexFunc(g.list, func(n *v1Bundle) bool { return n.Name == to.Name })
	return i >= 0 && g.list[i].kind(from.Name, from.Version) != ""
}
