// Package check judges catalogs without running them: a list of checks, each of which looks for one mistake by which
// packages or upgrades are known to break.
package check

import (
	"crypto/sha256"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
)

// Check looks for one mistake.
type Check struct {
	Code       string           // family and number, stable for ever once released
	Severity   finding.Severity // of all its findings
	Title      string           // what is wrong, as a clause
	Cause      string           // why it matters
	Fix        string           // what to do
	References []string
	run        func(*subject, func(hit))          // for checks of catalogs
	whole      bool                               // run looks at all packages at once, not at one after another
	edge       func(*subject, upgrade, func(hit)) // for checks of one upgrade, by what stands at its ends
	each       func(*release, func(hit))          // for checks of each bundle that carries its manifests
	judge      func(*single, func(hit))           // for checks of one bundle
	alone      func(*single, func(hit))           // for checks of catalogs that have something to say of a bundle which is in none
	asked      func(Options) bool                 // whether the options bring what the check needs; nil when it needs nothing
	distant    bool                               // what run finds of a bundle or an upgrade depends on others as well
	wide       bool                               // run looks at other packages, too
}

// hit is one place where a check found its mistake. An empty cause or fix is the check's own.
type hit struct {
	finding.Subject
	at      finding.Location
	message string
	cause   string
	fix     string

	path      []any    // of the field, in the manifest of the upgrade's end
	alike     []string // other bundles from which the upgrade has the same; newest last
	published bool     // it is about what is published
}

// All are the checks, in the order of their codes.
func All() []Check {
	return slices.Concat(bundleChecks(), catalogChecks, graphChecks, channelChecks, dependencyChecks, edgeChecks, admissionChecks, immutableChecks, versionChecks, crdChecks, sampleChecks, olmV1Checks, againstChecks, templateChecks)
}

// Options choose what is judged.
type Options struct {
	Packages []string         // judge only these; all when empty
	Only     []string         // run only these checks, named by code or by the letters of their family; all when empty
	Skip     []string         // leave these out, named likewise
	Previous *catalog.Catalog // what users have now, for the checks that compare
	Template *catalog.Catalog // what the catalog's template makes, for the check that compares with it
	Registry Registry         // of ImagesIn, for the checks of what registries have
	Kept     Kept             // what was found of packages before; nil for nothing
}

// packagesOf returns the packages of c to judge.
func (o Options) packagesOf(c *catalog.Catalog) []*catalog.Package {
	if len(o.Packages) == 0 {
		return c.Packages
	}
	return slices.DeleteFunc(slices.Clone(c.Packages), func(p *catalog.Package) bool { return !slices.Contains(o.Packages, p.Name) })
}

// Catalog runs the checks over c and returns what they found, with what could not be read of it, in the order of the
// places, and the codes of the checks that ran. As many packages as there are processors are judged at a time, and what was
// read of a package is forgotten with it: that bounds the memory that a large catalog takes.
func Catalog(c *catalog.Catalog, options Options) ([]finding.Finding, []string) {
	chosen := slices.DeleteFunc(All(), func(check Check) bool {
		return len(options.Only) > 0 && !check.named(options.Only) || check.named(options.Skip) || Family(check.Code) == "CMP" && options.Previous == nil || !check.possible(options)
	})
	packages := options.packagesOf(c)
	about := func(packages ...*catalog.Package) *subject {
		return &subject{catalog: c, schemas: &schemaReader{}, previous: options.Previous, template: options.Template, registry: options.Registry, packages: packages, wanted: options.Packages}
	}
	all := about(packages...)
	findings := &findings{list: slices.Clone(c.Problems)}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, p := range largestFirst(packages) {
		group.Go(func() error {
			s := about(p)
			s.whole = all
			s.judgePackage(chosen, options.Kept, findings)
			return nil
		})
	}
	for _, check := range chosen {
		if check.whole {
			group.Go(func() error {
				check.runOn(all, findings.of(check))
				return nil
			})
		}
	}
	_ = group.Wait() // no check fails

	finding.Sort(findings.list)
	codes := make([]string, len(chosen))
	for i, check := range chosen {
		codes[i] = check.Code
	}
	return findings.list, codes
}

// findings are what checks that run side by side find.
type findings struct {
	mu   sync.Mutex
	list []finding.Finding
}

// of returns what a check tells of its hits.
func (f *findings) of(check Check) func(hit) {
	return func(h hit) { f.add(check.finding(h)) }
}

func (f *findings) add(list ...finding.Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, list...)
}

// judgePackage runs the checks of the one package that s is about, or takes from kept what those found that look at nothing else. These do
// not get to see anything else then, so that nothing else can decide what is kept.
func (s *subject) judgePackage(checks []Check, kept Kept, found *findings) {
	if kept == nil {
		s.judge(checks, found)
		return
	}
	s.judge(only(checks, func(c Check) bool { return c.wide }), found)
	p := s.packages[0]
	known, ok := kept.Get(p)
	if !ok {
		own := &findings{}
		s.catalog, s.previous = kept.Alone(p)
		s.parts = kept.Parts(p)
		s.judge(only(checks, func(c Check) bool { return !c.wide }), own)
		s.parts.Save()
		known = own.list
		kept.Put(p, known)
	}
	found.add(known...)
}

// only returns those of checks that is says.
func only(checks []Check, is func(Check) bool) []Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return !is(c) })
}

// judge runs checks side by side, but for those that look at all packages at once.
func (s *subject) judge(checks []Check, found *findings) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	run := func(what func()) {
		group.Go(func() error {
			what()
			return nil
		})
	}
	if each := only(checks, func(c Check) bool { return c.each != nil }); len(each) > 0 {
		s.perInline(func(b *catalog.Bundle) { run(func() { s.judgeRelease(each, b, found.of) }) })
	}
	if ofUpgrades := only(checks, func(c Check) bool { return c.edge != nil }); len(ofUpgrades) > 0 {
		s.perTarget(func(to *catalog.Bundle, hops []hop) { run(func() { s.judgeUpgrades(ofUpgrades, to, hops, found.of) }) })
	}
	if ofHeads := only(checks, func(c Check) bool { return c.judge != nil }); len(ofHeads) > 0 {
		for _, p := range s.packages {
			for _, b := range s.heads(p) {
				run(func() { s.judgeHead(ofHeads, b, found.of) })
			}
		}
	}
	for _, check := range only(checks, func(c Check) bool { return c.run != nil && !c.whole }) {
		run(func() { check.runOn(s, found.of(check)) })
	}
	_ = group.Wait() // no check fails
}

// perInline calls look with each bundle that carries its manifests.
func (s *subject) perInline(look func(*catalog.Bundle)) {
	for _, p := range s.packages {
		for _, b := range p.Bundles {
			if b.Has(catalog.PropertyObject) {
				look(b)
			}
		}
	}
}

// largestFirst orders packages so that the last to be judged are small ones, which leave no processor idle for long.
func largestFirst(packages []*catalog.Package) []*catalog.Package {
	return slices.SortedStableFunc(slices.Values(packages), func(a, b *catalog.Package) int { return len(b.Bundles) - len(a.Bundles) })
}

// judgeRelease runs the checks of each bundle on one.
func (s *subject) judgeRelease(checks []Check, b *catalog.Bundle, tell func(Check) func(hit)) {
	s.judgePart(checks, Part{What: "bundle", Bundles: []*catalog.Bundle{b}}, b, func(check Check, found func(hit)) {
		if r := s.release(b); r != nil {
			check.each(r, func(h hit) {
				h.Package, h.From = b.Package, b.Name
				found(h)
			})
		}
	}, tell)
}

// judgeHead runs the checks of single bundles on the head of a channel.
func (s *subject) judgeHead(checks []Check, b *catalog.Bundle, tell func(Check) func(hit)) {
	read := sync.OnceValue(func() *single { return s.single(b) })
	published := s.isPublished(b.Package, b.Name)
	s.judgePart(checks, Part{What: "head", Asked: published, Bundles: []*catalog.Bundle{b}}, b, func(check Check, found func(hit)) {
		head := read()
		if head == nil {
			return
		}
		check.judge(head, func(h hit) {
			h.Package, h.From = head.bundle.Package(), head.csv.Name
			h.published = published && check.asked == nil // what registries hold can change
			found(h)
		})
	}, tell)
}

// heads returns the bundles of p that new users get, the default channel's head and the newest of all heads, as far as the
// catalog carries their manifests, for the checks of single bundles. Older releases are left alone: nobody can mend them
// any more.
func (s *subject) heads(p *catalog.Package) []*catalog.Bundle {
	var newest, common *catalog.Bundle
	for _, c := range p.Channels {
		b := p.Bundle(s.graph(p, c).Head())
		if b == nil {
			continue
		}
		if newest == nil || b.Version.GT(newest.Version) {
			newest = b
		}
		if c.Name == p.DefaultChannel {
			common = b
		}
	}
	return slices.DeleteFunc(slices.Compact([]*catalog.Bundle{common, newest}), func(b *catalog.Bundle) bool {
		return b == nil || !b.Has(catalog.PropertyObject)
	})
}

// single reads a bundle for the checks of single bundles; nil where it has no ClusterServiceVersion that can be read.
func (s *subject) single(b *catalog.Bundle) *single {
	inline := s.unpacked(b)
	if inline.CSV() == nil {
		return nil
	}
	one := newSingle(inline, s.schemas)
	one.registry, one.inCatalog = s.registry, true
	for _, p := range b.Properties {
		if p.Type != catalog.PropertyObject && p.Type != catalog.PropertyGVK { // which it provides
			one.declared = append(one.declared, bundle.Property{Type: p.Type, Value: p.Value})
		}
	}
	return one
}

// named reports whether one of names, codes or families, means c.
func (c Check) named(names []string) bool {
	return slices.Contains(names, c.Code) || slices.Contains(names, Family(c.Code))
}

// possible reports whether the options bring what c needs.
func (c Check) possible(options Options) bool { return c.asked == nil || c.asked(options) }

// None reports whether Only and Skip leave no check.
func (o Options) None() bool {
	return !slices.ContainsFunc(All(), func(c Check) bool { return (len(o.Only) == 0 || c.named(o.Only)) && !c.named(o.Skip) })
}

// Known reports whether name is the code or the family of a check.
func Known(name string) bool { return slices.Contains(Names(), name) }

// RefusedByOpm are the checks whose errors are of catalogs that opm does not serve (operator-registry v1.74.0, alpha/declcfg/declcfg_to_model.go
// and alpha/model/model.go, Validate).
var RefusedByOpm = []string{
	"CAT001", "CAT002", "CAT003", "CAT004", "CAT005", "CAT006", "CAT007", "CAT008", "CAT009", "CAT010", "CAT011", "CAT012", "CAT013", "CAT014",
	"CAT015", "CAT016", "GRA001", "GRA002", "GRA004",
}

// Names returns the families of the checks, and then their codes.
func Names() []string {
	var families, codes []string
	for _, c := range All() {
		families, codes = append(families, Family(c.Code)), append(codes, c.Code)
	}
	return slices.Concat(slices.Compact(families), codes)
}

// Family returns the letters of a code.
func Family(code string) string {
	for i, r := range code {
		if r < 'A' || r > 'Z' {
			return code[:i]
		}
	}
	return code
}

func (c Check) finding(h hit) finding.Finding {
	f := finding.Finding{
		Code: c.Code, Severity: c.Severity, Subject: h.Subject, Message: h.message,
		Cause: c.Cause, Fix: c.Fix, References: c.References, Published: h.published,
	}
	if len(h.alike) > 0 {
		f.Message += "; also from " + abridge(h.alike)
	}
	if h.at.File != "" {
		at := h.at
		f.Location = &at
	}
	if h.cause != "" {
		f.Cause = h.cause
	}
	if h.fix != "" {
		f.Fix = h.fix
	}
	return f
}

// subject is what the checks look at.
type subject struct {
	catalog  *catalog.Catalog
	previous *catalog.Catalog // nil when there is none
	template *catalog.Catalog // likewise
	registry Registry         // likewise
	packages []*catalog.Package
	wanted   []string // names of the packages to judge; all when empty
	whole    *subject // that has the graphs, for all packages; nil for none but this
	parts    Parts    // what was found before; nil for nothing

	// What checks share, so that each thing is read or compared once.
	schemas  *schemaReader
	releases memo[*catalog.Bundle, *release]
	crds     memo[[sha256.Size]byte, *crd]
	graphs   memo[*catalog.Channel, *graph.Channel]
	ways     memo[*catalog.Package, []graph.Edge]
	edges    memo[*catalog.Package, []hop]
	facts    memo[*catalog.Bundle, *facts]
	strange  memo[*subject, []strangeField]
	refused  memo[[2][sha256.Size]byte, []string]
	compared memo[comparison, changes]
	unsafe   memo[safetyKey, []refusal]
	differ   memo[*catalog.Bundle, []string]

	publications memo[*catalog.Package, *publication]
	told         recent
}

// memo holds what was made for each key, once, for checks that run side by side. The zero memo is ready.
type memo[K comparable, V any] struct {
	entries sync.Map // of K, to a func() V
}

func (m *memo[K, V]) get(key K, make func() V) V {
	made, ok := m.entries.Load(key)
	if !ok {
		made, _ = m.entries.LoadOrStore(key, sync.OnceValue(make))
	}
	once, _ := made.(func() V)
	return once()
}

// perPackage is a check that looks at one package at a time.
func perPackage(look func(*catalog.Package, func(hit))) func(*subject, func(hit)) {
	return func(s *subject, found func(hit)) {
		for _, p := range s.packages {
			look(p, func(h hit) {
				h.Package = p.Name
				found(h)
			})
		}
	}
}

// perChannel is a check that looks at one channel at a time.
func perChannel(look func(*catalog.Package, *catalog.Channel, func(hit))) func(*subject, func(hit)) {
	return perPackage(func(p *catalog.Package, found func(hit)) {
		for _, c := range p.Channels {
			look(p, c, func(h hit) {
				h.Channel = c.Name
				found(h)
			})
		}
	})
}

// graph returns the graph of a channel of p.
func (s *subject) graph(p *catalog.Package, c *catalog.Channel) *graph.Channel {
	if s.whole != nil {
		return s.whole.graph(p, c)
	}
	return s.graphs.get(c, func() *graph.Channel { return graph.New(p, c) })
}

// perGraph is a check that looks at the graph of one channel at a time.
func perGraph(look func(*graph.Channel, *catalog.Package, *catalog.Channel, func(hit))) func(*subject, func(hit)) {
	return func(s *subject, found func(hit)) {
		perChannel(func(p *catalog.Package, c *catalog.Channel, found func(hit)) { look(s.graph(p, c), p, c, found) })(s, found)
	}
}

// perBundle is a check that looks at one bundle at a time.
func perBundle(look func(*catalog.Package, *catalog.Bundle, func(hit))) func(*subject, func(hit)) {
	return perPackage(func(p *catalog.Package, found func(hit)) {
		for _, b := range p.Bundles {
			look(p, b, func(h hit) {
				h.From = b.Name
				found(h)
			})
		}
	})
}
