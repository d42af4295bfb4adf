// Package fuzz makes valid objects from the schemas of CustomResourceDefinitions, asks a converter what is lost of them between
// versions, and shrinks what fails to the least object that still fails.
//
// It knows no cluster: who converts, and who accepts an object, are functions that the caller passes. What a seed makes is the same
// on every machine.
package fuzz

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Schema is the schema of one version of a CustomResourceDefinition, as the API server works with it.
type Schema struct {
	definition *apiextensionsv1.CustomResourceDefinition
	version    string
	hasStatus  bool // status is a subresource, so that nobody sets it when an object is created
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
	optional   []string // paths of the fields that an object may have or lack, sorted
	literals   []any    // strings and numbers that CEL rules compare with
	samples    []map[string]any
	known      map[string][]any // scalars of samples, by the path of their schema
	replicas   place            // of the scale subresource, or nil
}

// NewSchema compiles the schema of version of d. Values of samples, which are of that version, are used where they are valid.
func NewSchema(d *apiextensionsv1.CustomResourceDefinition, version string, samples ...map[string]any) (*Schema, error) {
	at := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if at < 0 {
		return nil, fmt.Errorf("CustomResourceDefinition %s has no version %s", d.Name, version)
	}
	v := d.Spec.Versions[at]
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s has no schema of version %s", d.Name, version)
	}
	converted := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, converted, nil); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s, version %s: %w", d.Name, version, err)
	}
	s := &Schema{definition: d, version: version, samples: samples, hasStatus: v.Subresources != nil && v.Subresources.Status != nil}
	var err error
	if s.structural, err = structuralschema.NewStructural(converted); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s, version %s: %w", d.Name, version, err)
	}
	if s.validator, _, err = validation.NewSchemaValidator(converted); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s, version %s: %w", d.Name, version, err)
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	s.optional = optionalPaths(s.structural)
	if s.hasStatus {
		s.optional = slices.DeleteFunc(s.optional, func(path string) bool { return path == "status" || within(path, "status") })
	}
	s.literals = literals(s.structural)
	s.known = scalarsOf(s.structural, samples)
	if v.Subresources != nil && v.Subresources.Scale != nil {
		for name := range strings.SplitSeq(strings.TrimPrefix(v.Subresources.Scale.SpecReplicasPath, "."), ".") {
			s.replicas = append(s.replicas, name)
		}
	}
	return s, nil
}

// Problems returns what the API server has against object as a new one, without admission webhooks (apiextensions-apiserver v0.36.3,
// pkg/registry/customresource/strategy.go and validator.go).
func (s *Schema) Problems(object map[string]any) field.ErrorList {
	o := s.Read(object)
	if problems := s.misfits(o); len(problems) > 0 || s.rules == nil {
		return problems
	}
	violations, _ := s.rules.Validate(context.Background(), nil, s.structural, o, nil, celconfig.RuntimeCELCostBudget)
	return violations
}

// misfits returns what the schema, without its CEL rules, has against what was read.
func (s *Schema) misfits(o map[string]any) field.ErrorList {
	problems := validation.ValidateCustomResource(nil, o, s.validator)
	problems = append(problems, objectmeta.Validate(nil, o, s.structural, false)...)
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, s.structural, o)...)
	if replicas := at(o, s.replicas); s.replicas != nil && (replicas < 0 || replicas > math.MaxInt32) {
		problems = append(problems, field.Invalid(field.NewPath(s.replicas.path()), replicas, "the scale subresource takes no such number"))
	}
	return problems
}

// Read returns object as the API server hands it out in the version: without unknown fields, with defaults.
func (s *Schema) Read(object map[string]any) map[string]any {
	o := runtime.DeepCopyJSON(object)
	pruning.Prune(o, s.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(o, s.structural)
	defaulting.Default(o, s.structural)
	return o
}

// optionalPaths lists the fields of s that an object may have or lack, as far as lists and maps are entered once.
func optionalPaths(s *structuralschema.Structural) []string {
	var paths []string
	var visit func(at string, s *structuralschema.Structural)
	visit = func(at string, s *structuralschema.Structural) {
		for name, property := range s.Properties {
			if at == "" && (name == "apiVersion" || name == "kind" || name == "metadata") {
				continue
			}
			path := join(at, name)
			if s.ValueValidation == nil || !slices.Contains(s.ValueValidation.Required, name) {
				paths = append(paths, path)
			}
			visit(path, &property)
		}
		if s.Items != nil {
			visit(at+"[]", s.Items)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			visit(at+"[]", s.AdditionalProperties.Structural)
		}
	}
	visit("", s)
	slices.Sort(paths)
	return paths
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// literal is a string or a number in a CEL rule.
var literal = regexp.MustCompile(`'([^'\\]*)'|"([^"\\]*)"|\b(\d{1,9})\b`)

// literals lists what the CEL rules of s compare with.
func literals(s *structuralschema.Structural) []any {
	found := map[any]bool{}
	visitor := structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
		for _, rule := range s.XValidations {
			for _, m := range literal.FindAllStringSubmatch(rule.Rule, -1) {
				if n, err := strconv.ParseInt(m[3], 10, 64); err == nil {
					found[n], found[n+1] = true, true
				} else {
					found[m[1]+m[2]] = true
				}
			}
		}
		return false
	}}
	visitor.Visit(s.DeepCopy())
	var list []any
	for value := range found {
		list = append(list, value)
	}
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprintf("%v %T", a, a), fmt.Sprintf("%v %T", b, b)) })
	return list
}

// at returns the number at a place of object, or 0.
func at(object map[string]any, p place) int64 {
	var inside any = object
	for _, step := range p {
		inside, _ = member(inside, step)
	}
	number, _ := inside.(int64)
	return number
}

// scalarsOf returns the scalars of samples by the path of their schema.
func scalarsOf(s *structuralschema.Structural, samples []map[string]any) map[string][]any {
	known := map[string][]any{}
	var visit func(path string, s *structuralschema.Structural, value any)
	visit = func(path string, s *structuralschema.Structural, value any) {
		switch x := value.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(x)) {
				if property, ok := s.Properties[k]; ok {
					visit(join(path, k), &property, x[k])
				} else if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
					visit(path+"[]", s.AdditionalProperties.Structural, x[k])
				}
			}
		case []any:
			for _, item := range x {
				if s.Items != nil {
					visit(path+"[]", s.Items, item)
				}
			}
		default:
			if !slices.Contains(known[path], value) {
				known[path] = append(known[path], value)
			}
		}
	}
	for _, sample := range samples {
		visit("", s, sample)
	}
	return known
}
