package olmv0

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Present names what of a package is on the cluster: its Subscriptions and the definitions crds. It also names what others
// have OLM do in the namespaces in which the package would be installed, as all that OLM did there is removed with it.
func (c *Client) Present(ctx context.Context, pkg string, crds []string, namespaces ...string) ([]string, error) {
	var there []string
	var subscriptions v1alpha1.SubscriptionList
	if err := c.List(ctx, &subscriptions); err != nil {
		return nil, fmt.Errorf("list Subscriptions: %w", err)
	}
	for _, s := range subscriptions.Items {
		if s.Spec != nil && s.Spec.Package == pkg || slices.Contains(namespaces, s.Namespace) {
			there = append(there, "Subscription/"+s.Namespace+"/"+s.Name)
		}
	}
	for _, namespace := range namespaces {
		all := func(metav1.Object) bool { return true }
		versions, err := c.names(ctx, &v1alpha1.ClusterServiceVersionList{}, all, client.InNamespace(namespace), notCopied)
		if err != nil {
			return nil, err
		}
		there = append(there, versions...)
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
