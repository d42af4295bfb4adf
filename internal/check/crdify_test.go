package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	crdproperty "sigs.k8s.io/crdify/pkg/validations/property"
	"sigs.k8s.io/crdify/pkg/validators/version"
)

// What is said of two versions is what crdify's own runner says, as OLM v1 has it run, for schemas that differ at random.
func TestAsCrdify(t *testing.T) {
	judge, err := crdify()
	if err != nil {
		t.Fatal(err)
	}
	run, err := runner.New(&config.Config{
		Conversion:           config.ConversionPolicyIgnore,
		UnhandledEnforcement: config.EnforcementPolicyError,
		Validations: []config.ValidationConfig{
			{Name: "description", Enforcement: config.EnforcementPolicyNone},
			{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": crdproperty.AdditionPolicyAllow}},
		},
	}, runner.DefaultRegistry())
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 2000 {
		before := randomSchema(random, 3)
		after := before.DeepCopy()
		for range 1 + random.IntN(3) {
			mutateSchema(random, after)
		}
		for _, names := range [][2]string{{"v1", "v1"}, {"v1", "v2"}} {
			a, b := versionNamed(names[0], before), versionNamed(names[1], after)
			got := judge.compare(&a, &b)
			var results []version.VersionedPropertyComparisonResult
			if a.Name == b.Name {
				results = run.Run(definitionOf(a), definitionOf(b)).SameVersionValidation
			} else {
				results = run.Run(definitionOf(), definitionOf(a, b)).ServedVersionValidation
			}
			want := crdifySays(a, b, results)
			if !reflect.DeepEqual(sortedTexts(got), want) {
				t.Fatalf("%s after %s: it says %q, crdify says %q: %s after %s", b.Name, a.Name, got, want, jsonOf(t, after), jsonOf(t, before))
			}
			refused += len(want)
		}
	}
	if refused < 2000 {
		t.Errorf("crdify has only %d things against random changes", refused)
	}
}

// crdifySays is what the runner's results come to, by field.
func crdifySays(a, b apiextensionsv1.CustomResourceDefinitionVersion, results []version.VersionedPropertyComparisonResult) map[string][]string {
	was, is := validations.FlattenCRDVersion(a), validations.FlattenCRDVersion(b)
	said, gone := map[string][]string{}, map[string]bool{}
	for field := range was {
		if a.Name == b.Name && is[field] == nil { // existingFieldRemoval
			gone[field] = true
		}
	}
	for _, result := range results {
		for _, p := range result.PropertyComparisons {
			for _, c := range p.ComparisonResults {
				for _, message := range plain(c.Errors) {
					switch {
					case is[p.Property] == nil:
						gone[p.Property] = true
					case c.Name == "unhandled":
						said[p.Property] = append(said[p.Property], "changes")
					default:
						said[p.Property] = append(said[p.Property], message)
					}
				}
			}
		}
	}
	for field := range gone {
		if !within(gone, field) {
			said[field] = []string{"removed field"}
		}
	}
	return sortedTexts(said)
}

// sortedTexts sorts what is said of each field, and leaves out which keywords nobody can judge.
func sortedTexts(said map[string][]string) map[string][]string {
	for _, field := range slices.Collect(maps.Keys(said)) {
		for i, text := range said[field] {
			if strings.HasPrefix(text, "changes of ") && text != "changes of " {
				said[field][i] = "changes"
			}
		}
		slices.Sort(said[field])
	}
	return said
}

func definitionOf(versions ...apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinition {
	c := &apiextensionsv1.CustomResourceDefinition{}
	for _, v := range versions {
		c.Spec.Versions = append(c.Spec.Versions, *v.DeepCopy())
	}
	return c
}

func versionNamed(name string, schema *apiextensionsv1.JSONSchemaProps) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema}}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// randomSchema returns a schema with others within, depth levels of them at most.
func randomSchema(random *rand.Rand, depth int) *apiextensionsv1.JSONSchemaProps {
	s := &apiextensionsv1.JSONSchemaProps{Type: []string{"string", "integer", "object", "array"}[random.IntN(4)]}
	for range random.IntN(3) {
		mutateOne(random, s)
	}
	if depth == 0 {
		return s
	}
	inner := func() *apiextensionsv1.JSONSchemaProps { return randomSchema(random, depth-1) }
	switch s.Type {
	case "object":
		if random.IntN(4) == 0 {
			s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: inner()}
			break
		}
		s.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		for i := range 1 + random.IntN(3) {
			s.Properties[fmt.Sprintf("f%d", i)] = *inner()
		}
	case "array":
		s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: inner()}
	default:
		if random.IntN(4) == 0 {
			s.AnyOf = []apiextensionsv1.JSONSchemaProps{*inner(), *inner()}
		}
	}
	return s
}

// mutateSchema changes something of a schema, or of one within.
func mutateSchema(random *rand.Rand, s *apiextensionsv1.JSONSchemaProps) {
	names := slices.Sorted(maps.Keys(s.Properties))
	switch {
	case len(names) > 0 && random.IntN(3) > 0:
		name := names[random.IntN(len(names))]
		if random.IntN(5) == 0 {
			delete(s.Properties, name)
			return
		}
		inner := s.Properties[name]
		mutateSchema(random, &inner)
		s.Properties[name] = inner
	case s.Properties != nil && random.IntN(4) == 0:
		s.Properties["added"] = *randomSchema(random, 1)
	case s.Items != nil && random.IntN(3) > 0:
		mutateSchema(random, s.Items.Schema)
	case s.AdditionalProperties != nil && random.IntN(3) > 0:
		mutateSchema(random, s.AdditionalProperties.Schema)
	case len(s.AnyOf) > 0 && random.IntN(2) > 0:
		mutateSchema(random, &s.AnyOf[0])
	default:
		mutateOne(random, s)
	}
}

// mutateOne changes a keyword of a schema.
func mutateOne(random *rand.Rand, s *apiextensionsv1.JSONSchemaProps) {
	number, whole := float64(random.IntN(5)), int64(random.IntN(5))
	value := apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%d", random.IntN(3))}
	[]func(){
		func() { s.Type = []string{"string", "integer", "object", "array"}[random.IntN(4)] },
		func() { s.Description = fmt.Sprint(random.IntN(3)) },
		func() { s.Default = &value },
		func() { s.Default = nil },
		func() { s.Enum = append(slices.Clone(s.Enum), value) },
		func() { s.Enum = nil },
		func() { s.Maximum = &number },
		func() { s.Minimum = &number },
		func() { s.MaxItems = &whole },
		func() { s.MinLength = &whole },
		func() { s.MinProperties = nil },
		func() { s.Pattern = fmt.Sprint(random.IntN(2)) },
		func() { s.Nullable = !s.Nullable },
		func() { s.Required = []string{"f0", "f1"}[:random.IntN(3)] },
		func() { s.Format = []string{"", "date", "int64"}[random.IntN(3)] },
		func() {
			s.XValidations = apiextensionsv1.ValidationRules{{Rule: fmt.Sprintf("self > %d", random.IntN(2))}}
		},
	}[random.IntN(16)]()
}
