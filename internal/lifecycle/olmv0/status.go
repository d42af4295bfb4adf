package olmv0

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// operators are the deployments that OLM consists of.
var operators = []string{"catalog-operator", "olm-operator"}

// Status looks at OLM's definitions, operators and catalogs, and, if Install made OLM, at all that it made.
func (c *Client) Status(ctx context.Context) (lifecycle.Status, error) {
	s := lifecycle.Status{Parts: []lifecycle.Part{}}
	definitions, objects, err := Release{}.parts()
	if err != nil {
		return s, err
	}
	there := 0
	for _, d := range definitions {
		p, err := lifecycle.DefinitionPart(ctx, c, d.Name)
		if err != nil {
			return s, err
		}
		if p.Why != lifecycle.Missing {
			there++
		}
		s.Parts = append(s.Parts, p)
	}
	var deployments appsv1.DeploymentList
	if err := c.List(ctx, &deployments); err != nil {
		return s, fmt.Errorf("look for OLM: %w", err)
	}
	at := slices.IndexFunc(deployments.Items, func(d appsv1.Deployment) bool { return slices.Contains(operators, d.Name) })
	if there == 0 && at < 0 {
		return lifecycle.Status{Parts: []lifecycle.Part{}}, nil
	}
	s.Installed, s.Namespace = true, Namespace
	own := false
	if at >= 0 {
		s.Namespace = deployments.Items[at].Namespace
		own = installedHere(deployments.Items[at].Labels)
		s.Version, _ = c.Version(ctx) // without it olm-operator is missing, which is told
	}
	for _, add := range []func() ([]lifecycle.Part, error){
		func() ([]lifecycle.Part, error) { return c.operatorParts(ctx, s.Namespace, deployments.Items) },
		func() ([]lifecycle.Part, error) {
			if !own {
				return nil, nil
			}
			return c.missingOf(ctx, objects)
		},
		func() ([]lifecycle.Part, error) { return c.catalogParts(ctx) },
	} {
		more, err := add()
		if err != nil {
			return s, err
		}
		s.Parts = append(s.Parts, more...)
	}
	slices.SortFunc(s.Parts, func(a, b lifecycle.Part) int { return strings.Compare(a.Object, b.Object) })
	return s, nil
}

// operatorParts says how OLM's operators in namespace are.
func (c *Client) operatorParts(ctx context.Context, namespace string, deployments []appsv1.Deployment) ([]lifecycle.Part, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list pods in %s: %w", namespace, err)
	}
	var all []lifecycle.Part
	for _, name := range operators {
		p := lifecycle.Part{Object: "Deployment/" + namespace + "/" + name, Why: lifecycle.Missing}
		for i, d := range deployments {
			if d.Name == name && d.Namespace == namespace {
				p.Why = lifecycle.ProgramTrouble(&deployments[i], pods.Items)
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// missingOf are those of objects that the cluster does not have; the deployments among them are told by operatorParts.
func (c *Client) missingOf(ctx context.Context, objects []*unstructured.Unstructured) ([]lifecycle.Part, error) {
	var all []lifecycle.Part
	for _, o := range objects {
		if o.GetObjectKind().GroupVersionKind().Kind == "Deployment" {
			continue
		}
		now := &metav1.PartialObjectMetadata{}
		now.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(o), now)
		p := lifecycle.Part{Object: Describe(o)}
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			p.Why = lifecycle.Missing
		case err != nil:
			return nil, fmt.Errorf("look for OLM's %s: %w", p.Object, err)
		case now.DeletionTimestamp != nil:
			p.Why = "it is being deleted"
		}
		all = append(all, p)
	}
	return all, nil
}

// catalogParts says which catalogs OLM can't read.
func (c *Client) catalogParts(ctx context.Context) ([]lifecycle.Part, error) {
	var sources v1alpha1.CatalogSourceList
	if err := c.List(ctx, &sources); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil // without the definition, which is told
		}
		return nil, fmt.Errorf("list CatalogSources: %w", err)
	}
	var all []lifecycle.Part
	for i := range sources.Items {
		source := &sources.Items[i]
		p := lifecycle.Part{Object: Describe(source)}
		if !Connected(source) {
			p.Why = "OLM does not read it: " + connectionOf(source)
		}
		all = append(all, p)
	}
	return all, nil
}

// installedHere tells whether labels are those of what Install made for no walk.
func installedHere(labels map[string]string) bool {
	return labels[cluster.ManagedByLabel] == cluster.ManagedBy && labels[cluster.WalkLabel] == ""
}

// InstallKept installs OLM to stay, or what is missing of it where an earlier call installed it. A cluster that has another
// OLM it refuses. What it made is returned also when it fails.
func InstallKept(ctx context.Context, c *Client, release Release) (Installation, error) {
	s, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	if s.Installed {
		own, err := c.InstalledKept(ctx)
		if err != nil {
			return nil, err
		}
		if len(own) == 0 {
			return nil, hint.With(fmt.Errorf("OLM %s is on the cluster already, in namespace %s, and olmkit did not install it", orNone(s.Version), s.Namespace),
				"use it as it is; 'olmkit olm status' tells how it is")
		}
		if s.Version != "" && s.Version != release.Name() {
			return nil, hint.With(fmt.Errorf("OLM %s is on the cluster, and this olmkit installs %s", s.Version, release.Name()), "run 'olmkit olm uninstall' first")
		}
	}
	return Install(ctx, c, release)
}

// InstalledKept returns, in the order of Install, those of OLM's parts on the cluster that InstallKept made.
func (c *Client) InstalledKept(ctx context.Context) (Installation, error) {
	return c.installedWith(ctx, installedHere)
}

// Users names what somebody has OLM do: Subscriptions, ClusterServiceVersions, CatalogSources, and OperatorGroups that are not
// OLM's own.
func (c *Client) Users(ctx context.Context) ([]string, error) {
	var users []string
	own := []string{"OperatorGroup/" + OperatorsNamespace + "/global-operators", "OperatorGroup/" + Namespace + "/olm-operators"}
	for _, list := range []client.ObjectList{&v1alpha1.SubscriptionList{}, &v1alpha1.ClusterServiceVersionList{}, &v1alpha1.CatalogSourceList{}, &operatorsv1.OperatorGroupList{}} {
		all := func(metav1.Object) bool { return true }
		names, err := c.names(ctx, list, all, notCopied)
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return nil, err
		}
		users = append(users, names...)
	}
	return slices.DeleteFunc(users, func(name string) bool { return slices.Contains(own, name) }), nil
}
