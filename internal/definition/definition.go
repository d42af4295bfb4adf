// Package definition reads CustomResourceDefinitions: their versions, and what their schemas make of an object.
package definition

import (
	"regexp"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/olmkit/olmkit/internal/compare"
)

// ServedVersions returns the versions of d that are served, in d's order.
func ServedVersions(d *apiextensionsv1.CustomResourceDefinition) []string {
	var versions []string
	for _, v := range d.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}
	return versions
}

// StorageVersion returns the version in which d's objects are stored.
func StorageVersion(d *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// ConvertsByWebhook reports whether a webhook converts the objects of d.
func ConvertsByWebhook(d *apiextensionsv1.CustomResourceDefinition) bool {
	return d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// Structural returns the schema of version as the API server prunes by it, or nil if it prunes nothing: there is no such version,
// or its schema is not structural.
func Structural(d *apiextensionsv1.CustomResourceDefinition, version string) *structural.Structural {
	schema := Schema(d, version)
	if schema == nil {
		return nil
	}
	converted := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, converted, nil); err != nil {
		return nil
	}
	s, err := structural.NewStructural(converted)
	if err != nil {
		return nil
	}
	return s
}

// Prune returns a copy of object's content without the fields that schema, which may be nil, does not have, and lists these fields,
// sorted: the API server drops them when the object is written. Those that are null say nothing and are not listed: Go writes
// creationTimestamp: null wherever a type has an ObjectMeta.
func Prune(schema *structural.Structural, object map[string]any) (pruned map[string]any, unknown []string) {
	pruned = runtime.DeepCopyJSON(compare.Content(object))
	if schema == nil {
		return pruned, nil
	}
	tracking := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	if unknown = pruning.PruneWithOptions(pruned, schema, true, tracking); len(unknown) > 0 {
		unknown = pruning.PruneWithOptions(withoutNulls(compare.Content(object)), schema, true, tracking)
	}
	return pruned, unknown
}

// withoutNulls is a copy of value whose maps leave out what is null, or has nothing else.
func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		said := make(map[string]any, len(v))
		for key, member := range v {
			is := withoutNulls(member)
			was, isMap := member.(map[string]any)
			if is != nil && (!isMap || len(was) == 0 || len(is.(map[string]any)) > 0) {
				said[key] = is
			}
		}
		return said
	case []any:
		said := make([]any, len(v))
		for i, item := range v {
			said[i] = withoutNulls(item)
		}
		return said
	}
	return value
}

// Schema returns the schema of version, or nil.
func Schema(d *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.JSONSchemaProps {
	for _, v := range d.Spec.Versions {
		if v.Name == version && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// deprecated matches the description of a field that is deprecated, and of one whose fields all are.
var (
	deprecated = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^\W*deprecated\b|\b(is|are) (deprecated|obsolete)\b|\bno longer (used|supported|read)\b`)
	})
	allDeprecated = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^\W*deprecated\b`) })
)

// Deprecated reports whether schema says that the field at path, with dots, or one above it is deprecated.
func Deprecated(schema *apiextensionsv1.JSONSchemaProps, path string) bool {
	if schema == nil {
		return false
	}
	field := *schema
	keys := strings.Split(path, ".")
	for depth, key := range keys {
		field = field.Properties[key]
		if depth > 0 && allDeprecated().MatchString(field.Description) {
			return true
		}
	}
	return len(keys) > 1 && deprecated().MatchString(field.Description)
}

// Undefaulted returns a copy of object's content without the fields that say what they say by default in version of d.
func Undefaulted(d *apiextensionsv1.CustomResourceDefinition, version string, object map[string]any) map[string]any {
	bare := runtime.DeepCopyJSON(compare.Content(object))
	dropDefaults(Schema(d, version), bare)
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
	return utiljson.Unmarshal(raw, &other) == nil && len(compare.Lost(value, other)) == 0 && len(compare.Lost(other, value)) == 0
}
