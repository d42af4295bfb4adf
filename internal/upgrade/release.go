package upgrade

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/olmkit/olmkit/internal/catalog"
)

// release is what a walk needs to know of a bundle.
type release struct {
	Name     string
	CSV      *v1alpha1.ClusterServiceVersion
	CRDs     []*apiextensionsv1.CustomResourceDefinition // owned by the CSV and in the bundle, by name
	Examples []*unstructured.Unstructured                // of the alm-examples annotation
	Shipped  []string                                    // all of the bundle's objects, each Kind/name

	Dependent bool // it requires packages or APIs of others
}

// readRelease decodes the manifests that a bundle carries inline.
func readRelease(b *catalog.Bundle) (*release, error) {
	csv, err := b.CSV()
	if err != nil {
		return nil, err
	}
	definitions, err := b.CRDs()
	if err != nil {
		return nil, err
	}
	r := &release{Name: b.Name, CSV: csv}
	for _, d := range definitions {
		owned := slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Owned, func(o v1alpha1.CRDDescription) bool { return o.Name == d.Name })
		if owned && r.crd(d.Name) == nil {
			r.CRDs = append(r.CRDs, d)
		}
	}
	r.Dependent = slices.ContainsFunc(b.Properties, func(p catalog.Property) bool {
		return p.Type == catalog.PropertyPackageRequired || p.Type == catalog.PropertyGVKRequired || p.Type == catalog.PropertyConstraint
	})
	objects, err := b.Objects()
	if err != nil {
		return nil, err
	}
	for _, raw := range objects {
		var o metav1.PartialObjectMetadata
		if json.Unmarshal(raw, &o) == nil {
			r.Shipped = append(r.Shipped, o.Kind+"/"+o.Name)
		}
	}
	slices.SortFunc(r.CRDs, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	if examples := r.CSV.Annotations["alm-examples"]; examples != "" {
		// Wrong examples are a static finding; a walk goes on without them.
		var raw []json.RawMessage
		if json.Unmarshal([]byte(examples), &raw) == nil {
			for _, m := range raw {
				o := &unstructured.Unstructured{}
				if o.UnmarshalJSON(m) == nil {
					r.Examples = append(r.Examples, o)
				}
			}
		}
	}
	return r, nil
}

// crd returns the release's definition called name, or nil.
func (r *release) crd(name string) *apiextensionsv1.CustomResourceDefinition {
	for _, d := range r.CRDs {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// deployments returns the names of the operator's deployments.
func (r *release) deployments() []string {
	var names []string
	for _, d := range r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		names = append(names, d.Name)
	}
	return names
}

// accounts returns the user names of the service accounts that the operator in namespace runs as, sorted.
func (r *release) accounts(namespace string) []string {
	var names []string
	for _, account := range r.runsAs(namespace) {
		_, name, _ := strings.Cut(account, "/")
		names = append(names, serviceaccount.MakeUsername(namespace, name))
	}
	return names
}

// runsAs returns the service accounts that the operator in namespace runs as, each namespace/name, sorted.
func (r *release) runsAs(namespace string) []string {
	var names []string
	for _, d := range r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		names = append(names, namespace+"/"+cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// images returns the images of the operator's own containers, sorted.
func (r *release) images() []string {
	var images []string
	for _, d := range r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		images = append(images, podImages(d.Spec)...)
	}
	slices.Sort(images)
	return slices.Compact(images)
}

func podImages(d appsv1.DeploymentSpec) []string {
	var images []string
	for _, c := range slices.Concat(d.Template.Spec.InitContainers, d.Template.Spec.Containers) {
		images = append(images, c.Image)
	}
	return images
}

// webhookImages returns the images behind the webhooks of type t; with a conversion webhook, of the one for crd.
func (r *release) webhookImages(t v1alpha1.WebhookAdmissionType, crd string) []string {
	var images []string
	for _, w := range r.CSV.Spec.WebhookDefinitions {
		if w.Type != t || t == v1alpha1.ConversionWebhook && !slices.Contains(w.ConversionCRDs, crd) {
			continue
		}
		for _, d := range r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			if d.Name == w.DeploymentName {
				images = append(images, podImages(d.Spec)...)
			}
		}
	}
	return images
}

// served returns the versions of d that are served, in d's order.
func served(d *apiextensionsv1.CustomResourceDefinition) []string {
	var versions []string
	for _, v := range d.Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}
	return versions
}

// storage returns the version in which d's objects are stored.
func storage(d *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}
