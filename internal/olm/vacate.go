package olm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/hint"
)

// Version says which OLM runs on the cluster, by the image of its olm-operator, whatever namespace that is in: a version,
// or the image's reference where that has no tag.
func (c *Client) Version(ctx context.Context) (string, error) {
	var deployments appsv1.DeploymentList
	if err := c.List(ctx, &deployments); err != nil {
		return "", fmt.Errorf("look for OLM: %w", err)
	}
	for _, d := range deployments.Items {
		if d.Name != "olm-operator" || len(d.Spec.Template.Spec.Containers) == 0 {
			continue
		}
		image := d.Spec.Template.Spec.Containers[0].Image
		if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") && !strings.Contains(image, "@") {
			return image[i+1:], nil
		}
		return image, nil
	}
	return "", hint.With(fmt.Errorf("OLM is not on the cluster: it has no deployment olm-operator"), "install it, or have it installed for the walk with --install-olm")
}

// Present names what of a package is on the cluster: its Subscriptions and the definitions crds.
func (c *Client) Present(ctx context.Context, pkg string, crds []string) ([]string, error) {
	var there []string
	var subscriptions v1alpha1.SubscriptionList
	if err := c.List(ctx, &subscriptions); err != nil {
		return nil, fmt.Errorf("list Subscriptions: %w", err)
	}
	for _, s := range subscriptions.Items {
		if s.Spec != nil && s.Spec.Package == pkg {
			there = append(there, "Subscription/"+s.Namespace+"/"+s.Name)
		}
	}
	for _, name := range crds {
		err := c.Get(ctx, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
		if err == nil {
			there = append(there, "CustomResourceDefinition/"+name)
		} else if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("look for CustomResourceDefinition %s: %w", name, err)
		}
	}
	return there, nil
}

// Unpublish makes OLM forget the catalog called name.
func (c *Client) Unpublish(ctx context.Context, namespace, name string) error {
	source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := client.IgnoreNotFound(c.Delete(ctx, source)); err != nil {
		return fmt.Errorf("remove CatalogSource %s/%s: %w", namespace, name, err)
	}
	return nil
}

// Vacate removes namespaces, in which pkg was subscribed to from catalog, and what OLM made for them outside of them, and
// waits until all is gone.
func (c *Client) Vacate(ctx context.Context, pkg, catalog string, namespaces []string, limit time.Duration) error {
	for _, name := range namespaces {
		if err := c.Unpublish(ctx, name, catalog); err != nil {
			return err
		}
		if err := c.DeleteAllOf(ctx, &operatorsv1.OperatorGroup{}, client.InNamespace(name)); err != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("remove the OperatorGroup in %s: %w", name, err)
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})); err != nil {
			return fmt.Errorf("delete namespace %s: %w", name, err)
		}
	}
	var left []string
	err := poll(ctx, limit, func(ctx context.Context) (bool, error) {
		left = nil
		for _, name := range namespaces {
			// OLM makes an Operator for every package that is subscribed to somewhere, and again as long as one of its
			// parts is there (pkg/controller/operators/operator_controller.go of operator-lifecycle-manager v0.46.0).
			operator := &operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: pkg + "." + name}}
			if err := c.Delete(ctx, operator); err == nil {
				left = append(left, "Operator/"+operator.Name)
			} else if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
				return false, err
			}
			err := c.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
			if err == nil {
				left = append(left, "Namespace/"+name)
			} else if !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		return len(left) == 0, nil
	})
	if err != nil {
		slices.Sort(left)
		return fmt.Errorf("wait until %s is gone: %w", strings.Join(left, ", "), err)
	}
	return nil
}
