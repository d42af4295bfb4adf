package check

import (
	"slices"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// Kept is what the checks that look at one package alone found of packages before. Only those and the same options decide it.
type Kept interface {
	Alone(p *catalog.Package) (c, previous *catalog.Catalog)      // that hold nothing else; previous is nil where there is none
	Get(p *catalog.Package) (findings []finding.Finding, ok bool) // not ok where p is to be judged
	Put(p *catalog.Package, findings []finding.Finding)           // keeps findings for later
	Parts(p *catalog.Package) Parts                               // what was found of bundles of p
}

// Parts is what was found of some bundles of one package before, so that those that are the same are not judged again when others change.
// It is for use by several goroutines.
type Parts interface {
	Get(part Part, found any) bool // reads it into what found points to; false where it is to be found
	Put(part Part, found any)      // keeps found, which encodes as JSON
	Save()                         // for another time
}

// Part says of what something was found. Only the documents of these bundles decide it, what is asked about them, and the options.
type Part struct {
	What    string
	Asked   any // encodes as JSON
	Bundles []*catalog.Bundle
}

// keptHit is a hit in the document of a bundle, as it is kept: its line counts from that of the document.
type keptHit struct {
	Subject             finding.Subject
	At                  finding.Location
	Message, Cause, Fix string
	Alike               []string
	Published           bool
}

// judgePart tells what checks find by look, of a part whose hits stand in the document of in, or what they found before. Where one of them
// stands elsewhere, or says where another place is, none is kept.
func (s *subject) judgePart(checks []Check, part Part, in *catalog.Bundle, look func(Check, func(hit)), tell func(Check) func(hit)) {
	if s.parts == nil {
		for _, check := range checks {
			look(check, tell(check))
		}
		return
	}
	var before map[string][]keptHit
	if s.parts.Get(part, &before) && before != nil {
		for _, check := range checks {
			for _, k := range before[check.Code] {
				k.At.Line += in.At.Line
				tell(check)(hit{Subject: k.Subject, at: k.At, message: k.Message, cause: k.Cause, fix: k.Fix, alike: k.Alike, published: k.Published})
			}
		}
		return
	}
	found, all := map[string][]keptHit{}, true
	for _, check := range checks {
		told := tell(check)
		look(check, func(h hit) {
			told(h)
			all = all && h.standsIn(part, in)
			at := h.at
			at.Line -= in.At.Line
			found[check.Code] = append(found[check.Code], keptHit{h.Subject, at, h.message, h.cause, h.fix, h.alike, h.published})
		})
	}
	if all {
		s.parts.Put(part, found)
	}
}

// standsIn reports whether h stands in the document of in, and says of no other place where that is.
func (h hit) standsIn(part Part, in *catalog.Bundle) bool {
	if h.at.File != in.At.File || h.at.Line < in.At.Line {
		return false
	}
	text := finding.Finding{Message: h.message, Cause: h.cause, Fix: h.fix}
	return !slices.ContainsFunc(part.Bundles, func(b *catalog.Bundle) bool { return text.Says(b.At.File + ":") })
}

// facts are what checks of whole packages ask of a release.
type facts struct {
	Replaces, SkipRange string
	Skips               []string
	CRDs                []crdFacts
}

// crdFacts are those of a CustomResourceDefinition. Stored is "" where it stores no version.
type crdFacts struct {
	Name, Stored string
	Versions     []string
}

func (f *facts) crd(name string) *crdFacts {
	for i := range f.CRDs {
		if f.CRDs[i].Name == name {
			return &f.CRDs[i]
		}
	}
	return nil
}

// factsOf returns those of a bundle, or nil where it carries no manifests that can be read.
func (s *subject) factsOf(b *catalog.Bundle) *facts {
	if !b.Has(catalog.PropertyObject) {
		return nil
	}
	return s.facts.get(b, func() *facts { return s.findFacts(b) })
}

func (s *subject) findFacts(b *catalog.Bundle) (f *facts) {
	part := Part{What: "facts", Bundles: []*catalog.Bundle{b}}
	var kept *facts
	if s.parts != nil && s.parts.Get(part, &kept) {
		return kept
	}
	if r := s.release(b); r != nil {
		f = r.facts()
	}
	if s.parts != nil {
		s.parts.Put(part, f)
	}
	return f
}

func (r *release) facts() *facts {
	f := &facts{Replaces: r.csv.Spec.Replaces, SkipRange: r.csv.Annotations["olm.skipRange"], Skips: r.csv.Spec.Skips}
	for _, c := range r.crds {
		is := crdFacts{Name: c.Name}
		for _, v := range c.Spec.Versions {
			is.Versions = append(is.Versions, v.Name)
		}
		if v := c.stored(); v != nil {
			is.Stored = v.Name
		}
		f.CRDs = append(f.CRDs, is)
	}
	return f
}
