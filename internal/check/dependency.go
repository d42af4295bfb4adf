package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/constraints"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

const dependencyReference = "https://olm.operatorframework.io/docs/concepts/olm-architecture/dependency-resolution/"

// dependencyChecks look at what bundles need of others.
var dependencyChecks = []Check{
	{
		Code: "DEP001", Severity: finding.Error,
		Title:      "a bundle requires a version of a package that the package does not have",
		Cause:      "OLM's resolver finds no solution: the bundle is never installed, and who has its predecessor is not upgraded",
		Cure:       "widen the range, or publish the version",
		References: []string{dependencyReference},
		run:        requiredPackages(true),
	},
	{
		Code: "DEP002", Severity: finding.Info,
		Title:      "a bundle requires what this catalog does not hold",
		Cause:      "the bundle can be installed only where another catalog has it",
		Cure:       "say so in the documentation, or ship the dependency in the same catalog",
		References: []string{dependencyReference},
		run:        requiredPackages(false),
	},
	{
		Code: "DEP003", Severity: finding.Error,
		Title:      "a constraint cannot be read",
		Cause:      "OLM's resolver fails on it, for every Subscription in the namespace",
		Cure:       "write the constraint as the reference says",
		References: []string{dependencyReference},
		run:        unreadableConstraints,
	},
	{
		Code: "DEP004", Severity: finding.Info,
		Title:      "two packages provide one API",
		Cause:      "OLM refuses to have both in one cluster, and takes either for who requires the API",
		Cure:       "see whether it is meant so",
		References: []string{dependencyReference},
		run:        sharedAPIs,
	},
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
				at := b.Document.Place("properties", i)
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
						found(hit{at: at, message: fmt.Sprintf("%s requires package %s %s", b.Name, v.PackageName, v.VersionRange)})
					case p != nil && there && !slices.ContainsFunc(p.Bundles, func(o *catalog.Bundle) bool { return fits(o.Version) }):
						found(hit{at: at, message: fmt.Sprintf("%s requires package %s %s, and no bundle of it is of such a version", b.Name, v.PackageName, v.VersionRange)})
					}
				case catalog.PropertyGVKRequired:
					var v apiVersion
					if json.Unmarshal(property.Value, &v) == nil && !there && !provided[v] {
						found(hit{at: at, message: fmt.Sprintf("%s requires %s of %s/%s", b.Name, v.Kind, v.Group, v.Version)})
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
		if p.Type == catalog.PropertyGVK && json.Unmarshal(p.Value, &v) == nil {
			list = append(list, v)
		}
	}
	return list
}

var unreadableConstraints = perBundle(func(_ *catalog.Package, b *catalog.Bundle, found func(hit)) {
	for i, property := range b.Properties {
		if property.Type != catalog.PropertyConstraint {
			continue
		}
		constraint, err := constraints.Parse(property.Value)
		if err == nil {
			err = readable(constraint)
		}
		if err != nil {
			found(hit{at: b.Document.Place("properties", i), message: fmt.Sprintf("the constraint of %s: %v", b.Name, err)})
		}
	}
})

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
			err = fmt.Errorf("it is empty")
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
			shared[key] = append(shared[key], fmt.Sprintf("%s (%s/%s)", api.Kind, api.Group, api.Version))
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
