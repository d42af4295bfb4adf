package check

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	strictjson "sigs.k8s.io/json"

	"github.com/olmkit/olmkit/internal/finding"
)

// schemaChecks look at the CustomResourceDefinitions of one bundle.
var schemaChecks = []Check{
	{
		Code: "SCH001", Severity: finding.Error,
		Title:      "the API server rejects a CRD",
		Cause:      "the message comes from the API server's own validation (k8s.io/apiextensions-apiserver v0.36.3), including the schema's structure and the cost of its CEL rules; the InstallPlan fails with it",
		Fix:        "correct the field that the message names",
		References: []string{"https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema"},
		judge:      checkCRDs,
	},
	{
		Code: "SCH002", Severity: finding.Error,
		Title: "two CRDs of a bundle share a name",
		Cause: "in one API group the API server gives a plural, singular, short name, kind or list kind to the first CRD only. The second CRD never becomes Established, and OLM waits for it forever",
		Fix:   "give each CRD its own names",
		judge: checkNameCollisions,
	},
	{
		Code: "SCH003", Severity: finding.Error,
		Title: "a CRD serves no version",
		Cause: "nobody can read or write its objects, not even the operator",
		Fix:   "serve at least one version",
		judge: func(s *single, found func(hit)) {
			for _, c := range s.crds {
				if len(c.spec.Spec.Versions) > 0 && !slices.ContainsFunc(c.spec.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served }) {
					found(inManifest(c.Manifest, []any{"spec", "versions"}, "CRD %s serves none of its versions", c.Name))
				}
			}
		},
	},
	{
		Code: "SCH004", Severity: finding.Warning,
		Title: "a CRD is nearly too large for etcd",
		Cause: "an object of more than 1.5 MiB is rejected; if the catalog carries manifests, the InstallPlan contains the CRD as well",
		Fix:   "shorten the descriptions in the schema, for example with controller-gen's crd:maxDescLen=0",
		judge: func(s *single, found func(hit)) {
			for _, c := range s.crds {
				if size := len(c.JSON); size > largeCRD {
					found(inManifest(c.Manifest, nil, "CRD %s has a size of %s", c.Name, mebibytes(size)))
				}
			}
		},
	},
	{
		Code: "SCH005", Severity: finding.Warning,
		Title: "a CRD has an unknown field",
		Cause: "the API server silently drops the field, so it has no effect",
		Fix:   "correct the spelling or the place of the field, or remove it",
		judge: checkCRDFields,
	},
	{
		Code: "SCH006", Severity: finding.Warning,
		Title:      "served versions of a CRD differ without conversion between them",
		Cause:      "with strategy None the API server only changes the apiVersion: it silently drops fields that are written in one version and missing in the storage version's schema",
		Fix:        "convert with a webhook, or add all fields of the other versions to the storage version",
		References: []string{versioningReference},
		judge:      ofCSV(checkUnconverted),
	},
}

// largeCRD leaves room below etcd's limit of a request, 1.5 MiB.
const largeCRD = 1 << 20

// schema returns the schema of a version, or nil.
func (c *ownedCRD) schema(version string) *apiextensionsv1.JSONSchemaProps {
	for _, v := range c.spec.Spec.Versions {
		if v.Name == version && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// schemaHas reports whether the schema knows the field at path, or keeps whatever is there.
func schemaHas(schema *apiextensionsv1.JSONSchemaProps, path []any) bool {
	for i, step := range path {
		if schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields || schema.XEmbeddedResource {
			return true
		}
		if schema.Items != nil && schema.Items.Schema != nil {
			if _, ok := step.(int); ok {
				schema = schema.Items.Schema
				continue
			}
			return schemaHas(schema.Items.Schema, path[i:])
		}
		name, ok := step.(string)
		next, known := schema.Properties[name]
		switch {
		case ok && known:
			schema = &next
		case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
			schema = schema.AdditionalProperties.Schema
		default:
			return schema.AdditionalProperties != nil || len(schema.Properties) == 0 && schema.Type == ""
		}
	}
	return true
}

// checkCRDs leaves the conversion alone, which OLM writes anew, and CRDs of v1beta1, to which other rules applied: CSV026.
func checkCRDs(s *single, found func(hit)) {
	for _, c := range s.crds {
		if c.read.v1beta1 {
			continue
		}
		if problems, err := refusalsOf(c.read.outline()); len(problems) == 0 && err == nil {
			continue
		}
		problems, err := refusalsOf(&c.spec)
		if err != nil {
			found(inManifest(c.Manifest, nil, "CRD %s: %v", c.Name, err))
		}
		seen := map[string]bool{}
		for _, e := range problems {
			if seen[e.Error()] {
				continue
			}
			seen[e.Error()] = true
			found(inManifest(c.Manifest, pathOf(e.Field), "CRD %s: %s", c.Name, e.Error()))
		}
	}
}

// refusalsOf asks the API server's own validation of a new CRD.
func refusalsOf(c *apiextensionsv1.CustomResourceDefinition) (field.ErrorList, error) {
	converted, err := internal(c)
	if err != nil {
		return nil, err
	}
	converted.Spec.Conversion = &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter}
	converted.Status = apiextensions.CustomResourceDefinitionStatus{}
	for _, v := range converted.Spec.Versions {
		if v.Storage {
			converted.Status.StoredVersions = []string{v.Name}
		}
	}
	return slices.DeleteFunc(crdvalidation.ValidateCustomResourceDefinition(context.Background(), converted), func(e *field.Error) bool {
		return e.Type == field.ErrorTypeInternal || strings.HasPrefix(e.Field, "status")
	}), nil
}

func checkNameCollisions(s *single, found func(hit)) {
	taken := map[string]string{}
	for _, c := range s.crds {
		names := c.spec.Spec.Names
		own := map[string]bool{}
		for _, n := range []struct{ what, name string }{{"name", names.Plural}, {"name", names.Singular}, {"kind", names.Kind}, {"kind", names.ListKind}} {
			if n.name != "" {
				own[n.what+" "+n.name] = true
			}
		}
		for _, short := range names.ShortNames {
			own["name "+short] = true
		}
		for _, name := range slices.Sorted(maps.Keys(own)) {
			key := c.spec.Spec.Group + " " + name
			if other, ok := taken[key]; ok && other != c.Name {
				found(inManifest(c.Manifest, []any{"spec", "names"}, "the CRDs %s and %s both have the %s", other, c.Name, name))
				continue
			}
			taken[key] = c.Name
		}
	}
}

func checkCRDFields(s *single, found func(hit)) {
	for _, c := range s.crds {
		var into any = &apiextensionsv1.CustomResourceDefinition{}
		if c.read.v1beta1 {
			into = &apiextensionsv1beta1.CustomResourceDefinition{}
		}
		problems, err := strictjson.UnmarshalStrict(c.JSON, into)
		if err != nil {
			continue
		}
		for _, problem := range problems {
			field, ok := strings.CutPrefix(problem.Error(), "unknown field ")
			if field = strings.Trim(field, `"`); ok && field != "status" && !strings.HasPrefix(field, "status.") {
				found(inManifest(c.Manifest, pathOf(field), "CRD %s has the unknown field %s", c.Name, field))
			}
		}
	}
}

func checkUnconverted(s *single, found func(hit)) {
	for _, c := range s.crds {
		if c.convertedByWebhook() || s.conversionFor(c.Name) >= 0 || c.spec.Spec.PreserveUnknownFields {
			continue
		}
		at := slices.IndexFunc(c.spec.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
		if at < 0 || c.spec.Spec.Versions[at].Schema == nil {
			continue
		}
		c.tellUnconverted(c.spec.Spec.Versions[at], found)
	}
}

// tellUnconverted finds what is lost on the way from a version to the stored one, once for versions that lose the same.
func (c ownedCRD) tellUnconverted(stored apiextensionsv1.CustomResourceDefinitionVersion, found func(hit)) {
	var order []string
	versions := map[string][]int{} // by what they lose
	for i, v := range c.spec.Spec.Versions {
		if v.Storage || !v.Served || v.Schema == nil {
			continue
		}
		if lost := slices.DeleteFunc(compare(v.Schema.OpenAPIV3Schema, stored.Schema.OpenAPIV3Schema).removed, inStatus); len(lost) > 0 {
			text := abridge(lost)
			if versions[text] == nil {
				order = append(order, text)
			}
			versions[text] = append(versions[text], i)
		}
	}
	for _, lost := range order {
		var names []string
		for _, i := range versions[lost] {
			names = append(names, c.spec.Spec.Versions[i].Name)
		}
		text := "version " + names[0] + " of CRD " + c.Name + " has"
		if len(names) > 1 {
			text = "versions " + abridge(names) + " of CRD " + c.Name + " have"
		}
		found(inManifest(c.Manifest, []any{"spec", "versions", versions[lost][0]}, "%s fields that the storage version %s does not have: %s", text, stored.Name, lost))
	}
}
