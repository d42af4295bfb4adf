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
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiversion "k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	crdproperty "sigs.k8s.io/crdify/pkg/validations/property"
)

// safety are crdify's validations, configured as OLM v1 does before an upgrade (operator-controller v1.10.0,
// internal/operator-controller/rukpak/preflights/crdupgradesafety, defaultConfig).
type safety struct {
	whole  []validations.Comparator[apiextensionsv1.CustomResourceDefinition]
	schema []validations.Comparator[apiextensionsv1.JSONSchemaProps]
}

// crdify is made once. Its validations are called one by one: its runner copies every schema once for each level above it, which
// takes seconds for large CRDs, and writes out the differences that it cannot judge, which nobody reads here.
var crdify = sync.OnceValues(func() (safety, error) {
	registry := runner.DefaultRegistry()
	all, err := validations.LoadValidationsFromRegistry(registry)
	if err != nil {
		return safety{}, err
	}
	all, err = validations.ConfigureValidations(all, registry, config.Config{Validations: []config.ValidationConfig{
		{Name: "description", Enforcement: config.EnforcementPolicyNone},
		{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": crdproperty.AdditionPolicyAllow}},
	}})
	list := slices.Collect(maps.Values(all))
	return safety{
		validations.ComparatorsForValidations[apiextensionsv1.CustomResourceDefinition](list...),
		validations.ComparatorsForValidations[apiextensionsv1.JSONSchemaProps](list...),
	}, err
})

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
		judge, err := crdify()
		if err != nil || !before.complete() || !after.complete() {
			return nil
		}
		list := after.wholeRefusals(judge, before)
		for _, v := range before.Spec.Versions {
			if after.version(v.Name) != nil {
				list = append(list, after.refusal(judge, "version "+v.Name+" of ", before.version(v.Name), after.version(v.Name))...)
			}
		}
		if converted {
			return list
		}
		for _, pair := range after.servedPairs() {
			if before.same(after, pair[0]) && before.same(after, pair[1]) {
				continue // what crdify has against them is not new
			}
			list = append(list, after.besides(judge, before, pair)...)
		}
		return list
	})
}

// besides returns what crdify has against the second of two served versions beside the first, and had not in the CRD before: crdify
// compares messages, in some of which the order of words is random.
func (c *crd) besides(judge safety, before *crd, pair [2]string) []refusal {
	of := fmt.Sprintf("version %s beside %s of ", pair[1], pair[0])
	var known []refusal
	if before.served(pair[0]) >= 0 && before.served(pair[1]) >= 0 {
		known = before.refusal(judge, of, before.version(pair[0]), before.version(pair[1]))
	}
	list := c.refusal(judge, of, c.version(pair[0]), c.version(pair[1]))
	for i := range list {
		list[i].changes = slices.DeleteFunc(list[i].changes, func(change string) bool {
			return slices.ContainsFunc(known, func(k refusal) bool { return slices.Contains(k.changes, change) })
		})
	}
	return slices.DeleteFunc(list, func(r refusal) bool { return len(r.changes) == 0 })
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

// hollow returns the definition with empty schemas.
func (c *crd) hollow() *apiextensionsv1.CustomResourceDefinition {
	out := *c.CustomResourceDefinition
	out.Spec.Conversion = nil
	out.Spec.Versions = slices.Clone(out.Spec.Versions)
	for i := range out.Spec.Versions {
		out.Spec.Versions[i].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{}}
	}
	if v := c.stored(); v != nil {
		out.Status.StoredVersions = []string{v.Name}
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

// differing returns copies of two schemas without those properties and items that are the same in both, and what is within a field that
// only one has: crdify has nothing against what is the same, and large schemas have thousands of fields.
func differing(a, b *apiextensionsv1.JSONSchemaProps) (apiextensionsv1.JSONSchemaProps, apiextensionsv1.JSONSchemaProps) {
	was, is := *a, *b
	was.Properties, is.Properties = maps.Clone(a.Properties), maps.Clone(b.Properties)
	for name, old := range a.Properties {
		now, there := b.Properties[name]
		switch {
		case !there:
			was.Properties[name] = bare(old)
		case reflect.DeepEqual(old, now):
			delete(was.Properties, name)
			delete(is.Properties, name)
		default:
			was.Properties[name], is.Properties[name] = differing(&old, &now)
		}
	}
	if a.Items != nil && b.Items != nil && a.Items.Schema != nil && b.Items.Schema != nil {
		old, now := differing(a.Items.Schema, b.Items.Schema)
		was.Items, is.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &old}, &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &now}
	}
	if a.AdditionalProperties != nil && b.AdditionalProperties != nil && a.AdditionalProperties.Schema != nil && b.AdditionalProperties.Schema != nil {
		old, now := differing(a.AdditionalProperties.Schema, b.AdditionalProperties.Schema)
		was.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &old}
		is.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &now}
	}
	return was, is
}

// bare leaves out the fields of one that the other lacks: crdify has something against its type alone.
func bare(p apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	if p.Type != "" {
		p.Properties, p.Items, p.AdditionalProperties = nil, nil, nil
	}
	return p
}

// wholeRefusals returns what crdify has against a CRD whatever its schemas.
func (c *crd) wholeRefusals(judge safety, before *crd) []refusal {
	var said []string
	was, is := before.hollow(), c.hollow()
	for _, comparator := range judge.whole {
		said = append(said, plain(comparator.Compare(was, is).Errors)...)
	}
	if len(said) == 0 {
		return nil
	}
	slices.Sort(said)
	return []refusal{{path: []any{"spec"}, changes: said}}
}

// refusal returns what crdify has against version b after a, if anything.
func (c *crd) refusal(judge safety, of string, a, b *apiextensionsv1.CustomResourceDefinitionVersion) []refusal {
	said := judge.compare(a, b)
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

// compare returns what is against version b after a, by crdify's path of the field (crdify v0.6.0, pkg/validations, CompareVersions,
// and pkg/validations/crd/existingfieldremoval).
func (judge safety) compare(a, b *apiextensionsv1.CustomResourceDefinitionVersion) map[string][]string {
	old, now := differing(a.Schema.OpenAPIV3Schema, b.Schema.OpenAPIV3Schema)
	was, is := flattened(&old), flattened(&now)
	said := map[string][]string{}
	gone := map[string]bool{}
	for field, old := range was {
		now, there := is[field]
		if there && equality.Semantic.DeepEqual(old, now) {
			continue
		}
		texts := judge.compareField(*old, now)
		switch {
		case there && len(texts) > 0:
			said[field] = texts
		case !there && (a.Name == b.Name || len(texts) > 0):
			gone[field] = true
		}
	}
	for field := range gone {
		if !within(gone, field) {
			said[field] = []string{"removed field"}
		}
	}
	return said
}

// compareField returns what is against the schema of a field after old; now is nil if the field is gone.
func (judge safety) compareField(old apiextensionsv1.JSONSchemaProps, now *apiextensionsv1.JSONSchemaProps) []string {
	a, b := old, apiextensionsv1.JSONSchemaProps{}
	if now != nil {
		b = *now
	}
	var texts []string
	for _, comparator := range judge.schema {
		texts = append(texts, plain(comparator.Compare(&a, &b).Errors)...) // it clears what it has judged
	}
	if !equality.Semantic.DeepEqual(a, b) {
		texts = append(texts, "changes of "+strings.Join(unhandled(a, b), ", "))
	}
	return texts
}

// flattened returns a schema and those within, each without the fields within that, by crdify's paths. They are not copied, as crdify's
// own function does.
func flattened(schema *apiextensionsv1.JSONSchemaProps) map[string]*apiextensionsv1.JSONSchemaProps {
	all := map[string]*apiextensionsv1.JSONSchemaProps{}
	root := field.NewPath("^")
	validations.SchemaHas(schema, root, root, nil, func(s *apiextensionsv1.JSONSchemaProps, _, at *field.Path, _ []*apiextensionsv1.JSONSchemaProps) bool {
		schema := *s // s itself is used again
		schema.Properties, schema.Items = nil, nil
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

// unhandled returns the keywords that differ.
func unhandled(a, b apiextensionsv1.JSONSchemaProps) []string {
	keywords := func(s apiextensionsv1.JSONSchemaProps) map[string]json.RawMessage {
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
	maps.DeleteFunc(differ, func(_ string, is bool) bool { return !is })
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
