package olm

import (
	"context"
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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ownerLabel names the ClusterServiceVersion that OLM made an object for; with the suffixes .namespace and .kind it says
// where that is (pkg/lib/ownerutil/util.go of operator-lifecycle-manager v0.46.0).
const ownerLabel = "olm.owner"

// Uninstall removes what subscribing to pkg in namespace brought: the Subscription, its ClusterServiceVersions and
// InstallPlans, what OLM made for them and the definitions crds, with every object of theirs. It waits until all of it
// is gone. Custom resources whose finalizers the operator serves have to be deleted before.
func (c *Client) Uninstall(ctx context.Context, namespace, pkg string, crds []string, limit time.Duration) error {
	subscription := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pkg}}
	if err := client.IgnoreNotFound(c.Delete(ctx, subscription)); err != nil {
		return fmt.Errorf("delete Subscription %s/%s: %w", namespace, pkg, err)
	}
	for _, o := range []client.Object{&v1alpha1.ClusterServiceVersion{}, &v1alpha1.InstallPlan{}} {
		if err := c.DeleteAllOf(ctx, o, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("delete what OLM installed in %s: %w", namespace, err)
		}
	}
	var left []string
	err := poll(ctx, limit, func(ctx context.Context) (bool, error) {
		var err error
		left, err = c.installed(ctx, namespace)
		return len(left) == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait until OLM has removed %s: %w", strings.Join(left, ", "), err)
	}
	for _, name := range crds {
		if err := c.removeDefinition(ctx, name, limit); err != nil {
			return err
		}
	}
	if err := c.DeleteAllOf(ctx, &operatorsv2.OperatorCondition{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("delete OperatorConditions in %s: %w", namespace, err)
	}
	return nil
}

// removeDefinition deletes a CustomResourceDefinition with all its objects. Conversion is switched off first, since the
// webhook is gone by now and without it the API server could not read what it has to delete.
func (c *Client) removeDefinition(ctx context.Context, name string, limit time.Duration) error {
	var d apiextensionsv1.CustomResourceDefinition
	err := poll(ctx, limit, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &d); err != nil {
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}
		if d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
			d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
			if err := c.Update(ctx, &d); err != nil && !apierrors.IsConflict(err) {
				return false, err
			}
			return false, nil
		}
		if d.DeletionTimestamp == nil {
			return false, client.IgnoreNotFound(c.Delete(ctx, &d))
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("remove CustomResourceDefinition %s: %w", name, err)
	}
	return nil
}

// installed names the ClusterServiceVersions in namespace and the deployments that OLM runs for them.
func (c *Client) installed(ctx context.Context, namespace string) ([]string, error) {
	all := func(metav1.Object) bool { return true }
	versions, err := c.names(ctx, &v1alpha1.ClusterServiceVersionList{}, all, client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}
	deployments, err := c.names(ctx, &appsv1.DeploymentList{}, all, client.InNamespace(namespace), client.HasLabels{ownerLabel})
	return append(versions, deployments...), err
}

// Residue names, sorted, what OLM made for a ClusterServiceVersion that namespace no longer holds. What names an owner is
// left to Kubernetes' garbage collector, which takes its time.
func (c *Client) Residue(ctx context.Context, namespace string) ([]string, error) {
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
		ownedFrom := client.MatchingLabels{ownerLabel + ".namespace": namespace, ownerLabel + ".kind": v1alpha1.ClusterServiceVersionKind}
		names, err := c.names(ctx, list, func(o metav1.Object) bool {
			owner := o.GetLabels()[ownerLabel]
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
	kind, err := apiutil.GVKForObject(list, Scheme)
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
