package check

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/internal/finding"
)

const versioningReference = "https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/"

// crdChecks compare the CustomResourceDefinitions at the two ends of each upgrade that users take.
var crdChecks = []Check{
	{
		Code: "CRD001", Severity: finding.Error,
		Title:      "an upgrade removes the storage version of a CRD",
		Cause:      "the CRD's status.storedVersions names that version in every cluster with the previous release. OLM and the API server refuse a CRD without it, so the InstallPlan fails",
		Fix:        "keep the version in the CRD (served: false is allowed) for at least one release, which stores another version and migrates the objects",
		References: []string{versioningReference},
		edge:       storageRemoved,
	},
	{
		Code: "CRD002", Severity: finding.Warning,
		Title:      "an upgrade removes a version in which an earlier release stored objects",
		Cause:      "users who had that release installed still have the version in status.storedVersions, unless a later release migrated the objects and removed it there. While it is there, OLM and the API server refuse the CRD",
		Fix:        "migrate the objects and remove the version from status.storedVersions in a release that every such user installs on the way; remove the version from the CRD only in a later one",
		References: []string{versioningReference, "https://github.com/DataDog/datadog-operator/issues/1389"},
		run:        storedEarlier,
		distant:    true,
	},
	{
		Code: "CRD003", Severity: finding.Warning,
		Title:      "an upgrade stops serving a version that was not deprecated",
		Cause:      "clients and manifests that use the version fail after the upgrade, and their users got no warning",
		Fix:        "serve the version with deprecated: true for at least one more release",
		References: []string{versioningReference},
		edge:       servedGone(false),
	},
	{
		Code: "CRD004", Severity: finding.Error,
		Title:      "an upgrade changes the storage version without conversion, and the new version lacks fields of the old one",
		Cause:      "with strategy None the API server only changes the apiVersion: it silently drops fields that the new version's schema does not have from every object",
		Fix:        "convert with a webhook, or add all fields of the old version to the new one",
		References: []string{versioningReference},
		edge:       silentLoss,
	},
	{
		Code: "CRD005", Severity: finding.Error,
		Title:      "the API server rejects the CRD of an upgrade",
		Cause:      "the message comes from the API server's own validation of an update (k8s.io/apiextensions-apiserver v0.36.3); the InstallPlan fails with it",
		Fix:        "change the CRD so that it is a valid update of the previous release's CRD",
		References: []string{versioningReference},
		edge:       refused,
	},
	{
		Code: "CRD006", Severity: finding.Warning,
		Title:      "an upgrade makes a schema stricter",
		Cause:      "OLM validates every existing object against the new schema before it replaces the CRD, and the InstallPlan fails at the first invalid one. If the CRD has a conversion webhook, it does not fail: such objects stay, and the API server rejects later changes of these fields",
		Fix:        "do not make the schema of a released version stricter; put stricter rules into a new version, or into a webhook that accepts existing objects",
		References: []string{versioningReference},
		edge:       tightened,
	},
	{
		Code: "CRD007", Severity: finding.Warning,
		Title:      "an upgrade removes fields from the schema of a version",
		Cause:      "the API server silently drops fields that the schema does not have when an object is next written",
		Fix:        "keep the field in the schema, and say in its description that it has no effect",
		References: []string{"https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning"},
		edge:       fieldsRemoved,
	},
	{
		Code: "CRD008", Severity: finding.Error,
		Title:      "a sample of the previous release is invalid under the schema of an upgrade",
		Cause:      "users have objects like the sample. OLM refuses the CRD while such an object exists; if the CRD has a conversion webhook, later writes of the object fail instead",
		Fix:        "loosen the schema so that objects of earlier releases are valid",
		References: []string{versioningReference},
		edge:       sampleRefused,
	},
	{
		Code: "CRD009", Severity: finding.Info,
		Title: "an upgrade drops a CRD",
		Cause: "OLM leaves the CRD and its objects in the cluster, and no operator reconciles them any more",
		Fix:   "tell users what happens to their objects",
		edge:  crdGone,
	},
	{
		Code: "CRD010", Severity: finding.Info,
		Title: "an upgrade changes a default",
		Cause: "objects that do not set the field behave differently after the upgrade",
		Fix:   "check that the new default is right for existing objects",
		edge:  defaultsChanged,
	},
	{
		Code: "CRD011", Severity: finding.Warning,
		Title: "an upgrade removes the status subresource of a version",
		Cause: "after the upgrade writes of the status subresource fail, and every write of the whole object writes the status too",
		Fix:   "keep the status subresource of a released version",
		edge:  statusGone,
	},
	{
		Code: "CRD012", Severity: finding.Info,
		Title:      "an upgrade stops serving a deprecated version",
		Cause:      "clients and manifests that still use the version fail after the upgrade",
		Fix:        "announce it in the release notes",
		References: []string{versioningReference},
		edge:       servedGone(true),
	},
	{
		Code: "CRD013", Severity: finding.Warning,
		Title:      "an upgrade changes the storage version without conversion, and the new version is stricter",
		Cause:      "with strategy None the API server only changes the apiVersion: objects that are valid under the old version's schema and invalid under the new one's can be read, but no longer be written",
		Fix:        "convert with a webhook, or accept in the new version what the old one accepts",
		References: []string{versioningReference},
		edge:       strictStorage,
	},
	{
		Code: "CRD014", Severity: finding.Info,
		Title: "an upgrade removes names of a CRD",
		Cause: "scripts and commands that use the old singular, list kind, short name or category fail after the upgrade",
		Fix:   "keep the old names, and add the new ones",
		edge:  namesChanged,
	},
	{
		Code: "CRD015", Severity: finding.Warning,
		Title: "an upgrade removes the scale subresource, or changes or removes one of its paths",
		Cause: "autoscalers and 'kubectl scale' fail for these objects after the upgrade, or read and write other fields",
		Fix:   "keep the scale subresource of a released version as it is",
		edge:  scaleChanged,
	},
	{
		Code: "CRD016", Severity: finding.Info,
		Title:      "an upgrade changes how server-side apply merges a list or map",
		Cause:      "server-side apply merges by x-kubernetes-list-type, x-kubernetes-list-map-keys and x-kubernetes-map-type: after a change field managers overwrite or duplicate each other's items, and the API server rejects lists with equal keys",
		Fix:        "keep these three as they are in a released version",
		References: []string{"https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy"},
		edge:       mergeChanged,
	},
	{
		Code: "CRD017", Severity: finding.Info,
		Title: "an upgrade removes a printer column",
		Cause: "scripts that read the columns of 'kubectl get' read other values",
		Fix:   "nothing to do, unless the columns are documented",
		edge:  columnsGone,
	},
	{
		Code: "CRD018", Severity: finding.Warning,
		Title:      "an upgrade starts to serve a version without conversion, and existing objects can be invalid in it",
		Cause:      "before OLM replaces a CRD, it reads all objects in every served version and validates them against the new schemas. The InstallPlan fails at the first invalid object: the one of the next release, or already this one when OLM repeats the step",
		Fix:        "accept in the new version what the others accept, or convert with a webhook that is in spec.conversion of the bundle's CRD",
		References: []string{"https://github.com/operator-framework/operator-lifecycle-manager/issues/3342"},
		edge:       versionsApart,
	},
	{
		Code: "CRD019", Severity: finding.Warning,
		Title: "an upgrade adds a CEL rule that existing objects can violate",
		Cause: "OLM validates existing objects without the CEL rules of the schema, so the InstallPlan succeeds. But if an object violates the rule, the API server " +
			"rejects every later write, also the operator's own, that changes the field with the rule (before Kubernetes 1.30: every write of the object)",
		Fix: "accept in the rule what the previous release accepts, or put the rule into a new version, or into a webhook that accepts existing objects",
		References: []string{
			"https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting",
			"https://github.com/operator-framework/operator-lifecycle-manager/blob/v0.46.0/pkg/controller/operators/catalog/operator.go",
		},
		edge: rulesAdded,
	},
	{
		Code: "CRD022", Severity: finding.Info,
		Title: "an upgrade stops serving a version that the previous release's ClusterServiceVersion owns",
		Cause: "OLM takes the previous release for broken as soon as the CRD is replaced. If it notices this before it notices the new ClusterServiceVersion, as a busy cluster does now and then, " +
			"the two wait for each other for ever: the old one is Pending, and OLM replaces it only from other phases (OLM v0.46.0)",
		Fix: "publish a release first that still serves the version and owns another version of the CRD; 'olmkit upgrade diagnose' prints the command that ends such a wait",
		References: []string{
			versioningReference,
			"https://github.com/operator-framework/operator-lifecycle-manager/blob/v0.46.0/pkg/controller/operators/olm/operator.go",
		},
		edge: ownedGone,
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

func (c *crd) object() finding.Subject { return definition(c.Name) }

// definition is the CRD of a name, as a subject.
func definition(name string) finding.Subject {
	return finding.Subject{Object: "CustomResourceDefinition/" + name}
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
			found(hit{Subject: before.object(), path: versions, message: fmt.Sprintf("%s removes version %s of CRD %s, the storage version of %s", u.To, s.Name, before.Name, u.From)})
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
			if f := s.factsOf(b); f != nil {
				for _, c := range f.CRDs {
					if c.Stored != "" {
						by[key{b.Name, c.Name, c.Stored}] = b.Name
					}
				}
			}
		}
		for changed := true; changed; {
			changed = false
			s.perDefinition(list, func(u hop, _, after *crdFacts) {
				for _, v := range after.Versions {
					from, there := by[key{u.From, after.Name, v}]
					if _, known := by[key{u.To, after.Name, v}]; there && !known {
						by[key{u.To, after.Name, v}] = from
						changed = true
					}
				}
			})
		}
		var alike gathering
		s.perDefinition(list, func(u hop, before, after *crdFacts) {
			for _, v := range before.Versions {
				origin, there := by[key{u.From, before.Name, v}]
				if !there || origin == u.From || slices.Contains(after.Versions, v) {
					continue
				}
				alike.add(u, hit{
					Subject: definition(before.Name), path: versions,
					message: fmt.Sprintf("%s removes version %s of CRD %s, in which %s stored objects", u.To, v, before.Name, origin),
				})
			}
		})
		alike.tell(s, found)
	}
}

// perDefinition calls look with each CRD that both ends of an upgrade have.
func (s *subject) perDefinition(list []hop, look func(u hop, before, after *crdFacts)) {
	for _, u := range list {
		from, to := s.factsOf(u.tail), s.factsOf(u.head)
		if from == nil || to == nil {
			continue
		}
		for i := range from.CRDs {
			if after := to.crd(from.CRDs[i].Name); after != nil {
				look(u, &from.CRDs[i], after)
			}
		}
	}
}

func servedGone(deprecated bool) func(*subject, upgrade, func(hit)) {
	return func(_ *subject, u upgrade, found func(hit)) {
		perPair(u, func(before, after *crd) {
			for _, v := range before.Spec.Versions {
				next := after.version(v.Name)
				if v.Served && v.Deprecated == deprecated && (next == nil || !next.Served) {
					found(hit{Subject: before.object(), path: after.versionPath(v.Name), message: fmt.Sprintf("%s stops serving version %s of CRD %s, which %s serves", u.To, v.Name, before.Name, u.From)})
				}
			}
		})
	}
}

func ownedGone(_ *subject, u upgrade, found func(hit)) {
	if u.from.csv == nil {
		return
	}
	perPair(u, func(before, after *crd) {
		for _, owned := range u.from.csv.Spec.CustomResourceDefinitions.Owned {
			old, next := before.version(owned.Version), after.version(owned.Version)
			if owned.Name == before.Name && old != nil && old.Served && (next == nil || !next.Served) {
				found(hit{
					Subject: before.object(), path: after.versionPath(owned.Version),
					message: fmt.Sprintf("%s owns version %s of CRD %s, which %s does not serve", u.From, owned.Version, before.Name, u.To),
				})
			}
		}
	})
}

func silentLoss(_ *subject, u upgrade, found func(hit)) {
	perPair(u, func(before, after *crd) {
		old, next := before.stored(), after.stored()
		if old == nil || next == nil || old.Name == next.Name || after.converted(u.to) || old.Schema == nil || next.Schema == nil ||
			after.Spec.PreserveUnknownFields {
			return
		}
		c := compare(old.Schema.OpenAPIV3Schema, next.Schema.OpenAPIV3Schema)
		lost := slices.DeleteFunc(c.removed, inStatus)
		if len(lost) > 0 {
			found(hit{
				Subject: before.object(), path: after.pathOf(next.Name, c, lost),
				message: fmt.Sprintf("the storage version of CRD %s changes from %s to %s without conversion, and %s lacks: %s", before.Name, old.Name, next.Name, next.Name, abridge(lost)),
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
				Subject: before.object(), path: after.pathOf(next.Name, c, tighter),
				message: fmt.Sprintf("the storage version of CRD %s changes from %s to %s without conversion, and %s is stricter: %s", before.Name, old.Name, next.Name, next.Name, abridge(tighter)),
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
				c := compare(written.Schema.OpenAPIV3Schema, added.Schema.OpenAPIV3Schema)
				tighter := slices.DeleteFunc(c.tighter, inStatus)
				if len(tighter) > 0 {
					found(hit{
						Subject: before.object(), path: after.pathOf(added.Name, c, tighter),
						message: fmt.Sprintf("%s starts to serve version %s of CRD %s without conversion, and objects written in version %s can be invalid in it: %s", u.To, added.Name, before.Name, written.Name, abridge(tighter)),
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

// otherNames returns the names of c, besides the plural and the kind, with what each is.
func (c *crd) otherNames() []string {
	names := c.names()
	list := []string{"singular " + names.Singular, "list kind " + names.ListKind}
	for _, name := range names.ShortNames {
		list = append(list, "short name "+name)
	}
	for _, name := range names.Categories {
		list = append(list, "category "+name)
	}
	return list
}

func namesChanged(_ *subject, u upgrade, found func(hit)) {
	perPair(u, func(before, after *crd) {
		if gone := without(before.otherNames(), after.otherNames()); len(gone) > 0 {
			found(hit{Subject: before.object(), path: []any{"spec", "names"}, message: fmt.Sprintf("%s removes names of CRD %s: %s", u.To, before.Name, strings.Join(gone, ", "))})
		}
	})
}

// perServed calls look for each version that both ends of u serve.
func perServed(u upgrade, look func(before, after *crd, old, next *apiextensionsv1.CustomResourceDefinitionVersion)) {
	perPair(u, func(before, after *crd) {
		for i := range before.Spec.Versions {
			old := &before.Spec.Versions[i]
			if next := after.version(old.Name); next != nil && old.Served && next.Served {
				look(before, after, old, next)
			}
		}
	})
}

func scaleChanged(_ *subject, u upgrade, found func(hit)) {
	perServed(u, func(before, after *crd, old, next *apiextensionsv1.CustomResourceDefinitionVersion) {
		if old.Subresources == nil || old.Subresources.Scale == nil {
			return
		}
		had := old.Subresources.Scale
		switch {
		case next.Subresources == nil || next.Subresources.Scale == nil:
			found(hit{Subject: before.object(), path: append(after.versionPath(old.Name), "subresources"), message: fmt.Sprintf("%s removes the scale subresource of version %s of CRD %s", u.To, old.Name, before.Name)})
		case pathsChanged(had, next.Subresources.Scale):
			found(hit{Subject: before.object(), path: append(after.versionPath(old.Name), "subresources"), message: fmt.Sprintf("%s changes the paths of the scale subresource of version %s of CRD %s", u.To, old.Name, before.Name)})
		}
	})
}

// pathsChanged leaves alone a selector that is added: nobody relied on there being none.
func pathsChanged(old, next *apiextensionsv1.CustomResourceSubresourceScale) bool {
	return old.SpecReplicasPath != next.SpecReplicasPath || old.StatusReplicasPath != next.StatusReplicasPath ||
		old.LabelSelectorPath != nil && *old.LabelSelectorPath != "" && !reflect.DeepEqual(old.LabelSelectorPath, next.LabelSelectorPath)
}

// columns returns the names of the version's printer columns.
func columns(v *apiextensionsv1.CustomResourceDefinitionVersion) []string {
	names := make([]string, 0, len(v.AdditionalPrinterColumns))
	for _, c := range v.AdditionalPrinterColumns {
		names = append(names, c.Name)
	}
	return names
}

func columnsGone(_ *subject, u upgrade, found func(hit)) {
	perServed(u, func(before, after *crd, old, next *apiextensionsv1.CustomResourceDefinitionVersion) {
		if gone := without(columns(old), columns(next)); len(gone) > 0 {
			found(hit{Subject: before.object(), path: append(after.versionPath(old.Name), "additionalPrinterColumns"), message: fmt.Sprintf("%s removes printer columns from version %s of CRD %s: %s", u.To, old.Name, before.Name, abridge(gone))})
		}
	})
}

func mergeChanged(s *subject, u upgrade, found func(hit)) {
	merges := func(c changes) []string { return c.merges }
	perSaid(s, u, merges, func(before *crd, versions, said string, path []any) {
		found(hit{Subject: before.object(), path: path, message: fmt.Sprintf("%s changes how server-side apply merges in %s of CRD %s: %s", u.To, versions, before.Name, said)})
	})
}

// internal converts a CRD to the form in which the API server validates it, with defaults.
func internal(c *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	defaulted := *c // the defaults, and the conversion, write fields of the definition itself alone
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&defaulted)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&defaulted.Spec)
	out := &apiextensions.CustomResourceDefinition{}
	return out, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&defaulted, out, nil)
}

// refused asks the API server's own validation. OLM writes caBundle and service of conversion itself, so what is wrong with
// those alone is no reason; stored versions are storageRemoved's matter.
func refused(s *subject, u upgrade, found func(hit)) {
	perPair(u, func(before, after *crd) {
		for _, problem := range s.refusals(before, after) {
			found(hit{Subject: before.object(), path: []any{"spec"}, message: fmt.Sprintf("CRD %s: %s", before.Name, problem)})
		}
	})
}

// refusals are those of the metadata, and of the spec, which many releases have alike.
func (s *subject) refusals(before, after *crd) []string {
	ofSpec := s.refused.get([2][sha256.Size]byte{before.spec, after.spec}, func() []string {
		if len(refusals(unlabelled(before.outline()), unlabelled(after.outline()), after.v1beta1)) == 0 {
			return nil
		}
		return refusals(unlabelled(before.CustomResourceDefinition), unlabelled(after.CustomResourceDefinition), after.v1beta1)
	})
	old, next := before.ObjectMeta, after.ObjectMeta
	old.ResourceVersion, next.ResourceVersion = "1", "1"
	return slices.Concat(said(apivalidation.ValidateObjectMetaUpdate(&next, &old, field.NewPath("metadata")), after.v1beta1), ofSpec)
}

// unlabelled returns c with no more of its metadata than what decides whether its spec is valid.
func unlabelled(c *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	out := *c
	out.ObjectMeta = metav1.ObjectMeta{Name: c.Name}
	if approved, ok := c.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]; ok {
		out.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: approved}
	}
	return &out
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
	return said(crdvalidation.ValidateCustomResourceDefinitionUpdate(context.Background(), next, old), v1beta1)
}

func said(errs field.ErrorList, v1beta1 bool) (list []string) {
	for _, e := range errs {
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
	paths                                     map[string]string // of the field that each is of
	branch                                    bool              // the schemas stand in allOf, anyOf, oneOf or not: they restrict fields, and define none
}

// perVersion calls look with the comparison of each version that both ends of u serve.
func perVersion(s *subject, u upgrade, look func(before, after *crd, version string, c changes)) {
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
			look(before, after, v.Name, c)
		}
	})
}

// comparison is what two schemas were compared of.
type comparison struct {
	before, after [sha256.Size]byte
	version       string
}

// perSaid calls look for each CRD with what pick chooses of the comparison of its versions, abridged: once for all versions of
// which it says the same, with the place in the first.
func perSaid(s *subject, u upgrade, pick func(changes) []string, look func(before *crd, versions, said string, path []any)) {
	type group struct {
		before   *crd
		versions []string
		said     string
		path     []any
	}
	var groups []*group
	perVersion(s, u, func(before, after *crd, version string, c changes) {
		said := pick(c)
		if len(said) == 0 {
			return
		}
		text := abridge(said)
		i := slices.IndexFunc(groups, func(g *group) bool { return g.before == before && g.said == text })
		if i < 0 {
			i, groups = len(groups), append(groups, &group{before: before, said: text, path: after.pathOf(version, c, said)})
		}
		groups[i].versions = append(groups[i].versions, version)
	})
	for _, g := range groups {
		versions := "version " + g.versions[0]
		if len(g.versions) > 1 {
			versions = "versions " + strings.Join(g.versions, ", ")
		}
		look(g.before, versions, g.said, g.path)
	}
}

func tightened(s *subject, u upgrade, found func(hit)) {
	tighter := func(c changes) []string { return c.tighter }
	perSaid(s, u, tighter, func(before *crd, versions, said string, path []any) {
		found(hit{Subject: before.object(), path: path, message: fmt.Sprintf("%s has a stricter schema than %s for %s of CRD %s: %s", u.To, u.From, versions, before.Name, said)})
	})
}

func rulesAdded(s *subject, u upgrade, found func(hit)) {
	rules := func(c changes) []string { return c.rules }
	perSaid(s, u, rules, func(before *crd, versions, said string, path []any) {
		found(hit{Subject: before.object(), path: path, message: fmt.Sprintf("%s adds CEL rules to %s of CRD %s that %s does not have: %s", u.To, versions, before.Name, u.From, said)})
	})
}

// inStatus reports whether a path, or the first word of what is said of one, is the status or in it.
func inStatus(path string) bool {
	first, _, _ := strings.Cut(path, " ")
	return first == "status" || strings.HasPrefix(first, "status.")
}

// fieldsRemoved leaves the status alone, which the operator writes anew.
func fieldsRemoved(s *subject, u upgrade, found func(hit)) {
	removed := func(c changes) []string { return slices.DeleteFunc(slices.Clone(c.removed), inStatus) }
	perSaid(s, u, removed, func(before *crd, versions, said string, path []any) {
		found(hit{Subject: before.object(), path: path, message: fmt.Sprintf("%s removes fields from %s of CRD %s: %s", u.To, versions, before.Name, said)})
	})
}

func defaultsChanged(s *subject, u upgrade, found func(hit)) {
	defaults := func(c changes) []string { return c.defaults }
	perSaid(s, u, defaults, func(before *crd, versions, said string, path []any) {
		found(hit{Subject: before.object(), path: path, message: fmt.Sprintf("%s changes defaults in %s of CRD %s: %s", u.To, versions, before.Name, said)})
	})
}

func crdGone(_ *subject, u upgrade, found func(hit)) {
	for _, before := range u.from.crds {
		if u.to.crd(before.Name) == nil {
			found(hit{Subject: before.object(), path: []any{"spec", "customresourcedefinitions"}, message: fmt.Sprintf("%s drops CRD %s, which %s has", u.To, before.Name, u.From)})
		}
	}
}

func hasStatus(v *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return v.Subresources != nil && v.Subresources.Status != nil
}

// statusGone leaves alone a status subresource that is added: the release that adds it writes it.
func statusGone(_ *subject, u upgrade, found func(hit)) {
	perServed(u, func(before, after *crd, old, next *apiextensionsv1.CustomResourceDefinitionVersion) {
		if hasStatus(old) && !hasStatus(next) {
			found(hit{Subject: before.object(), path: append(after.versionPath(old.Name), "subresources"), message: fmt.Sprintf("%s removes the status subresource of version %s of CRD %s", u.To, old.Name, before.Name)})
		}
	})
}

// sampleRefused validates the samples of from, which must fit from's own schema to say anything, against to's, as OLM does:
// with the defaults of the CRD that is there, and without those of the one to come.
func sampleRefused(_ *subject, u upgrade, found func(hit)) {
	samples := u.from.samples()
	perPair(u, func(before, after *crd) {
		for _, s := range samples {
			old, next := before.served(s.version), after.served(s.version)
			if !s.of(before) || old < 0 || next < 0 || before.schema(old) == after.schema(next) {
				continue
			}
			if before.saysSame(old, after, next, s.raw) {
				continue
			}
			object := before.defaulted(s.raw, old)
			if len(before.misfits(object, old)) > 0 {
				continue
			}
			if problems := after.misfits(object, next); len(problems) > 0 {
				found(hit{
					Subject: before.object(), path: append(after.versionPath(s.version), "schema", "openAPIV3Schema"),
					message: fmt.Sprintf("the sample %s of %s is invalid under the schema of %s: %s", s, u.From, u.To, abridge(problems)),
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
	path = strings.TrimPrefix(path, ".")
	c.tighter = append(c.tighter, c.of(path, path+" "+fmt.Sprintf(format, args...)))
}

// of remembers that what is said is of the field at path.
func (c *changes) of(path, said string) string {
	if c.paths == nil {
		c.paths = map[string]string{}
	}
	c.paths[said] = path
	return said
}

// versions is the path of a CRD's versions.
var versions = []any{"spec", "versions"}

// versionPath returns the path of the version called name, or of all where there is none.
func (c *crd) versionPath(name string) []any {
	for i, v := range c.Spec.Versions {
		if v.Name == name {
			return append(slices.Clone(versions), i)
		}
	}
	return slices.Clone(versions)
}

// pathOf returns the path, in the CRD c, of the field in the schema of a version that the first of said is of.
func (c *crd) pathOf(version string, found changes, said []string) []any {
	path := append(c.versionPath(version), "schema", "openAPIV3Schema")
	if field := found.paths[said[0]]; field != "" && field != wholeObject {
		path = append(path, inSchema(field)...)
	}
	return path
}

// inSchema turns the path of a field, as spec.pots[].size, into that of its schema.
func inSchema(field string) []any {
	var path []any
	for _, step := range strings.Split(field, ".") {
		name := strings.TrimRight(step, "[]")
		switch {
		case name == "*":
			path = append(path, "additionalProperties")
		case name != "":
			path = append(path, "properties", name)
		}
		for range strings.Count(step[len(name):], "[]") {
			path = append(path, "items")
		}
	}
	return path
}

// wholeObject is what is said instead of a path of the object itself.
const wholeObject = "the object"

func (c *changes) compare(path string, before, after *apiextensionsv1.JSONSchemaProps) {
	if reflect.DeepEqual(before, after) {
		return
	}
	where := strings.TrimPrefix(path, ".")
	if where == "" {
		where = wholeObject
		path = ""
	}
	c.compareType(where, before, after)
	c.compareBounds(where, before, after)
	c.compareMerge(where, before, after)
	c.compareBranches(where, path, before, after)
	c.compareDefault(where, before.Default, after.Default)
	for _, name := range after.Required {
		property, known := before.Properties[name]
		if !slices.Contains(before.Required, name) && (!known || property.Default == nil) {
			c.tight(where, "requires the field %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		old := before.Properties[name]
		inner := strings.TrimPrefix(path+"."+name, ".")
		if next, there := after.Properties[name]; there {
			c.compare(inner, &old, &next)
		} else if !keepsUnknown(after) && (path != "" || c.branch || !slices.Contains(kept, name)) {
			c.removed = append(c.removed, c.of(inner, inner))
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
		c.removed = append(c.removed, c.of(where, where+" (unknown fields)"))
	}
	switch {
	case before.Items != nil && after.Items != nil && before.Items.Schema != nil && after.Items.Schema != nil:
		c.compare(path+"[]", before.Items.Schema, after.Items.Schema)
	case before.Items == nil && after.Items != nil:
		c.tight(where, "has a schema for its items")
	}
	switch {
	case before.AdditionalProperties != nil && after.AdditionalProperties != nil:
		if before.AdditionalProperties.Schema != nil && after.AdditionalProperties.Schema != nil {
			c.compare(path+".*", before.AdditionalProperties.Schema, after.AdditionalProperties.Schema)
		}
	case keepsUnknown(before) && after.AdditionalProperties != nil && after.AdditionalProperties.Schema != nil:
		c.compare(path+".*", &apiextensionsv1.JSONSchemaProps{}, after.AdditionalProperties.Schema)
	case before.AdditionalProperties != nil && !keepsUnknown(after) && (after.Type == "object" || len(after.Properties) > 0):
		c.removed = append(c.removed, c.of(where, where+" (fields of any name)"))
	}
}

// kept are the fields of an object that the API server keeps whatever the schema says.
var kept = []string{"apiVersion", "kind", "metadata"}

// checkedFormat reports whether the API server checks strings of the format: it ignores those that it does not know.
func checkedFormat(format string) bool {
	schema := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"string"}, Format: format}}
	return len(validation.GetUnrecognizedFormats(schema, version.MajorMinor(1, 36))) == 0
}

// compareDefault notes a default that came, went or changed.
func (c *changes) compareDefault(where string, before, after *apiextensionsv1.JSON) {
	value := func(j *apiextensionsv1.JSON) string {
		if j == nil {
			return "none"
		}
		return string(j.Raw)
	}
	if value(before) != value(after) {
		c.defaults = append(c.defaults, c.of(where, fmt.Sprintf("%s from %s to %s", where, value(before), value(after))))
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
		c.tight(where, "must be of type %s instead of %s", after.Type, before.Type)
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
			values := make([]string, len(after.Enum))
			for i, v := range after.Enum {
				values[i] = string(v.Raw)
			}
			c.tight(where, "must be one of %s", abridge(values))
		case len(gone) > 0:
			c.tight(where, "must not be %s", strings.Join(gone, " or "))
		}
	}
	for _, rule := range after.XValidations {
		if !slices.ContainsFunc(before.XValidations, func(o apiextensionsv1.ValidationRule) bool { return o.Rule == rule.Rule }) {
			text := "%s must satisfy %q"
			if strings.Contains(rule.Rule, "oldSelf") {
				text = "%s can change only as %q allows"
			}
			c.rules = append(c.rules, c.of(where, fmt.Sprintf(text, where, rule.Rule)))
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
		c.merges = append(c.merges, c.of(where, fmt.Sprintf("%s (list type %s, was %s)", where, next, old)))
	} else if !slices.Equal(before.XListMapKeys, after.XListMapKeys) {
		c.merges = append(c.merges, c.of(where, fmt.Sprintf("%s (keys %s, were %s)", where, strings.Join(after.XListMapKeys, ","), strings.Join(before.XListMapKeys, ","))))
	}
	if old, next := said(before.XMapType, "granular"), said(after.XMapType, "granular"); old != next {
		c.merges = append(c.merges, c.of(where, fmt.Sprintf("%s (map type %s, was %s)", where, next, old)))
	}
}

// number writes v as people do, without an exponent.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func (c *changes) compareBounds(where string, before, after *apiextensionsv1.JSONSchemaProps) {
	if after.Pattern != "" && after.Pattern != before.Pattern && !patternImplies(before.Pattern, after.Pattern, ptr.Deref(before.MinLength, 0), ptr.Deref(before.MaxLength, -1)) {
		c.tight(where, "must match %q", after.Pattern)
	}
	if after.Format != "" && after.Format != before.Format && after.Type == "string" && checkedFormat(after.Format) {
		c.tight(where, "must be of format %s", after.Format)
	}
	if after.Maximum != nil && (before.Maximum == nil || *after.Maximum < *before.Maximum) {
		c.tight(where, "must be at most %s", number(*after.Maximum))
	}
	if after.Minimum != nil && (before.Minimum == nil || *after.Minimum > *before.Minimum) {
		c.tight(where, "must be at least %s", number(*after.Minimum))
	}
	if after.ExclusiveMaximum && !before.ExclusiveMaximum && after.Maximum != nil {
		c.tight(where, "must be less than %s", number(*after.Maximum))
	}
	if after.ExclusiveMinimum && !before.ExclusiveMinimum && after.Minimum != nil {
		c.tight(where, "must be greater than %s", number(*after.Minimum))
	}
	upper := func(name string, old, next *int64) {
		if next != nil && (old == nil || *next < *old) {
			c.tight(where, "has %s %d", name, *next)
		}
	}
	lower := func(name string, old, next *int64) {
		if next != nil && *next > 0 && (old == nil || *next > *old) {
			c.tight(where, "has %s %d", name, *next)
		}
	}
	upper("maxLength", before.MaxLength, after.MaxLength)
	lower("minLength", before.MinLength, after.MinLength)
	upper("maxItems", before.MaxItems, after.MaxItems)
	lower("minItems", before.MinItems, after.MinItems)
	upper("maxProperties", before.MaxProperties, after.MaxProperties)
	lower("minProperties", before.MinProperties, after.MinProperties)
	if after.UniqueItems && !before.UniqueItems {
		c.tight(where, "must not repeat items")
	}
	if after.MultipleOf != nil && (before.MultipleOf == nil || *before.MultipleOf != *after.MultipleOf) {
		c.tight(where, "must be a multiple of %s", number(*after.MultipleOf))
	}
}
