package diagnosis

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
)

// StateV1 is what of a cluster bears on its ClusterExtensions.
type StateV1 struct {
	Now         time.Time
	OLM         lifecycle.Status
	Extensions  []olmv1.ClusterExtension
	Catalogs    []olmv1.ClusterCatalog
	Stores      map[string]string   // of CRDs that are in question, by name, the version in which the CRD stores objects
	Pods        []corev1.Pod        // of namespaces into which ClusterExtensions install
	Deployments []appsv1.Deployment // that OLM v1 made for them
}

// Extension is where a ClusterExtension stands.
type Extension struct {
	Extension      string             `json:"extension"`
	Package        string             `json:"package"`
	Version        string             `json:"version,omitempty"`  // the range that is wanted; "" for any
	Channels       []string           `json:"channels,omitempty"` // none for all of the package's
	Namespace      string             `json:"namespace"`
	ServiceAccount string             `json:"serviceAccount,omitempty"`
	Catalogs       []string           `json:"catalogs"` // that OLM v1 chooses from
	Installed      string             `json:"installed,omitempty"`
	Next           string             `json:"next,omitempty"` // what OLM v1 goes on to, if it says so
	State          string             `json:"state"`
	Conditions     []metav1.Condition `json:"conditions"` // as the ClusterExtension has them
	Deprecated     string             `json:"deprecated,omitempty"`
	Causes         []Cause            `json:"causes,omitempty"` // why it does not go on, what to mend first at the beginning
}

// ReadV1 reads what bears on the ClusterExtensions of the cluster that c reaches, or nil if the cluster has no OLM v1. It lists no
// Secrets and no custom resources of operators.
func ReadV1(ctx context.Context, c *olmv1.Client) (*StateV1, error) {
	status, err := c.Status(ctx)
	if err != nil || !status.Installed {
		return nil, err
	}
	s := &StateV1{Now: time.Now(), OLM: status, Stores: map[string]string{}}
	var extensions olmv1.ClusterExtensionList
	var catalogs olmv1.ClusterCatalogList
	for _, list := range []client.ObjectList{&extensions, &catalogs} {
		if err := c.List(ctx, list); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	s.Extensions, s.Catalogs = extensions.Items, catalogs.Items
	read := map[string]bool{}
	for _, x := range s.Extensions {
		if err := s.readDefinition(ctx, c, definitionIn(x.Refused())); err != nil {
			return nil, err
		}
		namespace := client.InNamespace(x.Spec.Namespace)
		var deployments appsv1.DeploymentList
		if err := c.List(ctx, &deployments, namespace, olmv1.MadeFor(x.Name)); err != nil {
			return nil, fmt.Errorf("list Deployments in %s: %w", x.Spec.Namespace, err)
		}
		s.Deployments = append(s.Deployments, deployments.Items...)
		if read[x.Spec.Namespace] {
			continue
		}
		read[x.Spec.Namespace] = true
		var pods corev1.PodList
		if err := c.List(ctx, &pods, namespace); err != nil {
			return nil, fmt.Errorf("list Pods in %s: %w", x.Spec.Namespace, err)
		}
		s.Pods = append(s.Pods, pods.Items...)
	}
	return s, nil
}

// readDefinition reads in which version the CRD called name, unless that is "", stores objects.
func (s *StateV1) readDefinition(ctx context.Context, c client.Reader, name string) error {
	if name == "" {
		return nil
	}
	var d apiextensionsv1.CustomResourceDefinition
	if err := c.Get(ctx, client.ObjectKey{Name: name}, &d); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
	}
	s.Stores[name] = definition.StorageVersion(&d)
	return nil
}

// DiagnoseV1 says where the ClusterExtensions of s stand, to pkg only unless that is "". Without OLM v1, s is nil.
func DiagnoseV1(s *StateV1, pkg string) []Extension {
	if s == nil {
		return nil
	}
	var all []Extension
	for i := range s.Extensions {
		x := &s.Extensions[i]
		if x.Spec.Source.Catalog != nil && (pkg == "" || x.Spec.Source.Catalog.PackageName == pkg) {
			all = append(all, s.diagnose(x))
		}
	}
	slices.SortFunc(all, func(a, b Extension) int { return strings.Compare(a.Extension, b.Extension) })
	return all
}

func (s *StateV1) diagnose(x *olmv1.ClusterExtension) Extension {
	wanted := x.Spec.Source.Catalog
	e := Extension{
		Extension: x.Name, Package: wanted.PackageName, Version: wanted.Version, Channels: wanted.Channels,
		Namespace: x.Spec.Namespace, ServiceAccount: x.Spec.ServiceAccount.Name, Catalogs: []string{},
		Next: resolvedIn(x.Refused()), State: Upgrading, Conditions: x.Status.Conditions, Deprecated: x.Deprecation(),
	}
	if x.Status.Install != nil {
		e.Installed = x.Status.Install.Bundle.Name
	}
	for _, c := range s.selected(x) {
		e.Catalogs = append(e.Catalogs, c.Name)
	}
	for _, find := range extensionRules {
		e.Causes = append(e.Causes, find(s, x)...)
	}
	switch {
	case len(e.Causes) > 0:
		e.State = Stuck
	case x.Settled() && x.DeletionTimestamp == nil && !slices.ContainsFunc(s.deploymentsOf(x), rollingOut):
		e.State = UpToDate
	}
	return e
}

// resolved is how OLM v1 names the bundle that it goes on to (wrapErrorWithResolutionInfo in
// internal/operator-controller/controllers/clusterextension_controller.go of operator-controller v1.10.0). A name that the catalog
// made up to be more than that is left out: it would stand in commands to copy.
var resolved = regexp.MustCompile(`^error for resolved bundle "([a-z0-9][-a-z0-9.]*)"`)

// resolvedIn is the bundle that a refusal names, or "".
func resolvedIn(said string) string {
	if found := resolved.FindStringSubmatch(said); found != nil {
		return found[1]
	}
	return ""
}

// selected are the catalogs that x chooses from.
func (s *StateV1) selected(x *olmv1.ClusterExtension) []*olmv1.ClusterCatalog {
	var all []*olmv1.ClusterCatalog
	for i := range s.Catalogs {
		if x.Selects(&s.Catalogs[i]) {
			all = append(all, &s.Catalogs[i])
		}
	}
	return all
}

// deploymentsOf are those that OLM v1 made for x.
func (s *StateV1) deploymentsOf(x *olmv1.ClusterExtension) []*appsv1.Deployment {
	of := labels.SelectorFromSet(labels.Set(olmv1.MadeFor(x.Name)))
	var all []*appsv1.Deployment
	for i := range s.Deployments {
		d := &s.Deployments[i]
		if d.Namespace == x.Spec.Namespace && of.Matches(labels.Set(d.Labels)) {
			all = append(all, d)
		}
	}
	return all
}

// rollingOut reports whether not all pods of d run what it says now.
func rollingOut(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration != d.Generation || d.Status.UnavailableReplicas > 0 || d.Status.UpdatedReplicas < d.Status.Replicas
}
