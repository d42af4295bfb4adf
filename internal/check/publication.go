package check

import (
	"slices"

	"github.com/olmkit/olmkit/internal/catalog"
)

// publication says what of a package users have already, so that nobody can change it any more.
type publication struct {
	edge   func(from, to string) bool // an upgrade that OLM takes
	bundle func(name string) bool
}

// published returns it for p. With a previous catalog that is what the catalog holds alike: bundles with the same content,
// and the upgrades between them that OLM takes there. Without one it is a guess: the bundles that channels hold and that
// are the head of none, and the upgrades to them.
func (s *subject) published(p *catalog.Package) *publication {
	return s.publications.get(p, func() *publication {
		if s.previous != nil {
			return s.publishedIn(s.previous.Find(p.Name), p)
		}
		older := s.superseded(p)
		return &publication{
			edge:   func(_, to string) bool { return older[to] },
			bundle: func(name string) bool { return older[name] },
		}
	})
}

// publishedIn returns what of p is in before, which is nil for a new package.
func (s *subject) publishedIn(before, p *catalog.Package) *publication {
	if before == nil {
		return &publication{edge: func(_, _ string) bool { return false }, bundle: func(string) bool { return false }}
	}
	type ends struct{ from, to string }
	taken := map[ends]bool{}
	for _, e := range s.hops(before) {
		taken[ends{e.From, e.To}] = true
	}
	same := func(name string) bool {
		was, is := before.Bundle(name), p.Bundle(name)
		return was != nil && is != nil && len(s.changed(was, is)) == 0
	}
	return &publication{
		edge:   func(from, to string) bool { return taken[ends{from, to}] && same(from) && same(to) },
		bundle: same,
	}
}

// superseded returns the names of the bundles that are in channels of p and are the head of none. Where OLM cannot order a
// channel, each entry that no other replaces or skips counts as a head.
func (s *subject) superseded(p *catalog.Package) map[string]bool {
	older := map[string]bool{}
	for _, c := range p.Channels {
		for _, e := range c.Entries {
			older[e.Name] = true
		}
	}
	for _, c := range p.Channels {
		heads := c.Heads()
		if head := s.graph(p, c).Head(); head != "" {
			heads = []string{head}
		}
		for _, name := range heads {
			delete(older, name)
		}
	}
	return older
}

// isPublished reports whether the bundle called name is published.
func (s *subject) isPublished(pkg, name string) bool {
	p := s.catalog.Find(pkg)
	return p != nil && s.published(p).bundle(name)
}

// perContent is a check that finds what stands in a bundle itself, and not in the catalog's document of it: what it finds in
// a published bundle is published.
func perContent(run func(*subject, func(hit))) func(*subject, func(hit)) {
	return func(s *subject, found func(hit)) {
		run(s, func(h hit) {
			h.published = s.isPublished(h.Package, h.From)
			found(h)
		})
	}
}

// runOn runs a check of catalogs on s. What a check finds of published bundles that also depends on others is published
// only if it is found in the previous catalog as well.
func (c Check) runOn(s *subject, found func(hit)) {
	if !c.distant || s.previous == nil {
		c.run(s, found)
		return
	}
	hits := collect(c, s)
	if slices.ContainsFunc(hits, func(h hit) bool { return h.published }) {
		before := collect(c, s.before())
		for i, h := range hits {
			hits[i].published = h.published && slices.ContainsFunc(before, func(o hit) bool {
				return o.Package == h.Package && o.From == h.From && o.To == h.To && o.Object == h.Object && o.message == h.message
			})
		}
	}
	for _, h := range hits {
		found(h)
	}
}

func collect(c Check, s *subject) []hit {
	var hits []hit
	c.run(s, func(h hit) { hits = append(hits, h) })
	return hits
}

// before returns the previous catalog, with those of its packages that s looks at.
func (s *subject) before() *subject {
	b := &subject{catalog: s.previous, schemas: s.schemas, wanted: s.wanted}
	for _, p := range s.packages {
		if was := s.previous.Find(p.Name); was != nil {
			b.packages = append(b.packages, was)
		}
	}
	return b
}
