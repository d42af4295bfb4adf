package olm

import (
	"context"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
)

// Subscription is a wish that OLM keeps a package up to date.
type Subscription struct {
	Namespace string
	Package   string // also the Subscription's name
	Channel   string
	Catalog   string // name of a CatalogSource in Namespace olm
}

// Publish makes OLM read the catalog called name at the given address. OLM opens its connection at once when the address
// changes; a server that is not up yet costs it a back-off of 20 s and more, so publish what is being served already.
func (c *Client) Publish(ctx context.Context, name string, at cluster.CatalogAddress) error {
	source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
	err := c.Get(ctx, client.ObjectKeyFromObject(source), source)
	exists := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read CatalogSource %s: %w", name, err)
	}
	before := source.DeepCopy()
	source.Spec.SourceType = v1alpha1.SourceTypeGrpc
	source.Spec.Address = at.Address
	source.Spec.Image = at.Image
	if at.Image != "" {
		source.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted}
	}
	if exists {
		err = c.Patch(ctx, source, client.MergeFrom(before))
	} else {
		err = c.Create(ctx, source)
	}
	if err != nil {
		return fmt.Errorf("publish catalog %s at %s%s: %w", name, at.Address, at.Image, err)
	}
	return nil
}

// Connected reports whether OLM reads source where it stands now, and not where it stood before.
func Connected(source *v1alpha1.CatalogSource) bool {
	state := source.Status.GRPCConnectionState
	return state != nil && state.LastObservedState == "READY" && (source.Spec.Address == "" || state.Address == source.Spec.Address)
}

// WaitConnected waits until OLM reads the catalog called name at its current address.
func (c *Client) WaitConnected(ctx context.Context, name string, limit time.Duration) error {
	var source v1alpha1.CatalogSource
	err := poll(ctx, limit, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: name}, &source); err != nil {
			return false, err
		}
		return Connected(&source), nil
	})
	if err != nil {
		return fmt.Errorf("wait until OLM reads catalog %s at %s%s: %w", name, source.Spec.Address, source.Spec.Image, err)
	}
	return nil
}

// Group makes sure that namespace exists and holds one OperatorGroup, for mode: all namespaces, namespace itself, or
// target.
func (c *Client) Group(ctx context.Context, namespace string, mode Mode, target string) error {
	for _, n := range []string{namespace, target} {
		if n == "" {
			continue
		}
		err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", n, err)
		}
	}
	var groups operatorsv1.OperatorGroupList
	if err := c.List(ctx, &groups, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list OperatorGroups in %s: %w", namespace, err)
	}
	if len(groups.Items) > 0 {
		return nil
	}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace}}
	switch mode {
	case v1alpha1.InstallModeTypeOwnNamespace:
		group.Spec.TargetNamespaces = []string{namespace}
	case v1alpha1.InstallModeTypeSingleNamespace:
		group.Spec.TargetNamespaces = []string{target}
	case v1alpha1.InstallModeTypeMultiNamespace:
		group.Spec.TargetNamespaces = []string{namespace, target}
	}
	if err := c.Create(ctx, group); err != nil {
		return fmt.Errorf("create OperatorGroup %s/%s: %w", namespace, group.Name, err)
	}
	return nil
}

// Subscribe creates the Subscription s, with automatic approval, or moves an existing one of its name to its channel.
func (c *Client) Subscribe(ctx context.Context, s Subscription) error {
	o := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Package}}
	spec := &v1alpha1.SubscriptionSpec{
		CatalogSource: s.Catalog, CatalogSourceNamespace: Namespace,
		Package: s.Package, Channel: s.Channel, InstallPlanApproval: v1alpha1.ApprovalAutomatic,
	}
	err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
	switch {
	case apierrors.IsNotFound(err):
		o.Spec = spec
		err = c.Create(ctx, o)
	case err == nil:
		before := o.DeepCopy()
		o.Spec = spec
		err = c.Patch(ctx, o, client.MergeFrom(before))
	}
	if err != nil {
		return fmt.Errorf("subscribe %s to package %s, channel %s: %w", s.Namespace, s.Package, s.Channel, err)
	}
	return nil
}
