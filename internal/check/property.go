package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/constraints"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/nearest"
)

// declared is a property that a bundle declares in dependencies.yaml or properties.yaml, as it is written there and as it is in a
// catalog.
type declared struct {
	written, rendered catalog.Property
}

// propertyProblem is something wrong with a property, at a field of it.
type propertyProblem struct {
	path         []any
	message, fix string
}

func problemOf(err error) []propertyProblem {
	if err == nil {
		return nil
	}
	return []propertyProblem{{message: err.Error()}}
}

// ofDeclared is a check of each property that a bundle declares.
func ofDeclared(look func(declared) []propertyProblem) func(*single, func(hit)) {
	return func(s *single, found func(hit)) {
		each := func(kind string, p bundle.Property, rendered catalog.Property) {
			for _, problem := range look(declared{catalog.Property{Type: p.Type, Value: p.Value}, rendered}) {
				found(hit{at: p.Place(problem.path...), message: fmt.Sprintf("%s of type %q: %s", kind, p.Type, problem.message), fix: problem.fix})
			}
		}
		for _, p := range s.bundle.Dependencies {
			each("dependency", p, required(p))
		}
		for _, p := range s.bundle.Properties {
			each("property", p, catalog.Property{Type: p.Type, Value: p.Value})
		}
	}
}

// required is what a dependency is in a catalog; one that cannot be read, or is the same there, is what is written.
func required(p bundle.Property) catalog.Property {
	kind, value, err := catalog.Requirement(p)
	if err != nil || kind == p.Type {
		return catalog.Property{Type: p.Type, Value: p.Value}
	}
	raw, _ := json.Marshal(value) // of a struct of texts
	return catalog.Property{Type: kind, Value: raw}
}

// propertyShapes are the types whose values opm reads (operator-registry v1.74.0, alpha/property/property.go).
var propertyShapes = map[string]func() any{
	catalog.PropertyPackage: func() any {
		return &struct {
			PackageName, Version, Release string
		}{}
	},
	catalog.PropertyPackageRequired: func() any { return &struct{ PackageName, VersionRange string }{} },
	catalog.PropertyGVK:             func() any { return &struct{ Group, Kind, Version string }{} },
	catalog.PropertyGVKRequired:     func() any { return &struct{ Group, Kind, Version string }{} },
	catalog.PropertyObject:          func() any { return &struct{ Data []byte }{} },
}

// legible reports of manifests, which are most of a catalog, quickly that they can be read.
func legible(p catalog.Property) bool {
	var value struct {
		Data json.RawMessage `json:"data"`
	}
	if p.Type != catalog.PropertyObject || document.Decode(p.Value, &value) != nil || len(value.Data) < 2 || value.Data[0] != '"' {
		return false
	}
	return document.IsBase64(value.Data[1 : len(value.Data)-1])
}

// unreadable says why opm or OLM cannot read a property, or nil.
func unreadable(p catalog.Property) error {
	var err error
	if shape, ok := propertyShapes[p.Type]; ok && p.Value != nil && !legible(p) {
		err = json.Unmarshal(p.Value, shape())
	} else if p.Value == nil {
		err = errors.New("the value is missing")
	}
	if err == nil && p.Type == "" {
		err = errors.New("the type is missing")
	}
	if err == nil && p.Type == catalog.PropertyPackageRequired {
		var v struct {
			PackageName  string `json:"packageName"`
			VersionRange string `json:"versionRange"`
		}
		if json.Unmarshal(p.Value, &v) == nil {
			if _, bad := semver.ParseRange(v.VersionRange); bad != nil {
				err = fmt.Errorf("version range %q: %w", v.VersionRange, bad)
			}
		}
	}
	return err
}

func unreadableProperties(_ *catalog.Package, b *catalog.Bundle, found func(hit)) {
	for i, p := range b.Properties {
		if err := unreadable(p); err != nil {
			found(hit{at: b.Document.Place("properties", i), message: fmt.Sprintf("property %d (%s) of bundle %s: %v", i, p.Type, b.Name, err)})
		}
	}
}

// knownProperties are the types that OLM or opm know, with the fields of their values.
var knownProperties = map[string][]string{
	catalog.PropertyPackage:         {"packageName", "version", "release"},
	catalog.PropertyGVK:             {"group", "kind", "version"},
	catalog.PropertyPackageRequired: {"packageName", "versionRange"},
	catalog.PropertyGVKRequired:     {"group", "kind", "version"},
	catalog.PropertyConstraint:      {"failureMessage", "all", "any", "not", "cel", "gvk", "package", "none"},
	catalog.PropertyObject:          {"data", "ref"},
	catalog.PropertyCSVMetadata:     nil,
	"olm.maxOpenShiftVersion":       nil,
	"olm.deprecated":                nil,
	"olm.substitutesFor":            nil,
	"olm.label":                     nil,
	"olm.constraints":               nil,
	"olm.bundle.mediatype":          nil,
	"olm.package.channel":           nil,
}

// misspelt says which words of a property are slips of the pen for words that OLM knows.
func misspelt(p catalog.Property) (problems []propertyProblem) {
	fields, known := knownProperties[p.Type]
	if !known {
		for _, t := range slices.Sorted(maps.Keys(knownProperties)) {
			if strings.HasPrefix(strings.ToLower(p.Type), "olm.") && nearest.Distance(strings.ToLower(p.Type), t) <= 2 {
				return []propertyProblem{{[]any{"type"}, fmt.Sprintf("the type %q is unknown; %q is known", p.Type, t), "write " + t}}
			}
		}
		return nil
	}
	if fields == nil {
		return nil
	}
	value := document.Fields(p.Value)
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if slices.ContainsFunc(fields, func(f string) bool { return strings.EqualFold(f, name) }) {
			continue
		}
		for _, f := range fields {
			if !value[f] && nearest.Distance(strings.ToLower(name), strings.ToLower(f)) <= 2 {
				problems = append(problems, propertyProblem{[]any{"value", name}, fmt.Sprintf("field %q is unknown; %q is known", name, f), "write " + f})
				break
			}
		}
	}
	return problems
}

func misspeltProperties(_ *catalog.Package, b *catalog.Bundle, found func(hit)) {
	for i, p := range b.Properties {
		for _, problem := range misspelt(p) {
			found(hit{
				at:      b.Document.Place(slices.Concat([]any{"properties", i}, problem.path)...),
				message: fmt.Sprintf("property %d (%s) of bundle %s: %s", i, p.Type, b.Name, problem.message), fix: problem.fix,
			})
		}
	}
}

// unreadableConstraint says why OLM's resolver cannot read a property that is a constraint, or nil.
func unreadableConstraint(p catalog.Property) error {
	if p.Type != catalog.PropertyConstraint {
		return nil
	}
	constraint, err := constraints.Parse(p.Value)
	if err == nil {
		err = readable(constraint)
	}
	return err
}

func unreadableConstraints(_ *catalog.Package, b *catalog.Bundle, found func(hit)) {
	for i, p := range b.Properties {
		if err := unreadableConstraint(p); err != nil {
			found(hit{at: b.Document.Place("properties", i), message: fmt.Sprintf("the constraint of %s is invalid: %v", b.Name, err)})
		}
	}
}
