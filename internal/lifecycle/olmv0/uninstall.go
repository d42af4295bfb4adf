package olmv0

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// OwnerLabel names the ClusterServiceVersion that OLM made an object for; with the suffixes .namespace and .kind it says
// where that is (pkg/lib/ownerutil/util.go of operator-lifecycle-manager v0.46.0).
const (
	OwnerLabel   = "olm.owner"
	ManagedLabel = "olm.managed" // whatever OLM made
)

// Uninstall removes what subscribing to the package brought: the Subscription, its ClusterServiceVersions and InstallPlans, what
// OLM made for them, the definitions crds, with every object of theirs, and the catalog. It waits until all of it
// is gone, and returns DeletionTimeoutError if something stays for longer than limit. Custom resources whose finalizers the operator
// serves have to be deleted before: finalizers that are left then nobody serves any more, so they are taken away.
func (c *Client) Uninstall(ctx context.Context, p lifecycle.Place, crds []string, limit time.Duration) error {
	if err := c.DeleteSubscription(ctx, p.Namespace, p.Package, limit); err != nil {
		return err
	}
	for _, name := range crds {
		if err := lifecycle.RemoveDefinition(ctx, c.WithWatch, name, limit, nil); err != nil {
			return err
		}
	}
	if err := c.DeleteAllOf(ctx, &operatorsv2.OperatorCondition{}, client.InNamespace(p.Namespace)); err != nil {
		return fmt.Errorf("delete OperatorConditions in %s: %w", p.Namespace, err)
	}
	source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Catalog}}
	if err := client.IgnoreNotFound(c.Delete(ctx, source)); err != nil {
		return fmt.Errorf("remove CatalogSource %s/%s: %w", p.Namespace, p.Catalog, err)
	}
	return nil
}

// DeleteSubscription removes what subscribing to pkg in namespace brought, but for the definitions and their objects, and waits until
// it is gone. It returns DeletionTimeoutError if something stays for longer than limit.
func (c *Client) DeleteSubscription(ctx context.Context, namespace, pkg string, limit time.Duration) error {
	subscription := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pkg}}
	if err := client.IgnoreNotFound(c.Delete(ctx, subscription)); err != nil {
		return fmt.Errorf("delete Subscription %s/%s: %w", namespace, pkg, err)
	}
	remove := func(ctx context.Context) error {
		for _, o := range []client.Object{&v1alpha1.InstallPlan{}, &v1alpha1.ClusterServiceVersion{}} {
			if err := c.DeleteAllOf(ctx, o, client.InNamespace(namespace), notCopied); err != nil {
				return fmt.Errorf("delete what OLM installed in %s: %w", namespace, err)
			}
		}
		return nil
	}
	if err := remove(ctx); err != nil {
		return err
	}
	var left []string
	err := lifecycle.Poll(ctx, limit, func(ctx context.Context) (bool, error) {
		found, err := c.installed(ctx, namespace)
		if err != nil {
			return false, err
		}
		if left = found; len(left) == 0 {
			return true, nil
		}
		return false, remove(ctx) // an InstallPlan that was at work when it was deleted makes its objects once more
	})
	if errors.Is(err, lifecycle.ErrTimeout) {
		return lifecycle.DeletionTimeoutError{What: left, After: limit}
	}
	return err
}

// notCopied leaves out the ClusterServiceVersions that OLM copies into each namespace that an operator of another one serves.
var notCopied = client.MatchingLabelsSelector{Selector: func() labels.Selector {
	r, err := labels.NewRequirement(v1alpha1.CopiedLabelKey, selection.DoesNotExist, nil)
	utilruntime.Must(err)
	return labels.NewSelector().Add(*r)
}()}

// installed names the ClusterServiceVersions in namespace and the deployments that OLM runs for them.
func (c *Client) installed(ctx context.Context, namespace string) ([]string, error) {
	all := func(metav1.Object) bool { return true }
	versions, err := c.names(ctx, &v1alpha1.ClusterServiceVersionList{}, all, client.InNamespace(namespace), notCopied)
	if err != nil {
		return nil, err
	}
	deployments, err := c.names(ctx, &appsv1.DeploymentList{}, all, client.InNamespace(namespace), client.HasLabels{OwnerLabel})
	return append(versions, deployments...), err
}

// Leftovers names, sorted, what OLM made for a ClusterServiceVersion that the place's namespace no longer holds. What names an owner is
// left to Kubernetes' garbage collector, which takes its time.
func (c *Client) Leftovers(ctx context.Context, p lifecycle.Place) ([]string, error) {
	namespace := p.Namespace
	var versions v1alpha1.ClusterServiceVersionList
	if err := c.List(ctx, &versions, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list ClusterServiceVersions in %s: %w", namespace, err)
	}
	var left []string
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
		&admissionregistrationv1.ValidatingWebhookConfigurationList{}, &admissionregistrationv1.MutatingWebhookConfigurationList{},
	} {
		ownedFrom := client.MatchingLabels{OwnerLabel + ".namespace": namespace, OwnerLabel + ".kind": v1alpha1.ClusterServiceVersionKind}
		names, err := c.names(ctx, list, func(o metav1.Object) bool {
			owner := o.GetLabels()[OwnerLabel]
			return len(o.GetOwnerReferences()) == 0 && !slices.ContainsFunc(versions.Items, func(v v1alpha1.ClusterServiceVersion) bool { return v.Name == owner })
		}, ownedFrom)
		if err != nil {
			return nil, err
		}
		left = append(left, names...)
	}
	slices.Sort(left)
	return left, nil
}

// names lists into list and returns Kind/namespace/name of the objects that keep wants.
func (c *Client) names(ctx context.Context, list client.ObjectList, keep func(metav1.Object) bool, options ...client.ListOption) ([]string, error) {
	kind, err := apiutil.GVKForObject(list, Scheme())
	if err != nil {
		return nil, err
	}
	if err := c.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
	}
	var names []string
	err = meta.EachListItem(list, func(o runtime.Object) error {
		m, err := meta.Accessor(o)
		if err == nil && keep(m) {
			names = append(names, strings.TrimSuffix(kind.Kind, "List")+"/"+strings.TrimPrefix(m.GetNamespace()+"/"+m.GetName(), "/"))
		}
		return err
	})
	return names, err
}

// Orphans are the objects outside of namespace that OLM made for operators there and does not remove with them: those of
// a bundle's objects shipped (each Kind/name) that are of the cluster's scope, and the right to read how the API server
// authenticates, which every operator with webhooks gets (operator-lifecycle-manager v0.46.0,
// pkg/controller/install/webhook.go). No label says whose they are.
func (c *Client) Orphans(ctx context.Context, namespace string, shipped []string) ([]client.Object, error) {
	var found []client.Object
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &schedulingv1.PriorityClassList{}} {
		if err := c.List(ctx, list, client.MatchingLabels{ManagedLabel: "true"}); err != nil {
			return nil, fmt.Errorf("list what OLM manages: %w", err)
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			if object, ok := o.(client.Object); ok && slices.Contains(shipped, Describe(object)) {
				found = append(found, object)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	var bindings rbacv1.RoleBindingList
	if err := c.List(ctx, &bindings, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{ManagedLabel: "true"}); err != nil {
		return nil, fmt.Errorf("list RoleBindings in %s: %w", metav1.NamespaceSystem, err)
	}
	for i, binding := range bindings.Items {
		foreign := slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Namespace != namespace })
		if len(binding.Subjects) > 0 && !foreign {
			found = append(found, &bindings.Items[i])
		}
	}
	return found, nil
}

// DeleteOrphans removes the Orphans of the place, and names them.
func (c *Client) DeleteOrphans(ctx context.Context, p lifecycle.Place, shipped []string) ([]string, error) {
	orphans, err := c.Orphans(ctx, p.Namespace, shipped)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range orphans {
		names = append(names, Describe(o))
		if err := c.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			return names, fmt.Errorf("remove %s, which OLM left: %w", Describe(o), err)
		}
	}
	return names, nil
}

// Describe names an object as findings do: Kind/namespace/name.
func Describe(o client.Object) string {
	kind := "object"
	if known, err := apiutil.GVKForObject(o, Scheme()); err == nil {
		kind = known.Kind
	}
	return kind + "/" + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}
