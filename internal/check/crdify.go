package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiversion "k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	crdproperty "sigs.k8s.io/crdify/pkg/validations/property"
	"sigs.k8s.io/crdify/pkg/validators/version"
)

// crdify compares CRDs as OLM v1 does before an upgrade, with the same settings (operator-controller v1.10.0,
// internal/operator-controller/rukpak/preflights/crdupgradesafety, defaultConfig).
var crdify = sync.OnceValues(func() (*runner.Runner, error) {
	return runner.New(&config.Config{
		Conversion:           config.ConversionPolicyIgnore,
		UnhandledEnforcement: config.EnforcementPolicyError,
		Validations: []config.ValidationConfig{
			{Name: "description", Enforcement: config.EnforcementPolicyNone},
			{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": crdproperty.AdditionPolicyAllow}},
		},
	}, runner.DefaultRegistry())
})

// crdifyUnhandled is crdify's name for what none of its validations judges.
const crdifyUnhandled = "unhandled"

// crdifyKeywords are the keywords of a schema that crdify's validations judge, and those of the schemas within.
var crdifyKeywords = []string{
	"default", "description", "enum", "maximum", "maxItems", "maxLength", "maxProperties", "minimum", "minItems", "minLength",
	"minProperties", "nullable", "pattern", "required", "type", "properties", "items",
}

// refusal is what OLM v1 has against one version of a CRD, against a pair of versions, or against the CRD.
type refusal struct {
	of      string // "version v1 of ", "" for the CRD
	path    []any  // of the first change, in the new CRD
	changes []string
}

type safetyKey struct {
	specs     comparison
	converted bool
}

// refusalsOfV1 returns what OLM v1 has against the CRD after in place of before. converted says whether a webhook converts
// it: OLM v1 writes the conversion of the CSV into the CRD before it compares.
func (s *subject) refusalsOfV1(before, after *crd, converted bool) []refusal {
	return s.unsafe.get(safetyKey{comparison{before: before.spec, after: after.spec}, converted}, func() []refusal {
		run, err := crdify()
		if err != nil || !before.complete() || !after.complete() {
			return nil
		}
		list := after.wholeRefusals(run.Run(before.part(false), after.part(false)))
		for _, v := range before.Spec.Versions {
			if after.version(v.Name) != nil {
				old, next := before.part(false, v.Name), after.part(false, v.Name)
				reduce(old, next)
				for _, result := range run.Run(old, next).SameVersionValidation {
					list = append(list, after.refusal("version "+v.Name+" of ", old.Spec.Versions[0], next.Spec.Versions[0], result)...)
				}
			}
		}
		if converted {
			return list
		}
		for _, pair := range after.servedPairs() {
			if before.same(after, pair[0]) && before.same(after, pair[1]) {
				continue // what crdify has against them is not new
			}
			of := fmt.Sprintf("version %s beside %s of ", pair[1], pair[0])
			known := after.besides(run, of, before.part(true, pair[:]...))
			for _, r := range after.besides(run, of, after.part(true, pair[:]...)) {
				r.changes = slices.DeleteFunc(r.changes, func(change string) bool {
					return slices.ContainsFunc(known, func(k refusal) bool { return slices.Contains(k.changes, change) })
				})
				if len(r.changes) > 0 {
					list = append(list, r)
				}
			}
		}
		return list
	})
}

// besides returns what crdify has against the second of two served versions beside the first. What it has against those of
// the previous CRD is subtracted here: crdify compares messages, in some of which the order of words is random.
func (c *crd) besides(run *runner.Runner, of string, pair *apiextensionsv1.CustomResourceDefinition) []refusal {
	reduce(pair)
	var list []refusal
	for _, result := range run.Run(&apiextensionsv1.CustomResourceDefinition{}, pair).ServedVersionValidation {
		list = append(list, c.refusal(of, pair.Spec.Versions[0], pair.Spec.Versions[1], result)...)
	}
	return list
}

// complete reports whether all versions have a schema: crdify reads no others.
func (c *crd) complete() bool {
	for i := range c.Spec.Versions {
		if c.schema(i) == nil {
			return false
		}
	}
	return true
}

// part returns the definition with those versions that are named, in that order, or with all without their schemas. Where a
// pair of served versions is asked for, versions that are not served are left out.
func (c *crd) part(served bool, names ...string) *apiextensionsv1.CustomResourceDefinition {
	out := *c.CustomResourceDefinition
	out.Spec.Conversion = nil
	out.Spec.Versions = nil
	if v := c.stored(); v != nil {
		out.Status.StoredVersions = []string{v.Name}
	}
	if len(names) == 0 {
		for _, v := range c.Spec.Versions {
			v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{}}
			out.Spec.Versions = append(out.Spec.Versions, v)
		}
		return &out
	}
	out.Status.StoredVersions = nil
	for _, name := range names {
		if v := c.version(name); v != nil && (v.Served || !served) {
			out.Spec.Versions = append(out.Spec.Versions, *v)
		}
	}
	return &out
}

// servedPairs returns the pairs of served versions, the lower one first, as crdify compares them.
func (c *crd) servedPairs() [][2]string {
	var names []string
	for _, v := range c.Spec.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}
	slices.SortFunc(names, apiversion.CompareKubeAwareVersionStrings)
	var pairs [][2]string
	for i, lower := range names {
		for _, higher := range names[i+1:] {
			pairs = append(pairs, [2]string{lower, higher})
		}
	}
	return pairs
}

// same reports whether both definitions serve the version with the same schema.
func (c *crd) same(other *crd, name string) bool {
	a, b := c.served(name), other.served(name)
	return a >= 0 && b >= 0 && reflect.DeepEqual(c.schema(a), other.schema(b))
}

// reduce leaves out what is the same in all versions of the definitions, and what is within a field that not all have: crdify
// copies every schema once for each level above it, which takes seconds for large CRDs, and has nothing against what is the same.
func reduce(definitions ...*apiextensionsv1.CustomResourceDefinition) {
	var schemas []*apiextensionsv1.JSONSchemaProps
	for _, c := range definitions {
		for _, v := range c.Spec.Versions {
			schemas = append(schemas, v.Schema.OpenAPIV3Schema)
		}
	}
	if len(schemas) == 0 {
		return
	}
	schemas = differing(schemas)
	for _, c := range definitions {
		for i := range c.Spec.Versions {
			c.Spec.Versions[i].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schemas[0]}
			schemas = schemas[1:]
		}
	}
}

// differing returns copies of schemas without those properties and items that are the same in all.
func differing(schemas []*apiextensionsv1.JSONSchemaProps) []*apiextensionsv1.JSONSchemaProps {
	out := make([]*apiextensionsv1.JSONSchemaProps, len(schemas))
	for i, s := range schemas {
		reduced := *s
		reduced.Properties = maps.Clone(s.Properties)
		out[i] = &reduced
	}
	for name := range schemas[0].Properties {
		inner := make([]*apiextensionsv1.JSONSchemaProps, 0, len(schemas))
		for _, s := range schemas {
			if p, there := s.Properties[name]; there {
				inner = append(inner, &p)
			}
		}
		switch {
		case len(inner) < len(schemas):
			for _, s := range out {
				if p, there := s.Properties[name]; there {
					s.Properties[name] = hollow(p)
				}
			}
		case equal(inner):
			for _, s := range out {
				delete(s.Properties, name)
			}
		default:
			for i, p := range differing(inner) {
				out[i].Properties[name] = *p
			}
		}
	}
	reduceEach(schemas, func(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
		if s.Items == nil {
			return nil
		}
		return s.Items.Schema
	}, func(i int, inner *apiextensionsv1.JSONSchemaProps) {
		out[i].Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: inner}
	})
	reduceEach(schemas, func(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
		if s.AdditionalProperties == nil {
			return nil
		}
		return s.AdditionalProperties.Schema
	}, func(i int, inner *apiextensionsv1.JSONSchemaProps) {
		out[i].AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: inner}
	})
	return out
}

// hollow leaves out the fields of one that others lack: crdify has something against its type alone.
func hollow(p apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	if p.Type != "" {
		p.Properties, p.Items, p.AdditionalProperties = nil, nil, nil
	}
	return p
}

// reduceEach sets what differs in the inner schemas of all schemas, where all have one.
func reduceEach(schemas []*apiextensionsv1.JSONSchemaProps, inner func(*apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps, set func(int, *apiextensionsv1.JSONSchemaProps)) {
	list := make([]*apiextensionsv1.JSONSchemaProps, 0, len(schemas))
	for _, s := range schemas {
		if within := inner(s); within != nil {
			list = append(list, within)
		}
	}
	if len(list) == len(schemas) {
		for i, reduced := range differing(list) {
			set(i, reduced)
		}
	}
}

func equal(schemas []*apiextensionsv1.JSONSchemaProps) bool {
	return !slices.ContainsFunc(schemas[1:], func(s *apiextensionsv1.JSONSchemaProps) bool { return !reflect.DeepEqual(s, schemas[0]) })
}

// wholeRefusals returns what crdify has against a CRD whatever its schemas.
func (c *crd) wholeRefusals(results *runner.Results) []refusal {
	var said []string
	for _, result := range results.CRDValidation {
		said = append(said, plain(result.Errors)...)
	}
	if len(said) == 0 {
		return nil
	}
	slices.Sort(said)
	return []refusal{{path: []any{"spec"}, changes: said}}
}

// refusal returns what crdify has against version b after a, if anything.
func (c *crd) refusal(of string, a, b apiextensionsv1.CustomResourceDefinitionVersion, result version.VersionedPropertyComparisonResult) []refusal {
	was, is := flattened(a), flattened(b)
	said := map[string][]string{} // by crdify's path of the field
	gone := map[string]bool{}
	for _, p := range result.PropertyComparisons {
		for _, comparison := range p.ComparisonResults {
			texts := plain(comparison.Errors)
			switch {
			case len(texts) == 0:
				continue
			case is[p.Property] == nil:
				gone[p.Property] = true
				continue
			case comparison.Name == crdifyUnhandled:
				texts = []string{"changes of " + strings.Join(unhandled(was[p.Property], is[p.Property]), ", ")}
			}
			said[p.Property] = append(said[p.Property], texts...)
		}
	}
	for field := range was {
		if a.Name == b.Name && is[field] == nil { // crdify's existingFieldRemoval
			gone[field] = true
		}
	}
	for field := range gone {
		if !within(gone, field) {
			said[field] = []string{"removed field"}
		}
	}
	r := refusal{of: of}
	for _, field := range slices.Sorted(maps.Keys(said)) {
		slices.Sort(said[field])
		path, name := located(field, b.Schema.OpenAPIV3Schema)
		for _, text := range said[field] {
			if r.changes == nil {
				r.path = append(append(c.versionPath(b.Name), "schema", "openAPIV3Schema"), path...)
			}
			r.changes = append(r.changes, name+": "+text)
		}
	}
	if r.changes == nil {
		return nil
	}
	return []refusal{r}
}

// flattened returns the schemas of a version's fields, by crdify's paths. What is within is not copied, as crdify's own function
// does: that takes seconds for large CRDs.
func flattened(v apiextensionsv1.CustomResourceDefinitionVersion) map[string]*apiextensionsv1.JSONSchemaProps {
	all := map[string]*apiextensionsv1.JSONSchemaProps{}
	root := field.NewPath("^")
	validations.SchemaHas(v.Schema.OpenAPIV3Schema, root, root, nil, func(s *apiextensionsv1.JSONSchemaProps, _, at *field.Path, _ []*apiextensionsv1.JSONSchemaProps) bool {
		schema := *s // s itself is used again
		all[at.String()] = &schema
		return false
	})
	return all
}

// within reports whether one of paths is above path.
func within(paths map[string]bool, path string) bool {
	for i := range path {
		if path[i] == '.' && paths[path[:i]] {
			return true
		}
	}
	return false
}

// plain returns crdify's messages as the other findings write them, with the words of a list in order.
func plain(messages []string) []string {
	var list []string
	for _, m := range messages {
		m = strings.ReplaceAll(m, " : ", ": ")
		if head, rest, found := strings.Cut(m, "["); found {
			if inner, closed := strings.CutSuffix(rest, "]"); closed {
				words := strings.Fields(inner)
				slices.Sort(words)
				m = head + strings.Join(words, ", ")
			}
		}
		list = append(list, m)
	}
	return list
}

// unhandled returns the keywords that differ and that crdify has no validation for.
func unhandled(a, b *apiextensionsv1.JSONSchemaProps) []string {
	keywords := func(s *apiextensionsv1.JSONSchemaProps) map[string]json.RawMessage {
		raw, _ := json.Marshal(s)
		all := map[string]json.RawMessage{}
		_ = json.Unmarshal(raw, &all) // what was just written
		return all
	}
	was, is := keywords(a), keywords(b)
	differ := map[string]bool{}
	for name := range was {
		differ[name] = !bytes.Equal(was[name], is[name])
	}
	for name := range is {
		differ[name] = !bytes.Equal(was[name], is[name])
	}
	maps.DeleteFunc(differ, func(name string, is bool) bool { return !is || slices.Contains(crdifyKeywords, name) })
	return slices.Sorted(maps.Keys(differ))
}

// located returns the path of a field that crdify calls ^.spec.pots.items.size within the schema, as far as it is there, and
// the field's name as the other findings write it: spec.pots[].size.
func located(field string, schema *apiextensionsv1.JSONSchemaProps) (path []any, name string) {
	steps := strings.Split(field, ".")[1:]
	for i, step := range steps {
		property, known := apiextensionsv1.JSONSchemaProps{}, false
		if schema != nil {
			property, known = schema.Properties[step]
		}
		switch {
		case known:
			path, name, schema = append(path, "properties", step), name+"."+step, &property
		case schema != nil && step == "items" && schema.Items != nil:
			path, name, schema = append(path, step), name+"[]", schema.Items.Schema
		case schema != nil && step == "additionalProperties" && schema.AdditionalProperties != nil:
			path, name, schema = append(path, step), name+".*", schema.AdditionalProperties.Schema
		default:
			return path, strings.TrimPrefix(name+"."+strings.Join(steps[i:], "."), ".")
		}
	}
	if name == "" {
		return path, wholeObject
	}
	return path, strings.TrimPrefix(name, ".")
}
