package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/constraints"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
)

const dependencyReference = "https://olm.operatorframework.io/docs/concepts/olm-architecture/dependency-resolution/"

// dependencyChecks look at what bundles need of others.
var dependencyChecks = []Check{
	{
		Code: "DEP001", Severity: finding.Error,
		Title:      "a bundle requires a version that the package does not have",
		Cause:      "OLM's resolver finds no solution: the bundle is never installed, and users of the previous release are not upgraded",
		Fix:        "widen the version range, or publish a version in it",
		References: []string{dependencyReference},
		run:        perContent(requiredPackages(true)),
		whole:      true,
		distant:    true,
	},
	{
		Code: "DEP002", Severity: finding.Info,
		Title:      "a bundle requires a package or API that this catalog does not have",
		Cause:      "the bundle can be installed only if another catalog provides it",
		Fix:        "document the dependency, or add it to this catalog",
		References: []string{dependencyReference},
		run:        perContent(requiredPackages(false)),
		whole:      true,
		distant:    true,
	},
	{
		Code: "DEP003", Severity: finding.Error,
		Title:      "a constraint is invalid",
		Cause:      "OLM's resolver fails with it, for every Subscription in the namespace",
		Fix:        "write the constraint as the reference says",
		References: []string{dependencyReference},
		run:        perContent(perBundle(unreadableConstraints)),
		alone:      ofDeclared(func(p declared) []propertyProblem { return problemOf(unreadableConstraint(p.rendered)) }),
	},
	{
		Code: "DEP004", Severity: finding.Info,
		Title:      "two packages provide the same API",
		Cause:      "OLM does not install both in one cluster, and chooses either of them for a bundle that requires the API",
		Fix:        "check whether this is intended",
		References: []string{dependencyReference},
		run:        sharedAPIs,
		whole:      true,
	},
	{
		Code: "DEP005", Severity: finding.Warning,
		Title:      "no upgrade path of a dependency satisfies both version ranges of an upgrade",
		Cause:      "OLM upgrades the operator and its dependency together or not at all. No single upgrade of the dependency leads from the old version range to the new one, so users are not upgraded",
		Fix:        "let both ranges include a common version of the dependency, or publish an upgrade from one range to the other",
		References: []string{dependencyReference},
		run:        dependencyTorn,
		distant:    true,
		wide:       true,
	},
	{
		Code: "DEP006", Severity: finding.Info,
		Title:      "an upgrade adds a dependency",
		Cause:      "OLM installs the dependency together with the upgrade, in the namespaces of the operator; if it cannot, it does not upgrade",
		Fix:        "tell users, who can have installed the dependency from another source",
		References: []string{dependencyReference},
		run:        dependencyAdded,
	},
	{
		Code: "DEP007", Severity: finding.Warning,
		Title:      "an upgrade stops providing an API that another package requires",
		Cause:      "OLM does not upgrade while an operator in the namespace requires the API, and the other package cannot be installed without a provider",
		Fix:        "keep providing the API, or first release the other package without the requirement",
		References: []string{dependencyReference},
		run:        apiDropped(true),
		whole:      true,
		distant:    true,
	},
	{
		Code: "DEP008", Severity: finding.Info,
		Title:      "an upgrade moves an API to another package",
		Cause:      "during the upgrade two operators or none can own the API's objects; OLM refuses the second owner while the first is installed",
		Fix:        "test the upgrade with the other package installed",
		References: []string{dependencyReference},
		run:        apiDropped(false),
		whole:      true,
		distant:    true,
	},
}

// needs are the ranges that a bundle requires of packages, as written.
func needs(b *catalog.Bundle) map[string]string {
	needed := map[string]string{}
	for _, property := range b.Properties {
		var v struct {
			PackageName  string `json:"packageName"`
			VersionRange string `json:"versionRange"`
		}
		if property.Type == catalog.PropertyPackageRequired && document.Decode(property.Value, &v) == nil {
			needed[v.PackageName] = v.VersionRange
		}
	}
	return needed
}

// requires are the APIs that a bundle requires.
func requires(b *catalog.Bundle) []apiVersion {
	var list []apiVersion
	for _, p := range b.Properties {
		var v apiVersion
		if p.Type == catalog.PropertyGVKRequired && document.Decode(p.Value, &v) == nil {
			list = append(list, v)
		}
	}
	return list
}

func (a apiVersion) String() string { return fmt.Sprintf("%s (%s/%s)", a.Kind, a.Group, a.Version) }

// perHop is a check of the bundles at both ends of each upgrade, which need not carry manifests.
func perHop(look func(s *subject, from, to *catalog.Bundle, found func(hit))) func(*subject, func(hit)) {
	return func(s *subject, found func(hit)) {
		for _, p := range s.packages {
			for _, e := range s.hops(p) {
				if from, to := p.Bundle(e.From), p.Bundle(e.To); from != nil && to != nil {
					look(s, from, to, func(h hit) {
						h.Package, h.Channel, h.From, h.To, h.at = p.Name, e.Channel, e.From, e.To, to.Document.Place("properties")
						h.published = s.published(p).edge(e.From, e.To)
						found(h)
					})
				}
			}
		}
	}
}

var dependencyTorn = perHop(func(s *subject, from, to *catalog.Bundle, found func(hit)) {
	before, after := needs(from), needs(to)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		p := s.catalog.Find(name)
		was, there := before[name]
		if p == nil || !there || was == after[name] {
			continue
		}
		fitted, err := semver.ParseRange(was)
		if err != nil {
			continue
		}
		fits, err := semver.ParseRange(after[name])
		if err != nil {
			continue
		}
		old, next, torn := false, false, true
		for _, b := range p.Bundles {
			if fitted(b.Version) {
				old, torn = true, torn && !fits(b.Version)
			}
			next = next || fits(b.Version)
		}
		if !torn || !old || !next {
			continue // DEP001 speaks of ranges that nothing fits
		}
		for _, e := range s.hops(p) {
			from, to := p.Bundle(e.From), p.Bundle(e.To)
			if from != nil && to != nil && fitted(from.Version) && fits(to.Version) {
				torn = false
			}
		}
		if torn {
			found(hit{message: fmt.Sprintf("%s requires %s %s, %s requires %s, and no upgrade path of %s satisfies both version ranges", from.Name, name, was, to.Name, after[name], name)})
		}
	}
})

var dependencyAdded = perHop(func(_ *subject, from, to *catalog.Bundle, found func(hit)) {
	before, had := needs(from), requires(from)
	var added []string
	for _, name := range slices.Sorted(maps.Keys(needs(to))) {
		if _, there := before[name]; !there {
			added = append(added, "package "+name+" "+needs(to)[name])
		}
	}
	for _, api := range requires(to) {
		if !slices.Contains(had, api) {
			added = append(added, api.String())
		}
	}
	if len(added) > 0 {
		found(hit{message: fmt.Sprintf("%s adds dependencies that %s did not have: %s", to.Name, from.Name, abridge(added))})
	}
})

// apiDropped looks at APIs that an upgrade no longer provides: with missed set at those that another package requires and
// nothing else provides, else at those that another package provides.
func apiDropped(missed bool) func(*subject, func(hit)) {
	return func(s *subject, found func(hit)) {
		providers, users := map[apiVersion][]string{}, map[apiVersion][]string{}
		add := func(to map[apiVersion][]string, api apiVersion, name string) {
			if list := to[api]; len(list) == 0 || list[len(list)-1] != name {
				to[api] = append(list, name)
			}
		}
		for _, p := range s.catalog.Packages {
			for _, b := range p.Bundles {
				for _, api := range provides(b) {
					add(providers, api, p.Name)
				}
				for _, api := range requires(b) {
					add(users, api, p.Name)
				}
			}
		}
		perHop(func(_ *subject, from, to *catalog.Bundle, found func(hit)) {
			kept := provides(to)
			for _, api := range provides(from) {
				if slices.Contains(kept, api) {
					continue
				}
				foreign := func(list []string) string {
					list = slices.DeleteFunc(slices.Clone(list), func(name string) bool { return name == from.Package })
					slices.Sort(list)
					return abridge(slices.Compact(list))
				}
				needed, now := foreign(users[api]), foreign(providers[api])
				switch {
				case missed && needed != "" && now == "":
					found(hit{message: fmt.Sprintf("%s no longer provides %s, which %s requires", to.Name, api, needed)})
				case !missed && now != "":
					found(hit{message: fmt.Sprintf("%s no longer provides %s, which %s provides", to.Name, api, now)})
				}
			}
		})(s, found)
	}
}

// unmet returns what c requires that the catalog does not hold, "" when it may be satisfied, and whether the package that
// is asked for is there in other versions. Of alternatives none must be there; what is excluded or said in CEL is left alone.
func (s *subject) unmet(c constraints.Constraint, provided map[apiVersion]bool) (missing string, there bool) {
	switch {
	case c.Package != nil:
		fits, err := semver.ParseRange(c.Package.VersionRange)
		if err != nil {
			return "", false // DEP003
		}
		p := s.catalog.Find(c.Package.PackageName)
		if p == nil {
			return fmt.Sprintf("package %s %s", c.Package.PackageName, c.Package.VersionRange), false
		}
		if !slices.ContainsFunc(p.Bundles, func(b *catalog.Bundle) bool { return fits(b.Version) }) {
			return fmt.Sprintf("package %s %s", c.Package.PackageName, c.Package.VersionRange), true
		}
	case c.GVK != nil:
		if api := (apiVersion{Group: c.GVK.Group, Version: c.GVK.Version, Kind: c.GVK.Kind}); !provided[api] {
			return api.String(), false
		}
	case c.All != nil:
		for _, inner := range c.All.Constraints {
			if missing, there := s.unmet(inner, provided); missing != "" {
				return missing, there
			}
		}
	case c.Any != nil:
		var all []string
		every := true
		for _, inner := range c.Any.Constraints {
			missing, there := s.unmet(inner, provided)
			if missing == "" {
				return "", false
			}
			all, every = append(all, missing), every && there
		}
		return strings.Join(all, " or "), every
	}
	return "", false
}

// requiredPackages looks at olm.package.required and olm.gvk.required: with there set at packages that the catalog holds in
// no fitting version, else at what it does not hold at all.
func requiredPackages(there bool) func(*subject, func(hit)) {
	return func(s *subject, found func(hit)) {
		provided := map[apiVersion]bool{}
		for _, p := range s.catalog.Packages {
			for _, b := range p.Bundles {
				for _, api := range provides(b) {
					provided[api] = true
				}
			}
		}
		perBundle(func(_ *catalog.Package, b *catalog.Bundle, found func(hit)) {
			for i, property := range b.Properties {
				tell := func(format string, args ...any) {
					found(hit{at: b.Document.Place("properties", i), message: fmt.Sprintf(format, args...)})
				}
				switch property.Type {
				case catalog.PropertyPackageRequired:
					var v struct {
						PackageName  string `json:"packageName"`
						VersionRange string `json:"versionRange"`
					}
					if json.Unmarshal(property.Value, &v) != nil {
						continue
					}
					fits, err := semver.ParseRange(v.VersionRange)
					if err != nil {
						continue // CAT013
					}
					p := s.catalog.Find(v.PackageName)
					switch {
					case p == nil && !there:
						tell("%s requires package %s %s", b.Name, v.PackageName, v.VersionRange)
					case p != nil && there && !slices.ContainsFunc(p.Bundles, func(o *catalog.Bundle) bool { return fits(o.Version) }):
						tell("%s requires package %s %s, but no bundle of it has such a version", b.Name, v.PackageName, v.VersionRange)
					}
				case catalog.PropertyConstraint:
					constraint, err := constraints.Parse(property.Value)
					if err != nil {
						continue // DEP003
					}
					if missing, inOtherVersions := s.unmet(constraint, provided); missing != "" && inOtherVersions == there {
						more := ""
						if there {
							more = ", but no bundle has such a version"
						}
						tell("%s requires by a constraint %s%s", b.Name, missing, more)
					}
				case catalog.PropertyGVKRequired:
					var v apiVersion
					if json.Unmarshal(property.Value, &v) == nil && !there && !provided[v] {
						tell("%s requires kind %s of %s/%s", b.Name, v.Kind, v.Group, v.Version)
					}
				}
			}
		})(s, found)
	}
}

// apiVersion is the value of olm.gvk.
type apiVersion struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

func provides(b *catalog.Bundle) []apiVersion {
	var list []apiVersion
	for _, p := range b.Properties {
		var v apiVersion
		if p.Type == catalog.PropertyGVK && document.Decode(p.Value, &v) == nil {
			list = append(list, v)
		}
	}
	return list
}

// readable follows operator-lifecycle-manager v0.46.0, pkg/controller/registry/resolver/resolver.go, convertConstraints.
func readable(list ...constraints.Constraint) error {
	for _, c := range list {
		var err error
		switch {
		case c.GVK != nil:
		case c.Package != nil:
			_, err = semver.ParseRange(c.Package.VersionRange)
		case c.All != nil:
			err = readable(c.All.Constraints...)
		case c.Any != nil:
			err = readable(c.Any.Constraints...)
		case c.Not != nil:
			err = readable(c.Not.Constraints...)
		case c.Cel != nil:
			_, err = constraints.NewCelEnvironment().Validate(c.Cel.Rule)
		default:
			err = fmt.Errorf("the constraint is empty")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func sharedAPIs(s *subject, found func(hit)) {
	providers := map[apiVersion][]string{}
	for _, p := range s.catalog.Packages {
		seen := map[apiVersion]bool{}
		for _, b := range p.Bundles {
			for _, api := range provides(b) {
				if !seen[api] {
					seen[api] = true
					providers[api] = append(providers[api], p.Name)
				}
			}
		}
	}
	shared := map[string][]string{} // APIs by their packages
	for api, packages := range providers {
		if len(packages) > 1 {
			key := strings.Join(packages, ", ")
			shared[key] = append(shared[key], api.String())
		}
	}
	for packages, apis := range shared {
		name, _, _ := strings.Cut(packages, ", ")
		p := s.catalog.Find(name)
		slices.Sort(apis)
		if slices.Contains(s.packages, p) {
			found(hit{Subject: finding.Subject{Package: name}, at: p.At, message: fmt.Sprintf("%s provide %s", packages, abridge(apis))})
		}
	}
}
