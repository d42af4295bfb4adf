package upgrade

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// content is what the users of an object say in it: all but apiVersion, kind, metadata and status.
func content(object map[string]any) map[string]any {
	c := maps.Clone(object)
	for _, k := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(c, k)
	}
	return c
}

// lost lists, sorted, the places where got does not say what want says. Fields that only got has are no matter, nor is an
// empty value (0, "", false, null, no items) that want states and got leaves out, since typed converters do so.
func lost(want, got any) diffs {
	found := differences(want, got)
	slices.SortFunc(found, func(a, b difference) int { return strings.Compare(a.String(), b.String()) })
	return found
}

// diffs are fields that are not what they were.
type diffs []difference

func (d diffs) String() string {
	var told []string
	for _, field := range d {
		told = append(told, field.String())
	}
	return strings.Join(told, "; ")
}

// fields are the paths of the fields.
func (d diffs) fields() []string {
	var paths []string
	for _, field := range d {
		paths = append(paths, orRoot(field.Path))
	}
	return paths
}

// has reports whether field is one of d.
func (d diffs) has(field difference) bool {
	return slices.ContainsFunc(d, func(o difference) bool { return o.String() == field.String() })
}

// difference is a field that is not what it was.
type difference struct {
	Path    string
	Was, Is any
	Gone    bool
}

func (d difference) String() string {
	if d.Gone {
		return fmt.Sprintf("%s was %s and is gone", d.Path, show(d.Was))
	}
	return fmt.Sprintf("%s was %s and is %s", orRoot(d.Path), show(d.Was), show(d.Is))
}

// differences lists the fields of want that are not the same in got.
func differences(want, got any) diffs {
	var found diffs
	compare("", want, got, &found)
	return found
}

func compare(at string, want, got any, found *diffs) {
	if want == nil {
		return
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok && got != nil {
			*found = append(*found, difference{Path: at, Was: want, Is: got})
			return
		}
		for _, k := range slices.Sorted(maps.Keys(w)) {
			value, present := g[k]
			if !present {
				if !empty(w[k]) {
					*found = append(*found, difference{Path: join(at, k), Was: w[k], Gone: true})
				}
				continue
			}
			compare(join(at, k), w[k], value, found)
		}
	case []any:
		g, ok := got.([]any)
		if !ok && got != nil || len(g) != len(w) {
			*found = append(*found, difference{Path: at, Was: want, Is: got})
			return
		}
		for i := range w {
			compare(at+"["+strconv.Itoa(i)+"]", w[i], g[i], found)
		}
	default:
		if !sameScalar(want, got) && (!empty(want) || !empty(got)) {
			*found = append(*found, difference{Path: at, Was: want, Is: got})
		}
	}
}

func sameScalar(a, b any) bool {
	// 1 and 1.0 are one number in JSON; decoding tells them apart as int64 and float64.
	switch x := a.(type) {
	case int64:
		if y, ok := b.(float64); ok {
			return float64(x) == y
		}
	case float64:
		if y, ok := b.(int64); ok {
			return x == float64(y)
		}
	}
	return a == b
}

func empty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range x {
			if !empty(e) {
				return false
			}
		}
		return true
	case []any:
		return len(x) == 0
	case string:
		return x == ""
	case bool:
		return !x
	}
	return v == int64(0) || v == float64(0)
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(b) > 80 {
		return string(b[:77]) + "..."
	}
	return string(b)
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

func orRoot(at string) string {
	if at == "" {
		return "the object"
	}
	return at
}

// unknown lists, sorted, the fields of object that its version's schema in d does not have: what the API server drops when
// the object is written in that version.
func unknown(d *apiextensionsv1.CustomResourceDefinition, version string, object map[string]any) []string {
	var fields []string
	visitUnknown(schemaOf(d, version), content(object), func(at string, _ map[string]any, _ string) { fields = append(fields, at) })
	return fields
}

// prune returns a copy of object's content without the unknown fields.
func prune(d *apiextensionsv1.CustomResourceDefinition, version string, object map[string]any) map[string]any {
	pruned := runtime.DeepCopyJSON(content(object))
	visitUnknown(schemaOf(d, version), pruned, func(_ string, parent map[string]any, key string) { delete(parent, key) })
	return pruned
}

// schemaOf returns the schema of version, or nil.
func schemaOf(d *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.JSONSchemaProps {
	for _, v := range d.Spec.Versions {
		if v.Name == version && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// visitUnknown calls found for each field of object that schema does not have, in order, with the map that holds it.
func visitUnknown(schema *apiextensionsv1.JSONSchemaProps, object map[string]any, found func(at string, parent map[string]any, key string)) {
	if schema == nil {
		return
	}
	var visit func(at string, schema *apiextensionsv1.JSONSchemaProps, value any)
	visit = func(at string, schema *apiextensionsv1.JSONSchemaProps, value any) {
		switch x := value.(type) {
		case map[string]any:
			keeps := schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields
			for _, k := range slices.Sorted(maps.Keys(x)) {
				property, known := schema.Properties[k]
				switch {
				case known:
					visit(join(at, k), &property, x[k])
				case schema.XEmbeddedResource && (k == "apiVersion" || k == "kind" || k == "metadata"):
				case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
					visit(join(at, k), schema.AdditionalProperties.Schema, x[k])
				case schema.AdditionalProperties == nil && !keeps:
					found(join(at, k), x, k)
				}
			}
		case []any:
			if schema.Items == nil || schema.Items.Schema == nil {
				return
			}
			for i := range x {
				visit(at+"["+strconv.Itoa(i)+"]", schema.Items.Schema, x[i])
			}
		}
	}
	visit("", schema, object)
}

// undefaulted returns a copy of object's content without the fields that say what they say by default in version of d.
func undefaulted(d *apiextensionsv1.CustomResourceDefinition, version string, object map[string]any) map[string]any {
	bare := runtime.DeepCopyJSON(content(object))
	dropDefaults(schemaOf(d, version), bare)
	return bare
}

// dropDefaults takes out of value, in place, what schema has as defaults.
func dropDefaults(schema *apiextensionsv1.JSONSchemaProps, value any) {
	if schema == nil {
		return
	}
	switch x := value.(type) {
	case map[string]any:
		for k := range x {
			property, known := schema.Properties[k]
			switch {
			case known && property.Default != nil && isJSON(x[k], property.Default.Raw):
				delete(x, k)
			case known:
				dropDefaults(&property, x[k])
			case schema.AdditionalProperties != nil:
				dropDefaults(schema.AdditionalProperties.Schema, x[k])
			}
		}
	case []any:
		if schema.Items == nil {
			return
		}
		for _, item := range x {
			dropDefaults(schema.Items.Schema, item)
		}
	}
}

// isJSON reports whether raw is the JSON of value.
func isJSON(value any, raw []byte) bool {
	var other any
	return utiljson.Unmarshal(raw, &other) == nil && len(lost(value, other)) == 0 && len(lost(other, value)) == 0
}
