package olmv0

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/operator-framework/api/crds"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// manifests is what OLM's chart (deploy/chart of operator-lifecycle-manager v0.46.0) renders for plain Kubernetes,
// without packageserver, metrics and the sample catalog, which an upgrade does not need. The charts since v0.28.0 render the same but for
// rights that were added, and the file system of the operators, which became read-only.
//
//go:embed manifests.yaml
var manifests []byte

// Installation is what an Install made on a cluster.
type Installation []client.Object

// parts are the release's definitions, and its other objects.
func (r Release) parts() (definitions []*apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured, err error) {
	if definitions, err = r.definitions(); err != nil {
		return nil, nil, fmt.Errorf("read the CustomResourceDefinitions of OLM %s: %w", r.Name(), err)
	}
	for _, d := range definitions {
		d.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		d.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	}
	text := bytes.ReplaceAll(manifests, []byte(Image), []byte(r.image()))
	if r.simulated {
		text = bytes.Replace(text, []byte("--util-image="), []byte("--util-image=simulated/"), 1)
	}
	objects, err = lifecycle.Decode(text)
	if err != nil {
		return nil, nil, fmt.Errorf("read OLM's manifests: %w", err)
	}
	return definitions, objects, nil
}

// definitions are the release's CustomResourceDefinitions.
func (r Release) definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if r.Name() == Version {
		return []*apiextensionsv1.CustomResourceDefinition{
			crds.CatalogSource(), crds.ClusterServiceVersion(), crds.InstallPlan(), crds.OLMConfig(),
			crds.OperatorCondition(), crds.OperatorGroup(), crds.Operator(), crds.Subscription(),
		}, nil
	}
	objects, err := lifecycle.Decode(r.CRDs)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, errors.New("there are none")
	}
	definitions := make([]*apiextensionsv1.CustomResourceDefinition, len(objects))
	for i, o := range objects {
		definitions[i] = &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, definitions[i]); err != nil {
			return nil, err
		}
	}
	return definitions, nil
}

// Install applies the definitions of a release of OLM and its two operators, and waits until both are ready. Applied to a
// cluster that has them already it changes nothing. What it made is returned also when it fails.
func Install(ctx context.Context, c *Client, release Release) (made Installation, err error) {
	if release.simulated, err = c.simulates(ctx); err != nil {
		return nil, err
	}
	definitions, objects, err := release.parts()
	if err != nil {
		return nil, err
	}
	for _, d := range definitions {
		if err := c.createMissing(ctx, d, &made); err != nil {
			return made, err
		}
	}
	for _, d := range definitions {
		if err := lifecycle.WaitEstablished(ctx, c, d.Name); err != nil {
			return made, err
		}
	}
	for _, o := range objects {
		if err := c.createMissing(ctx, o, &made); err != nil {
			return made, err
		}
	}
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		if err := lifecycle.WaitAvailable(ctx, c, Namespace, name); err != nil {
			return made, hint.With(err, "look at the logs of the component %s/%s", Namespace, name)
		}
	}
	return made, nil
}

// Remove deletes what an Install made, in the opposite order, and waits until all of it is gone.
func (c *Client) Remove(ctx context.Context, made Installation, limit time.Duration) error {
	for _, o := range slices.Backward(made) {
		o = o.DeepCopyObject().(client.Object)
		o.SetResourceVersion("")
		if err := c.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("remove %T %s: %w", o, client.ObjectKeyFromObject(o), err)
		}
	}
	var left []client.Object
	err := lifecycle.Poll(ctx, limit, func(ctx context.Context) (done bool, err error) {
		if left, err = c.existing(ctx, made); err != nil {
			return false, err
		}
		return len(left) == 0, c.dropFinalizers(ctx, left)
	})
	if err != nil && len(left) > 0 {
		return fmt.Errorf("wait until OLM is gone (%T %s): %w", left[0], client.ObjectKeyFromObject(left[0]), err)
	}
	if err != nil {
		return fmt.Errorf("wait until OLM is gone: %w", err)
	}
	// The roles of its own OperatorGroups it makes as long as it runs, and nobody owns them.
	for _, o := range made {
		if _, ok := o.(*unstructured.Unstructured); !ok || o.GetObjectKind().GroupVersionKind().Kind != "Namespace" {
			continue
		}
		of := client.MatchingLabels{OwnerLabel + ".namespace": o.GetName(), OwnerLabel + ".kind": "OperatorGroup"}
		if err := c.DeleteAllOf(ctx, &rbacv1.ClusterRole{}, of); err != nil {
			return fmt.Errorf("remove the roles of OperatorGroups in %s: %w", o.GetName(), err)
		}
	}
	return nil
}

// existing are those of objects that are still there, as they are now.
func (c *Client) existing(ctx context.Context, objects Installation) ([]client.Object, error) {
	var left []client.Object
	for _, o := range objects {
		now := o.DeepCopyObject().(client.Object)
		err := c.Get(ctx, client.ObjectKeyFromObject(o), now)
		switch {
		case err == nil:
			left = append(left, now)
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return nil, err
		}
	}
	return left, nil
}

// dropFinalizers lets OLM's own objects go once nothing but their definitions is left: a ClusterServiceVersion that OLM made as the
// last thing it did would hold its definition for ever.
func (c *Client) dropFinalizers(ctx context.Context, left []client.Object) error {
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, o := range left {
		d, ok := o.(*apiextensionsv1.CustomResourceDefinition)
		if !ok {
			return nil
		}
		definitions = append(definitions, d)
	}
	for _, d := range definitions {
		if err := lifecycle.DropFinalizers(ctx, c.WithWatch, d); err != nil {
			return err
		}
	}
	return nil
}

// Installed returns, in the order of Install, those of OLM's parts that a walk made, by its label; any walk if that is "".
func (c *Client) Installed(ctx context.Context, walk string) (Installation, error) {
	return c.installedWith(ctx, func(labels map[string]string) bool {
		of := labels[cluster.WalkLabel]
		return of != "" && (walk == "" || of == walk)
	})
}

// installedWith returns, in the order of Install, those of OLM's parts on the cluster whose labels are ours.
func (c *Client) installedWith(ctx context.Context, ours func(labels map[string]string) bool) (Installation, error) {
	definitions, objects, err := Release{}.parts()
	if err != nil {
		return nil, err
	}
	var all, made Installation
	for _, d := range definitions {
		all = append(all, d)
	}
	for _, o := range objects {
		all = append(all, o)
	}
	for _, o := range all {
		now := &metav1.PartialObjectMetadata{}
		now.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(o), now)
		if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("look for OLM's %s: %w", Describe(o), err)
		}
		if err == nil && ours(now.Labels) {
			made = append(made, o)
		}
	}
	return made, nil
}

func (c *Client) createMissing(ctx context.Context, o client.Object, made *Installation) error {
	labels := maps.Clone(o.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, c.labels())
	o.SetLabels(labels)
	// A CRD is served some moments after it is established, so its first object may be refused as of an unknown kind.
	return lifecycle.Poll(ctx, 30*time.Second, func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, o)
		switch {
		case err == nil:
			*made = append(*made, o)
			return true, nil
		case apierrors.IsAlreadyExists(err):
			return true, nil
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			return false, nil
		}
		return false, fmt.Errorf("create %s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(o), err)
	})
}
