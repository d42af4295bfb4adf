package graph

import (
	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/catalog"
)

// switches are the hops that OLM takes when the channel of a Subscription is changed to this one: from the head of each other
// channel of p, which has most users, and from those of its entries that this channel does not have. They are in the order of
// the channels, and then by version.
func (g *Channel) switches(p *catalog.Package) []Edge {
	var hops []Edge
	g.elsewhere = map[string]semver.Version{}
	for _, c := range p.Channels {
		if c.Name == g.name {
			continue
		}
		other := New(p, c)
		for _, from := range other.byVersion {
			if _, taken := g.elsewhere[from.Name]; taken || from.Name != other.Head() && g.byName[from.Name] != nil {
				continue // from which other channel a bundle comes makes no difference
			}
			to := g.successor(from.Name, from.version)
			if to == nil || to.Name == from.Name {
				continue
			}
			g.elsewhere[from.Name] = from.version
			hops = append(hops, Edge{
				Package: g.pkg, Channel: g.name, Switch: c.Name, From: from.Name, To: to.Name, Kind: to.kind(from),
				Declared: to.kind(from) != SkipRange, Effective: true, Next: true,
			})
		}
	}
	return hops
}

// versionOf is the version of a bundle of this channel, or of one that switches comes from.
func (g *Channel) versionOf(name string) semver.Version {
	if n := g.byName[name]; n != nil {
		return n.version
	}
	return g.elsewhere[name]
}
