package check

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/olmkit/olmkit/internal/finding"
)

const versioningReference = "https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/"

// crdChecks compare the CustomResourceDefinitions at the two ends of each upgrade that users take.
var crdChecks = []Check{
	{
		Code: "CRD001", Severity: finding.Error,
		Title:      "an upgrade removes the version in which objects are stored",
		Cause:      "OLM and the API server refuse a CRD without a version that its status.storedVersions names; whoever has the release installed has objects stored in that version, so the InstallPlan fails",
		Fix:        "keep the version, unserved, for at least one release that stores another one and migrates the objects",
		References: []string{versioningReference},
		run:        perEdge(storageRemoved),
	},
	{
		Code: "CRD002", Severity: finding.Warning,
		Title:      "an upgrade removes a version in which an earlier release stored objects",
		Cause:      "status.storedVersions still names the version for users who came along that way, unless a release since then migrated the objects and took the version out of the status; OLM and the API server then refuse the CRD",
		Fix:        "let a release that every such user passes through migrate the objects and take the version out of status.storedVersions, before another removes it",
		References: []string{versioningReference, "https://github.com/DataDog/datadog-operator/issues/1389"},
		run:        storedEarlier,
	},
	{
		Code: "CRD003", Severity: finding.Warning,
		Title:      "an upgrade stops serving a version that was not deprecated",
		Cause:      "clients and manifests that speak the version fail from then on, and nobody was warned",
		Fix:        "serve the version, marked as deprecated, for at least one more release",
		References: []string{versioningReference},
		run:        perEdge(servedGone(false)),
	},
	{
		Code: "CRD004", Severity: finding.Error,
		Title:      "an upgrade changes the stored version without a conversion, and the new one lacks fields of the old",
		Cause:      "with strategy None the API server only renames the version: fields that the new version's schema does not know are dropped from every object, without a word",
		Fix:        "convert by a webhook, or give the new version all fields of the old",
		References: []string{versioningReference},
		run:        perEdge(silentLoss),
	},
	{
		Code: "CRD005", Severity: finding.Error,
		Title:      "the API server refuses an upgrade's CRD",
		Cause:      "these are the words of the API server's own validation of an update (k8s.io/apiextensions-apiserver v0.36.3); the InstallPlan fails on it",
		Fix:        "change the CRD so that it is a valid update of the one before",
		References: []string{versioningReference},
		run:        perEdge(refused),
	},
	{
		Code: "CRD006", Severity: finding.Warning,
		Title:      "an upgrade tightens a schema",
		Cause:      "OLM validates every existing object against the new schema before it replaces the CRD, and the InstallPlan fails on the first that does not pass, unless the CRD is converted by a webhook; then such objects stay, and later changes to the fields concerned are refused",
		Fix:        "only ever loosen the schema of a version; put stricter rules into a new version, or into a webhook that leaves old objects alone",
		References: []string{versioningReference},
		run:        perEdge(tightened),
	},
	{
		Code: "CRD007", Severity: finding.Warning,
		Title:      "an upgrade removes fields from the schema of a version",
		Cause:      "the API server drops fields that the schema does not know when an object is next written, without a word",
		Fix:        "keep the field in the schema, and say in its description that it has no effect",
		References: []string{"https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning"},
		run:        perEdge(fieldsRemoved),
	},
	{
		Code: "CRD008", Severity: finding.Error,
		Title:      "a sample of the release before does not fit an upgrade's schema",
		Cause:      "the objects that the author shows are those that users have: OLM refuses the CRD while such an object exists, or, where a webhook converts, later writes of it fail",
		Fix:        "loosen the schema so that objects of earlier releases fit",
		References: []string{versioningReference},
		run:        perEdge(sampleRefused),
	},
	{
		Code: "CRD009", Severity: finding.Info,
		Title: "an upgrade leaves out a CRD",
		Cause: "OLM leaves the CRD and its objects in the cluster, and nothing looks after them any more",
		Fix:   "tell users what becomes of their objects",
		run:   perEdge(crdGone),
	},
	{
		Code: "CRD010", Severity: finding.Info,
		Title: "an upgrade changes a default",
		Cause: "objects that do not set the field behave differently after the upgrade",
		Fix:   "see whether that is what users of existing objects want",
		run:   perEdge(defaultsChanged),
	},
	{
		Code: "CRD011", Severity: finding.Warning,
		Title: "an upgrade removes the status subresource",
		Cause: "from then on a write of the status subresource fails, and whoever writes the whole object writes the status with it",
		Fix:   "keep it as it is within a version",
		run:   perEdge(statusGone),
	},
	{
		Code: "CRD012", Severity: finding.Info,
		Title:      "an upgrade stops serving a deprecated version",
		Cause:      "clients and manifests that still speak the version fail from then on",
		Fix:        "say so in the release's notes",
		References: []string{versioningReference},
		run:        perEdge(servedGone(true)),
	},
	{
		Code: "CRD013", Severity: finding.Warning,
		Title:      "an upgrade changes the stored version without a conversion, and the new one is stricter",
		Cause:      "with strategy None the API server only renames the version: objects that fit the old version's schema and not the new one's can be read and no longer be written",
		Fix:        "convert by a webhook, or let the new version accept what the old one did",
		References: []string{versioningReference},
		run:        perEdge(strictStorage),
	},
	{
		Code: "CRD014", Severity: finding.Info,
		Title: "an upgrade changes the names by which a CRD's objects are asked for",
		Cause: "scripts and habits that use the short name, the singular, the list kind or the category fail from then on",
		Fix:   "keep the old names beside the new ones",
		run:   perEdge(namesChanged),
	},
	{
		Code: "CRD015", Severity: finding.Warning,
		Title: "an upgrade removes the scale subresource, or changes or removes one of its paths",
		Cause: "autoscalers and 'kubectl scale' that work on the objects fail from then on, or read and write other fields",
		Fix:   "keep it as it is within a version",
		run:   perEdge(scaleChanged),
	},
	{
		Code: "CRD016", Severity: finding.Info,
		Title:      "an upgrade changes how a list or mapping is merged",
		Cause:      "server-side apply merges by x-kubernetes-list-type, list-map-keys and map-type: after a change managers overwrite or duplicate one another's items, and lists with equal keys are refused",
		Fix:        "keep them as they are within a version",
		References: []string{"https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy"},
		run:        perEdge(mergeChanged),
	},
	{
		Code: "CRD017", Severity: finding.Info,
		Title: "an upgrade removes a printed column",
		Cause: "scripts that read the columns of 'kubectl get' find others",
		Fix:   "nothing, unless you document the columns",
		run:   perEdge(columnsGone),
	},
	{
		Code: "CRD018", Severity: finding.Warning,
		Title:      "an upgrade serves a further version that existing objects need not fit, and nothing converts",
		Cause:      "before OLM replaces a CRD it reads all objects through every version that is served, and validates them against the new schemas: with the first that does not fit the InstallPlan fails, that of the next release, or already this one when OLM repeats the step",
		Fix:        "let the new version accept what the others do, or convert by a webhook that the CRD in the bundle names",
		References: []string{"https://github.com/operator-framework/operator-lifecycle-manager/issues/3342"},
		run:        perEdge(versionsApart),
	},
	{
		Code: "CRD019", Severity: finding.Warning,
		Title: "an upgrade adds a CEL rule that existing objects need not satisfy",
		Cause: "OLM validates existing objects by the schema without its CEL rules, so the InstallPlan succeeds; but the API server refuses later writes of an " +
			"object that does not satisfy the rule, the operator's own included, wherever they change the field that the rule is on (before Kubernetes 1.30: " +
			"wherever they write the object)",
		Fix: "let the rule accept what the release before accepted, or put it into a new version, or into a webhook that leaves old objects alone",
		References: []string{
			"https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting",
			"https://github.com/operator-framework/operator-lifecycle-manager/blob/v0.46.0/pkg/controller/operators/catalog/operator.go",
		},
		run: perEdge(rulesAdded),
	},
}

// perPair calls look for each CRD that stands at both ends of u with different specs.
func perPair(u upgrade, look func(before, after *crd)) {
	for _, before := range u.from.crds {
		if after := u.to.crd(before.Name); after != nil && after.spec != before.spec {
			look(before, after)
		}
	}
}

func (c *crd) version(name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range c.Spec.Versions {
		if c.Spec.Versions[i].Name == name {
			return &c.Spec.Versions[i]
		}
	}
	return nil
}

// served returns the index of the version called name, or -1 when it is not served.
func (c *crd) served(name string) int {
	i := slices.IndexFunc(c.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
	if i < 0 || !c.Spec.Versions[i].Served {
		return -1
	}
	return i
}

// schema returns that of a version, or nil.
func (c *crd) schema(version int) *apiextensionsv1.JSONSchemaProps {
	if s := c.Spec.Versions[version].Schema; s != nil {
		return s.OpenAPIV3Schema
	}
	return nil
}

// stored returns the storage version, or nil.
func (c *crd) stored() *apiextensionsv1.CustomResourceDefinitionVersion {
	return stored(c.CustomResourceDefinition)
}

func stored(c *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range c.Spec.Versions {
		if c.Spec.Versions[i].Storage {
			return &c.Spec.Versions[i]
		}
	}
	return nil
}

func (c *crd) object() finding.Subject {
	return finding.Subject{Object: "CustomResourceDefinition/" + c.Name}
}

// converted reports whether a webhook converts the CRD in release r, by the manifest or by the CSV.
func (c *crd) converted(r *release) bool {
	return c.namesWebhook() || slices.ContainsFunc(r.csv.Spec.WebhookDefinitions, func(w v1alpha1.WebhookDescription) bool {
		return w.Type == v1alpha1.ConversionWebhook && slices.Contains(w.ConversionCRDs, c.Name)
	})
}

// namesWebhook reports whether the CRD's manifest itself says that a webhook converts.
func (c *crd) namesWebhook() bool {
	return c.Spec.Conversion != nil && c.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

func storageRemoved(_ *subject, u upgrade, found func(hit)) {
	perPair(u, func(before, after *crd) {
		if s := before.stored(); s != nil && after.version(s.Name) == nil {
			found(hit{Subject: before.object(), message: fmt.Sprintf("%s stores %s in version %s, which %s does not have", u.From, before.Name, s.Name, u.To)})
		}
	})
}

// storedEarlier follows the stored versions along every way that users can have come: OLM and the API server refuse a CRD
// without a version that status.storedVersions names (operator-lifecycle-manager v0.46.0, pkg/lib/crd/storage.go).
func storedEarlier(s *subject, found func(hit)) {
	type key struct{ bundle, crd, version string }
	for _, p := range s.packages {
		list := s.upgrades(p)
		by := map[key]string{} // the release that stored it, for each version that a user of the bundle may have stored
		for _, b := range p.Bundles {
			r := s.release(b)
			if r == nil {
				continue
			}
			for _, c := range r.crds {
				if v := c.stored(); v != nil {
					by[key{b.Name, c.Name, v.Name}] = b.Name
				}
			}
		}
		for changed := true; changed; {
			changed = false
			for _, u := range list {
				for _, c := range u.to.crds {
					for _, v := range c.Spec.Versions {
						from, there := by[key{u.From, c.Name, v.Name}]
						if _, known := by[key{u.To, c.Name, v.Name}]; there && !known {
							by[key{u.To, c.Name, v.Name}] = from
							changed = true
						}
					}
				}
			}
		}
		var alike gathering
		for _, u := range list {
			perPair(u, func(before, after *crd) {
				for _, v := range before.Spec.Versions {
					origin, there := by[key{u.From, before.Name, v.Name}]
					if !there || origin == u.From || after.version(v.Name) != nil {
						continue
					}
					alike.add(u, hit{
						Subject: before.object(),
						message: fmt.Sprintf("%s does not have version %s of %s, in which %s stored objects", u.To, v.Name, before.Name, origin),
					})
				}
			})
		}
		alike.tell(found)
	}
}

func servedGone(deprecated bool) func(*subject, upgrade, func(hit)) {
	return func(_ *subject, u upgrade, found func(hit)) {
		perPair(u, func(before, after *crd) {
			for _, v := range before.Spec.Versions {
				next := after.version(v.Name)
				if v.Served && v.Deprecated == deprecated && (next == nil || !next.Served) {
					found(hit{Subject: before.object(), message: fmt.Sprintf("%s serves version %s of %s, %s does not", u.From, v.Name, before.Name, u.To)})
				}
			}
		})
	}
}

func silentLoss(_ *subject, u upgrade, found func(hit)) {
	perPair(u, func(before, after *crd) {
		old, next := before.stored(), after.stored()
		if old == nil || next == nil || old.Name == next.Name || after.converted(u.to) || old.Schema == nil || next.Schema == nil ||
			after.Spec.PreserveUnknownFields {
			return
		}
		lost := compare(old.Schema.OpenAPIV3Schema, next.Schema.OpenAPIV3Schema).removed
		lost = slices.DeleteFunc(lost, inStatus)
		if len(lost) > 0 {
			found(hit{
				Subject: before.object(),
				message: fmt.Sprintf("%s is stored in %s instead of %s without a conversion, and version %s has no %s", before.Name, next.Name, old.Name, next.Name, abridge(lost)),
			})
		}
	})
}

func strictStorage(_ *subject, u upgrade, found func(hit)) {
	perPair(u, func(before, after *crd) {
		old, next := before.stored(), after.stored()
		if old == nil || next == nil || old.Name == next.Name || after.converted(u.to) || old.Schema == nil || next.Schema == nil {
			return
		}
		c := compare(old.Schema.OpenAPIV3Schema, next.Schema.OpenAPIV3Schema)
		tighter := slices.DeleteFunc(slices.Concat(c.tighter, c.rules), inStatus)
		slices.Sort(tighter)
		if len(tighter) > 0 {
			found(hit{
				Subject: before.object(),
				message: fmt.Sprintf("%s is stored in %s instead of %s without a conversion, and version %s is stricter: %s", before.Name, next.Name, old.Name, next.Name, abridge(tighter)),
			})
		}
	})
}

// versionsApart compares each version that an upgrade begins to serve with those in which users have written objects: OLM
// reads every object through every version that is served before and after (operator-lifecycle-manager v0.46.0,
// pkg/controller/operators/catalog/operator.go, validateV1CRDCompatibility). A change of the stored version is
// strictStorage's matter.
func versionsApart(_ *subject, u upgrade, found func(hit)) {
	perPair(u, func(before, after *crd) {
		if before.converted(u.from) || after.namesWebhook() {
			return
		}
		old, next := before.stored(), after.stored()
		for _, added := range after.Spec.Versions {
			if known := before.version(added.Name); !added.Served || added.Schema == nil || known != nil && known.Served {
				continue
			}
			for _, written := range before.Spec.Versions {
				if !written.Served || written.Schema == nil || old != nil && next != nil && written.Name == old.Name && added.Name == next.Name {
					continue
				}
				tighter := slices.DeleteFunc(compare(written.Schema.OpenAPIV3Schema, added.Schema.OpenAPIV3Schema).tighter, inStatus)
				if len(tighter) > 0 {
					found(hit{
						Subject: before.object(),
						message: fmt.Sprintf("%s begins to serve %s of %s without a conversion, and what is written as %s need not fit it: %s", u.To, added.Name, before.Name, written.Name, abridge(tighter)),
					})
				}
			}
		}
	})
}

// names returns the names with the API server's defaults (apiextensions-apiserver v0.36.3, pkg/apis/apiextensions/v1/defaults.go).
func (c *crd) names() apiextensionsv1.CustomResourceDefinitionNames {
	names := c.Spec.Names
	names.Singular = cmp.Or(names.Singular, strings.ToLower(names.Kind))
	names.ListKind = cmp.Or(names.ListKind, names.Kind+"List")
	return names
}

func namesChanged(_ *subject, u upgrade, found func(hit)) {
	perPair(u, func(before, after *crd) {
		old, next := before.names(), after.names()
		var gone []string
		if old.Singular != next.Singular {
			gone = append(gone, "singular "+old.Singular)
		}
		if old.ListKind != next.ListKind {
			gone = append(gone, "list kind "+old.ListKind)
		}
		for _, name := range old.ShortNames {
			if !slices.Contains(next.ShortNames, name) {
				gone = append(gone, "short name "+name)
			}
		}
		for _, name := range old.Categories {
			if !slices.Contains(next.Categories, name) {
				gone = append(gone, "category "+name)
			}
		}
		if len(gone) > 0 {
			found(hit{Subject: before.object(), message: fmt.Sprintf("%s no longer has for %s: %s", u.To, before.Name, strings.Join(gone, ", "))})
		}
	})
}

// perServed calls look for each version that both ends of u serve.
func perServed(u upgrade, look func(before *crd, old, next *apiextensionsv1.CustomResourceDefinitionVersion)) {
	perPair(u, func(before, after *crd) {
		for i := range before.Spec.Versions {
			old := &before.Spec.Versions[i]
			if next := after.version(old.Name); next != nil && old.Served && next.Served {
				look(before, old, next)
			}
		}
	})
}

func scaleChanged(_ *subject, u upgrade, found func(hit)) {
	perServed(u, func(before *crd, old, next *apiextensionsv1.CustomResourceDefinitionVersion) {
		if old.Subresources == nil || old.Subresources.Scale == nil {
			return
		}
		had := old.Subresources.Scale
		switch {
		case next.Subresources == nil || next.Subresources.Scale == nil:
			found(hit{Subject: before.object(), message: fmt.Sprintf("%s removes the scale subresource of %s %s", u.To, before.Name, old.Name)})
		case pathsChanged(had, next.Subresources.Scale):
			found(hit{Subject: before.object(), message: fmt.Sprintf("%s changes the paths of the scale subresource of %s %s", u.To, before.Name, old.Name)})
		}
	})
}

// pathsChanged leaves alone a selector that is added: nobody relied on there being none.
func pathsChanged(old, next *apiextensionsv1.CustomResourceSubresourceScale) bool {
	return old.SpecReplicasPath != next.SpecReplicasPath || old.StatusReplicasPath != next.StatusReplicasPath ||
		old.LabelSelectorPath != nil && *old.LabelSelectorPath != "" && !reflect.DeepEqual(old.LabelSelectorPath, next.LabelSelectorPath)
}

func columnsGone(_ *subject, u upgrade, found func(hit)) {
	perServed(u, func(before *crd, old, next *apiextensionsv1.CustomResourceDefinitionVersion) {
		var gone []string
		for _, c := range old.AdditionalPrinterColumns {
			if !slices.ContainsFunc(next.AdditionalPrinterColumns, func(o apiextensionsv1.CustomResourceColumnDefinition) bool { return o.Name == c.Name }) {
				gone = append(gone, c.Name)
			}
		}
		if len(gone) > 0 {
			found(hit{Subject: before.object(), message: fmt.Sprintf("%s prints no longer with %s %s: %s", u.To, before.Name, old.Name, abridge(gone))})
		}
	})
}

func mergeChanged(s *subject, u upgrade, found func(hit)) {
	perVersion(s, u, func(before *crd, version string, c changes) {
		if len(c.merges) > 0 {
			found(hit{Subject: before.object(), message: fmt.Sprintf("%s merges otherwise in %s %s: %s", u.To, before.Name, version, abridge(c.merges))})
		}
	})
}

// internal converts a CRD to the form in which the API server validates it, with defaults.
func internal(c *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	defaulted := c.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(defaulted)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&defaulted.Spec)
	out := &apiextensions.CustomResourceDefinition{}
	return out, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(defaulted, out, nil)
}

// refused asks the API server's own validation. OLM writes caBundle and service of conversion itself, so what is wrong with
// those alone is no reason; stored versions are storageRemoved's matter.
func refused(s *subject, u upgrade, found func(hit)) {
	perPair(u, func(before, after *crd) {
		for _, problem := range s.refusals(before, after) {
			found(hit{Subject: before.object(), message: fmt.Sprintf("%s: %s", before.Name, problem)})
		}
	})
}

func (s *subject) refusals(before, after *crd) []string {
	return s.refused.get([2][sha256.Size]byte{before.spec, after.spec}, func() []string {
		// Rules that both have are judged otherwise than new ones.
		if !before.rules() && !after.rules() && len(refusals(before.outline(), after.outline(), after.v1beta1)) == 0 {
			return nil
		}
		return refusals(before.CustomResourceDefinition, after.CustomResourceDefinition, after.v1beta1)
	})
}

// refusals returns what the API server has against the update; of one to v1beta1, which let schemas be as they liked, only
// what no API version lets anybody change.
func refusals(before, after *apiextensionsv1.CustomResourceDefinition, v1beta1 bool) []string {
	old, err := internal(before)
	if err != nil {
		return []string{err.Error()}
	}
	next, err := internal(after)
	if err != nil {
		return []string{err.Error()}
	}
	old.ResourceVersion, next.ResourceVersion = "1", "1"
	old.Status.Conditions = []apiextensions.CustomResourceDefinitionCondition{{Type: apiextensions.Established, Status: apiextensions.ConditionTrue}}
	if v := stored(after); v != nil {
		next.Status.StoredVersions = []string{v.Name}
	}
	next.Spec.Conversion = &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter}
	old.Spec.Conversion = next.Spec.Conversion
	var list []string
	for _, e := range crdvalidation.ValidateCustomResourceDefinitionUpdate(context.Background(), next, old) {
		if e.Type != field.ErrorTypeInternal && !strings.HasPrefix(e.Field, "status") && (!v1beta1 || e.Detail == apivalidation.FieldImmutableErrorMsg) {
			list = append(list, e.Error())
		}
	}
	return list
}

// changes are the differences between two schemas that matter to existing objects, each the path of a field. CEL rules are
// apart from what else makes a schema tighter: OLM does not evaluate them.
type changes struct {
	tighter, rules, removed, defaults, merges []string
	branch                                    bool // the schemas stand in allOf, anyOf, oneOf or not: they restrict fields, and define none
}

// perVersion calls look with the comparison of each version that both ends of u serve.
func perVersion(s *subject, u upgrade, look func(before *crd, version string, c changes)) {
	perPair(u, func(before, after *crd) {
		for _, v := range before.Spec.Versions {
			next := after.version(v.Name)
			if next == nil || !v.Served || !next.Served || v.Schema == nil || next.Schema == nil {
				continue
			}
			key := comparison{before.spec, after.spec, v.Name}
			c := s.compared.get(key, func() changes { return compare(v.Schema.OpenAPIV3Schema, next.Schema.OpenAPIV3Schema) })
			if after.Spec.PreserveUnknownFields {
				c.removed = nil // nothing is dropped
			}
			look(before, v.Name, c)
		}
	})
}

// comparison is what two schemas were compared of.
type comparison struct {
	before, after [sha256.Size]byte
	version       string
}

func tightened(s *subject, u upgrade, found func(hit)) {
	perVersion(s, u, func(before *crd, version string, c changes) {
		if len(c.tighter) > 0 {
			found(hit{Subject: before.object(), message: fmt.Sprintf("%s is stricter than %s with %s %s: %s", u.To, u.From, before.Name, version, abridge(c.tighter))})
		}
	})
}

func rulesAdded(s *subject, u upgrade, found func(hit)) {
	perVersion(s, u, func(before *crd, version string, c changes) {
		if len(c.rules) > 0 {
			found(hit{Subject: before.object(), message: fmt.Sprintf("%s has CEL rules for %s %s that %s does not have: %s", u.To, before.Name, version, u.From, abridge(c.rules))})
		}
	})
}

// inStatus reports whether a path, or the first word of what is said of one, is the status or in it.
func inStatus(path string) bool {
	first, _, _ := strings.Cut(path, " ")
	return first == "status" || strings.HasPrefix(first, "status.")
}

// fieldsRemoved leaves the status alone, which the operator writes anew.
func fieldsRemoved(s *subject, u upgrade, found func(hit)) {
	perVersion(s, u, func(before *crd, version string, c changes) {
		removed := slices.DeleteFunc(slices.Clone(c.removed), inStatus)
		if len(removed) > 0 {
			found(hit{Subject: before.object(), message: fmt.Sprintf("%s has no longer in %s %s: %s", u.To, before.Name, version, abridge(removed))})
		}
	})
}

func defaultsChanged(s *subject, u upgrade, found func(hit)) {
	perVersion(s, u, func(before *crd, version string, c changes) {
		if len(c.defaults) > 0 {
			found(hit{Subject: before.object(), message: fmt.Sprintf("%s changes defaults of %s %s: %s", u.To, before.Name, version, abridge(c.defaults))})
		}
	})
}

func crdGone(_ *subject, u upgrade, found func(hit)) {
	for _, before := range u.from.crds {
		if u.to.crd(before.Name) == nil {
			found(hit{Subject: before.object(), message: fmt.Sprintf("%s has no CRD %s, which %s has", u.To, before.Name, u.From)})
		}
	}
}

// statusGone leaves alone a status subresource that is added: the release that adds it writes it.
func statusGone(_ *subject, u upgrade, found func(hit)) {
	has := func(v *apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Subresources != nil && v.Subresources.Status != nil
	}
	perServed(u, func(before *crd, old, next *apiextensionsv1.CustomResourceDefinitionVersion) {
		if has(old) && !has(next) {
			found(hit{Subject: before.object(), message: fmt.Sprintf("%s removes the status subresource of %s %s", u.To, before.Name, old.Name)})
		}
	})
}

// sampleRefused validates the samples of from, which must fit from's own schema to say anything, against to's, as OLM does:
// with the defaults of the CRD that is there, and without those of the one to come.
func sampleRefused(_ *subject, u upgrade, found func(hit)) {
	var samples []json.RawMessage
	if json.Unmarshal([]byte(u.from.csv.Annotations["alm-examples"]), &samples) != nil {
		return
	}
	perPair(u, func(before, after *crd) {
		for _, raw := range samples {
			var head struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Metadata   struct {
					Name string `json:"name"`
				} `json:"metadata"`
			}
			if json.Unmarshal(raw, &head) != nil || head.Kind != before.Spec.Names.Kind {
				continue
			}
			group, version, _ := strings.Cut(head.APIVersion, "/")
			old, next := before.served(version), after.served(version)
			if group != before.Spec.Group || old < 0 || next < 0 || before.schema(old) == after.schema(next) {
				continue
			}
			object := before.defaulted(raw, old)
			if len(before.misfits(object, old)) > 0 {
				continue
			}
			if problems := after.misfits(object, next); len(problems) > 0 {
				found(hit{
					Subject: before.object(),
					message: fmt.Sprintf("the sample %s %s of %s does not fit %s: %s", head.Kind, head.Metadata.Name, u.From, u.To, abridge(problems)),
				})
			}
		}
	})
}

// compare returns what makes objects that fit before not fit after, lose fields in it, or behave differently.
func compare(before, after *apiextensionsv1.JSONSchemaProps) changes {
	var c changes
	if before != nil && after != nil {
		c.compare("", before, after)
	}
	slices.Sort(c.tighter)
	slices.Sort(c.rules)
	slices.Sort(c.removed)
	slices.Sort(c.defaults)
	slices.Sort(c.merges)
	return c
}

func (c *changes) tight(path, format string, args ...any) {
	c.tighter = append(c.tighter, strings.TrimPrefix(path, ".")+" "+fmt.Sprintf(format, args...))
}

func (c *changes) compare(path string, before, after *apiextensionsv1.JSONSchemaProps) {
	if reflect.DeepEqual(before, after) {
		return
	}
	where := strings.TrimPrefix(path, ".")
	if where == "" {
		where = "the object"
		path = ""
	}
	c.compareType(where, before, after)
	c.compareBounds(where, before, after)
	c.compareMerge(where, before, after)
	c.compareBranches(where, path, before, after)
	if fallback := after.Default; fallback != nil && (before.Default == nil || string(before.Default.Raw) != string(fallback.Raw)) {
		old := "nothing"
		if before.Default != nil {
			old = string(before.Default.Raw)
		}
		c.defaults = append(c.defaults, fmt.Sprintf("%s (%s, was %s)", where, fallback.Raw, old))
	} else if before.Default != nil && fallback == nil {
		c.defaults = append(c.defaults, fmt.Sprintf("%s (nothing, was %s)", where, before.Default.Raw))
	}
	for _, name := range after.Required {
		property, known := before.Properties[name]
		if !slices.Contains(before.Required, name) && (!known || property.Default == nil) {
			c.tight(where, "must have %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		old := before.Properties[name]
		inner := strings.TrimPrefix(path+"."+name, ".")
		if next, there := after.Properties[name]; there {
			c.compare(inner, &old, &next)
		} else if !keepsUnknown(after) {
			c.removed = append(c.removed, inner)
		}
	}
	if c.branch {
		for _, name := range slices.Sorted(maps.Keys(after.Properties)) {
			if next := after.Properties[name]; !hasProperty(before, name) {
				c.compare(strings.TrimPrefix(path+"."+name, "."), &apiextensionsv1.JSONSchemaProps{}, &next)
			}
		}
	}
	if keepsUnknown(before) && !keepsUnknown(after) && before.AdditionalProperties == nil {
		c.removed = append(c.removed, where+" (unknown fields)")
	}
	switch {
	case before.Items != nil && after.Items != nil && before.Items.Schema != nil && after.Items.Schema != nil:
		c.compare(path+"[]", before.Items.Schema, after.Items.Schema)
	case before.Items == nil && after.Items != nil:
		c.tight(where, "has items of a stated form")
	}
	switch {
	case before.AdditionalProperties != nil && after.AdditionalProperties != nil:
		if before.AdditionalProperties.Schema != nil && after.AdditionalProperties.Schema != nil {
			c.compare(path+".*", before.AdditionalProperties.Schema, after.AdditionalProperties.Schema)
		}
	case before.AdditionalProperties != nil && (after.XPreserveUnknownFields == nil || !*after.XPreserveUnknownFields) && len(after.Properties) > 0:
		c.removed = append(c.removed, where+" (fields of any name)")
	}
}

func (c *changes) compareType(where string, before, after *apiextensionsv1.JSONSchemaProps) {
	switch {
	case before.Type == after.Type, after.Type == "", after.XIntOrString && (before.Type == "integer" || before.Type == "string"), before.Type == "integer" && after.Type == "number":
	case before.Type == "":
		if !before.XIntOrString || after.Type != "" {
			c.tight(where, "must be of type %s", after.Type)
		}
	default:
		c.tight(where, "is of type %s instead of %s", after.Type, before.Type)
	}
	if before.Nullable && !after.Nullable {
		c.tight(where, "must not be null")
	}
	if len(after.Enum) > 0 {
		var gone []string
		for _, v := range before.Enum {
			if !slices.ContainsFunc(after.Enum, func(o apiextensionsv1.JSON) bool { return string(o.Raw) == string(v.Raw) }) {
				gone = append(gone, string(v.Raw))
			}
		}
		switch {
		case len(before.Enum) == 0:
			c.tight(where, "must be one of a list")
		case len(gone) > 0:
			c.tight(where, "must not be %s", strings.Join(gone, " or "))
		}
	}
	for _, rule := range after.XValidations {
		if !slices.ContainsFunc(before.XValidations, func(o apiextensionsv1.ValidationRule) bool { return o.Rule == rule.Rule }) {
			text := "%s must satisfy %q"
			if strings.Contains(rule.Rule, "oldSelf") {
				text = "%s may change only as %q allows"
			}
			c.rules = append(c.rules, fmt.Sprintf(text, where, rule.Rule))
		}
	}
}

// compareMerge looks at what server-side apply goes by; what is not said is atomic for lists and granular for mappings.
func (c *changes) compareMerge(where string, before, after *apiextensionsv1.JSONSchemaProps) {
	said := func(s *string, otherwise string) string {
		if s == nil {
			return otherwise
		}
		return *s
	}
	if old, next := said(before.XListType, "atomic"), said(after.XListType, "atomic"); old != next {
		c.merges = append(c.merges, fmt.Sprintf("%s (list type %s, was %s)", where, next, old))
	} else if !slices.Equal(before.XListMapKeys, after.XListMapKeys) {
		c.merges = append(c.merges, fmt.Sprintf("%s (keys %s, were %s)", where, strings.Join(after.XListMapKeys, ","), strings.Join(before.XListMapKeys, ",")))
	}
	if old, next := said(before.XMapType, "granular"), said(after.XMapType, "granular"); old != next {
		c.merges = append(c.merges, fmt.Sprintf("%s (mapping type %s, was %s)", where, next, old))
	}
}

func (c *changes) compareBounds(where string, before, after *apiextensionsv1.JSONSchemaProps) {
	if after.Pattern != "" && after.Pattern != before.Pattern {
		c.tight(where, "must match %q", after.Pattern)
	}
	if after.Format != "" && after.Format != before.Format && after.Type == "string" {
		c.tight(where, "must be of format %s", after.Format)
	}
	if after.Maximum != nil && (before.Maximum == nil || *after.Maximum < *before.Maximum) {
		c.tight(where, "must be at most %v", *after.Maximum)
	}
	if after.Minimum != nil && (before.Minimum == nil || *after.Minimum > *before.Minimum) {
		c.tight(where, "must be at least %v", *after.Minimum)
	}
	if after.ExclusiveMaximum && !before.ExclusiveMaximum && after.Maximum != nil {
		c.tight(where, "must be less than %v", *after.Maximum)
	}
	if after.ExclusiveMinimum && !before.ExclusiveMinimum && after.Minimum != nil {
		c.tight(where, "must be more than %v", *after.Minimum)
	}
	upper := func(name string, old, next *int64) {
		if next != nil && (old == nil || *next < *old) {
			c.tight(where, "has a %s of %d", name, *next)
		}
	}
	lower := func(name string, old, next *int64) {
		if next != nil && *next > 0 && (old == nil || *next > *old) {
			c.tight(where, "has a %s of %d", name, *next)
		}
	}
	upper("maximal length", before.MaxLength, after.MaxLength)
	lower("minimal length", before.MinLength, after.MinLength)
	upper("maximal number of items", before.MaxItems, after.MaxItems)
	lower("minimal number of items", before.MinItems, after.MinItems)
	upper("maximal number of fields", before.MaxProperties, after.MaxProperties)
	lower("minimal number of fields", before.MinProperties, after.MinProperties)
	if after.UniqueItems && !before.UniqueItems {
		c.tight(where, "must not repeat items")
	}
	if after.MultipleOf != nil && (before.MultipleOf == nil || *before.MultipleOf != *after.MultipleOf) {
		c.tight(where, "must be a multiple of %v", *after.MultipleOf)
	}
}
