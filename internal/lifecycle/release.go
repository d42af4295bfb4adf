package lifecycle

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/olmkit/olmkit/internal/catalog"
)

// Release is what a walk needs to know of a bundle.
type Release struct {
	Name     string
	CSV      *v1alpha1.ClusterServiceVersion
	CRDs     []*apiextensionsv1.CustomResourceDefinition // owned by the CSV and in the bundle, by name
	Examples []*unstructured.Unstructured                // of the alm-examples annotation
	Shipped  []string                                    // all of the bundle's objects, each Kind/name

	Dependent bool // it requires packages or APIs of others
}

// ReadRelease decodes the manifests that a bundle carries inline.
func ReadRelease(b *catalog.Bundle) (*Release, error) {
	csv, err := b.CSV()
	if err != nil {
		return nil, err
	}
	definitions, err := b.CRDs()
	if err != nil {
		return nil, err
	}
	r := &Release{Name: b.Name, CSV: csv}
	for _, d := range definitions {
		owned := slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Owned, func(o v1alpha1.CRDDescription) bool { return o.Name == d.Name })
		if owned && r.CRD(d.Name) == nil {
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

// CRD returns the release's definition called name, or nil.
func (r *Release) CRD(name string) *apiextensionsv1.CustomResourceDefinition {
	for _, d := range r.CRDs {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// Deployments returns the names of the operator's deployments.
func (r *Release) Deployments() []string {
	var names []string
	for _, d := range r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		names = append(names, d.Name)
	}
	return names
}

// Accounts returns the user names of the service accounts that the operator in namespace runs as, sorted.
func (r *Release) Accounts(namespace string) []string {
	var names []string
	for _, account := range r.RunsAs(namespace) {
		_, name, _ := strings.Cut(account, "/")
		names = append(names, serviceaccount.MakeUsername(namespace, name))
	}
	return names
}

// RunsAs returns the service accounts that the operator in namespace runs as, each namespace/name, sorted.
func (r *Release) RunsAs(namespace string) []string {
	var names []string
	for _, d := range r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		names = append(names, namespace+"/"+cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Permitted returns the service accounts that the operator's pods run as or that it asks permissions for, each namespace/name.
func (r *Release) Permitted(namespace string) []string {
	names := r.RunsAs(namespace)
	strategy := r.CSV.Spec.InstallStrategy.StrategySpec
	for _, list := range [][]v1alpha1.StrategyDeploymentPermissions{strategy.Permissions, strategy.ClusterPermissions} {
		for _, p := range list {
			names = append(names, namespace+"/"+p.ServiceAccountName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Images returns the images of the operator's own containers, sorted.
func (r *Release) Images() []string {
	var images []string
	for _, d := range r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		images = append(images, podImages(d.Spec)...)
	}
	slices.Sort(images)
	return slices.Compact(images)
}

// Idle returns those of simulated that are of pods of the operator in which nothing runs.
func (r *Release) Idle(simulated []string) (images []string) {
	isSimulated := func(image string) bool { return slices.Contains(simulated, image) }
	for _, d := range r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if all := podImages(d.Spec); !slices.ContainsFunc(all, func(image string) bool { return !isSimulated(image) }) {
			images = append(images, all...)
		}
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

// Owns reports whether the operator's definitions have kind of group.
func (r *Release) Owns(group, kind string) bool {
	return slices.ContainsFunc(r.CSV.Spec.CustomResourceDefinitions.Owned, func(d v1alpha1.CRDDescription) bool {
		_, of, _ := strings.Cut(d.Name, ".")
		return of == group && d.Kind == kind
	})
}

// Modes returns the install modes that the bundle supports, the widest first.
func (r *Release) Modes() []Mode { return ModesOf(r.CSV) }

// ModesOf returns the install modes that csv supports, the widest first.
func ModesOf(csv *v1alpha1.ClusterServiceVersion) []Mode {
	var modes []Mode
	for _, m := range []Mode{AllNamespaces, OwnNamespace, SingleNamespace, MultiNamespace} {
		if slices.Contains(csv.Spec.InstallModes, v1alpha1.InstallMode{Type: v1alpha1.InstallModeType(m), Supported: true}) {
			modes = append(modes, m)
		}
	}
	return modes
}

// AdmissionImages returns the images behind the admission webhooks.
func (r *Release) AdmissionImages() []string {
	return r.webhookImages(func(w v1alpha1.WebhookDescription) bool { return w.Type != v1alpha1.ConversionWebhook })
}

// ConversionImages returns the images behind the conversion webhook of crd.
func (r *Release) ConversionImages(crd string) []string {
	return r.webhookImages(func(w v1alpha1.WebhookDescription) bool {
		return w.Type == v1alpha1.ConversionWebhook && slices.Contains(w.ConversionCRDs, crd)
	})
}

// webhookImages are the images behind the webhooks that are wanted.
func (r *Release) webhookImages(wanted func(v1alpha1.WebhookDescription) bool) []string {
	var images []string
	for _, w := range r.CSV.Spec.WebhookDefinitions {
		if !wanted(w) {
			continue
		}
		for _, d := range r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			if d.Name == w.DeploymentName {
				images = append(images, servingImages(d.Spec, w)...)
			}
		}
	}
	return images
}

// servingImages are that of the container of d which has the port at which w is served, or all if none says that it has: most sidecars, such as kube-rbac-proxy, have no part in webhooks.
func servingImages(d appsv1.DeploymentSpec, w v1alpha1.WebhookDescription) []string {
	target := intstr.FromInt32(cmp.Or(w.ContainerPort, 443)) // as OLM has it: operator-lifecycle-manager v0.46.0 pkg/controller/install/certresources.go
	if w.TargetPort != nil {
		target = *w.TargetPort
	}
	for _, c := range d.Template.Spec.Containers {
		if slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
			return target.Type == intstr.String && p.Name == target.StrVal || target.Type == intstr.Int && p.ContainerPort == target.IntVal
		}) {
			return []string{c.Image}
		}
	}
	return podImages(d)
}
