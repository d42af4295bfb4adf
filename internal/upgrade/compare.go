package upgrade

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
func lost(want, got any) []string {
	var places []string
	compare("", want, got, &places)
	slices.Sort(places)
	return places
}

func compare(at string, want, got any, places *[]string) {
	if want == nil {
		return
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok && got != nil {
			*places = append(*places, fmt.Sprintf("%s was %s and is %s", orRoot(at), show(want), show(got)))
			return
		}
		for _, k := range slices.Sorted(maps.Keys(w)) {
			value, present := g[k]
			if !present {
				if !empty(w[k]) {
					*places = append(*places, fmt.Sprintf("%s was %s and is gone", join(at, k), show(w[k])))
				}
				continue
			}
			compare(join(at, k), w[k], value, places)
		}
	case []any:
		g, ok := got.([]any)
		if !ok && got != nil || len(g) != len(w) {
			*places = append(*places, fmt.Sprintf("%s was %s and is %s", orRoot(at), show(want), show(got)))
			return
		}
		for i := range w {
			compare(at+"["+strconv.Itoa(i)+"]", w[i], g[i], places)
		}
	default:
		if !sameScalar(want, got) && (!empty(want) || !empty(got)) {
			*places = append(*places, fmt.Sprintf("%s was %s and is %s", orRoot(at), show(want), show(got)))
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
