package graph

import (
	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/catalog"
)

// Route answers for one channel where OLM takes an installed bundle, in the channel or not. It is made once for many
// questions.
type Route struct {
	candidates []*node
	byName     map[string]*node
}

// NewRoute returns the route of channel c of p; the error says why OLM cannot order the channel.
func NewRoute(p *catalog.Package, c *catalog.Channel) (*Route, error) {
	list := nodes(p, c)
	candidates, err := order(c.Name, p.Name, list)
	if err != nil {
		return nil, err
	}
	r := &Route{candidates: candidates, byName: make(map[string]*node, len(list))}
	for _, n := range list {
		r.byName[n.Name] = n
	}
	return r, nil
}

// Head returns the name of the channel's head, "" for a channel without entries.
func (r *Route) Head() string {
	if len(r.candidates) == 0 {
		return ""
	}
	return r.candidates[0].Name
}

// Next returns the bundle to which OLM upgrades from an installed one in a single step, or "" for none, as Successor does.
func (r *Route) Next(installed string, version semver.Version) string {
	if next := successor(r.candidates, &node{Entry: &catalog.Entry{Name: installed}, version: version}); next != nil {
		return next.Name
	}
	return ""
}

// Way returns the bundles that OLM installs one after the other from an installed one until nothing follows. Its last is the
// head unless users are stranded; it is empty when nothing follows at all.
func (r *Route) Way(installed string, version semver.Version) []string {
	var way []string
	seen := map[string]bool{installed: true}
	for {
		next := r.Next(installed, version)
		if next == "" || seen[next] {
			return way
		}
		seen[next] = true
		way = append(way, next)
		installed, version = next, r.byName[next].version
	}
}

// Chain returns the entries along replaces from the head to the oldest, skipped ones included, the oldest first.
func (r *Route) Chain() []string {
	list := make([]*node, 0, len(r.byName))
	for _, n := range r.byName {
		list = append(list, n)
	}
	return replacesChain(list, r.candidates)
}
