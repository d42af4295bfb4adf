// Package check judges catalogs without running them: a list of checks, each of which looks for one mistake by which
// packages or upgrades are known to break.
package check

import (
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
)

// Check looks for one mistake.
type Check struct {
	Code       string           // family and number, stable for ever once released
	Severity   finding.Severity // of all its findings
	Title      string           // what is wrong, as a clause
	Cause      string           // why it matters
	Cure       string           // what to do
	References []string
	run        func(*subject, func(hit)) // for checks of catalogs
	judge      func(*single, func(hit))  // for checks of one bundle
}

// hit is one place where a check found its mistake. An empty cause or cure is the check's own.
type hit struct {
	finding.Subject
	at      finding.Location
	message string
	cause   string
	cure    string
}

// All are the checks, in the order of their codes.
func All() []Check {
	return slices.Concat(bundleChecks(), catalogChecks, graphChecks, dependencyChecks, edgeChecks, crdChecks, againstChecks)
}

// Options choose what is judged.
type Options struct {
	Packages []string         // judge only these; all when empty
	Only     []string         // run only these checks, named by code or by the letters of their family; all when empty
	Skip     []string         // leave these out, named likewise
	Previous *catalog.Catalog // what users have now, for the checks that compare
}

// Catalog runs the checks over c and returns what they found, with what could not be read of it, in the order of the
// places, and the codes of the checks that ran.
func Catalog(c *catalog.Catalog, options Options) ([]finding.Finding, []string) {
	s := &subject{catalog: c, previous: options.Previous, packages: c.Packages, wanted: options.Packages}
	if len(options.Packages) > 0 {
		s.packages = slices.DeleteFunc(slices.Clone(c.Packages), func(p *catalog.Package) bool { return !slices.Contains(options.Packages, p.Name) })
	}
	heads := s.heads()
	var codes []string
	findings := slices.Clone(c.Problems)
	for _, check := range All() {
		if len(options.Only) > 0 && !check.named(options.Only) || check.named(options.Skip) {
			continue
		}
		if Family(check.Code) == "CMP" && options.Previous == nil {
			continue
		}
		codes = append(codes, check.Code)
		tell := func(h hit) { findings = append(findings, check.finding(h)) }
		if check.run != nil {
			check.run(s, tell)
			continue
		}
		for _, head := range heads {
			check.judge(head, func(h hit) {
				h.Package, h.From = head.bundle.Package(), head.csv.Name
				tell(h)
			})
		}
	}
	finding.Sort(findings)
	return findings, codes
}

// heads returns the bundles that new users get, the default channel's head and the newest of all heads, as far as the
// catalog carries their manifests, for the checks of single bundles. Older releases are left alone: nobody can mend them
// any more.
func (s *subject) heads() []*single {
	var list []*single
	for _, p := range s.packages {
		var newest, common *catalog.Bundle
		for _, c := range p.Channels {
			b := headOf(p, c)
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
		for _, b := range slices.Compact([]*catalog.Bundle{common, newest}) {
			if b == nil || !hasProperty(b, catalog.PropertyObject) {
				continue
			}
			if inline := unpacked(b); inline.CSV() != nil {
				list = append(list, newSingle(inline))
			}
		}
	}
	return list
}

// unpacked is the bundle directory that b was rendered from, as far as its manifests tell; all of them stand where b does.
func unpacked(b *catalog.Bundle) *bundle.Bundle {
	u := &bundle.Bundle{Dir: b.At.File, AnnotationsAt: b.At, Annotations: map[string]string{
		bundle.AnnotationPackage:   b.Package,
		bundle.AnnotationMediaType: "registry+v1",
		bundle.AnnotationManifests: "manifests/",
		bundle.AnnotationMetadata:  "metadata/",
	}}
	objects, err := b.Objects()
	if err != nil {
		return u
	}
	for _, o := range objects {
		var head struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Metadata   struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"metadata"`
		}
		if json.Unmarshal(o, &head) != nil || head.Kind == "" {
			continue
		}
		u.Manifests = append(u.Manifests, bundle.Manifest{
			JSON: o, APIVersion: head.APIVersion, Kind: head.Kind, Name: head.Metadata.Name, Namespace: head.Metadata.Namespace,
			At: b.At, Document: document.New(o, b.At),
		})
	}
	return u
}

// named reports whether one of names, codes or families, means c.
func (c Check) named(names []string) bool {
	return slices.Contains(names, c.Code) || slices.Contains(names, Family(c.Code))
}

// Known reports whether name is the code or the family of a check.
func Known(name string) bool {
	return slices.ContainsFunc(All(), func(c Check) bool { return c.named([]string{name}) })
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
		Cause: c.Cause, Cure: c.Cure, References: c.References,
	}
	if h.at.File != "" {
		at := h.at
		f.Location = &at
	}
	if h.cause != "" {
		f.Cause = h.cause
	}
	if h.cure != "" {
		f.Cure = h.cure
	}
	return f
}

// subject is what the checks look at.
type subject struct {
	catalog  *catalog.Catalog
	previous *catalog.Catalog // nil when there is none
	packages []*catalog.Package
	wanted   []string // names of the packages to judge; all when empty

	// What checks share, so that each thing is read or compared once.
	releases map[*catalog.Bundle]*release
	crds     map[[sha256.Size]byte]*crd
	edges    map[*catalog.Package][]upgrade
	refused  map[[2][sha256.Size]byte][]string
	compared map[comparison]changes
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
