package olmv0

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Subscription is a wish that OLM keeps a package up to date.
type Subscription struct {
	Namespace string
	Package   string // also the Subscription's name
	Channel   string
	Catalog   string // name of a CatalogSource in Namespace

	StartingCSV string            // bundle to begin with, the channel's head by default
	Approval    v1alpha1.Approval // of InstallPlans, automatic by default
}

// subscription follows p's channel.
func subscription(p lifecycle.Place) Subscription {
	return Subscription{Namespace: p.Namespace, Package: p.Package, Channel: p.Channel, Catalog: p.Catalog}
}

// Catalog returns one that holds nothing but the bundles called names, and the edges among them: OLM chooses among all that it is
// offered.
func (c *Client) Catalog(ctx context.Context, at lifecycle.Place, p *catalog.Package, was, channel string, names ...string) ([]byte, error) {
	var fbc []byte
	var err error
	if was != "" {
		fbc, err = catalog.TrimSwitch(p, was, channel, names...)
	} else {
		fbc, err = catalog.Trim(p, channel, names...)
	}
	if err != nil {
		return nil, err
	}
	return c.Unpack(ctx, at.Namespace, fbc)
}

// Publish makes OLM read the place's catalog at the given address. OLM opens its connection at once when the address
// changes; a server that is not up yet costs it a back-off of 20 s and more, so publish what is being served already.
func (c *Client) Publish(ctx context.Context, p lifecycle.Place, at cluster.CatalogAddress) error {
	namespace, name := p.Namespace, p.Catalog
	source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: c.labels(), Annotations: c.annotations()}}
	err := c.Get(ctx, client.ObjectKeyFromObject(source), source)
	exists := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read CatalogSource %s: %w", name, err)
	}
	before := source.DeepCopy()
	source.Spec.SourceType = v1alpha1.SourceTypeGrpc
	source.Spec.Address = at.Address
	if exists {
		err = c.Patch(ctx, source, client.MergeFrom(before))
	} else {
		err = c.Create(ctx, source)
	}
	if err != nil {
		return fmt.Errorf("publish catalog %s at %s: %w", name, at.Address, err)
	}
	return nil
}

// Connected reports whether OLM reads source where it stands now, and not where it stood before.
func Connected(source *v1alpha1.CatalogSource) bool {
	state := source.Status.GRPCConnectionState
	return state != nil && state.LastObservedState == "READY" && (source.Spec.Address == "" || state.Address == source.Spec.Address)
}

// WaitPublished waits until OLM reads the catalog at its current address.
func (c *Client) WaitPublished(ctx context.Context, p lifecycle.Place, limit time.Duration) error {
	var source v1alpha1.CatalogSource
	err := lifecycle.Poll(ctx, limit, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Catalog}, &source); err != nil {
			return false, err
		}
		return Connected(&source), nil
	})
	if err != nil {
		return fmt.Errorf("wait until OLM reads catalog %s at %s: %w", p.Catalog, source.Spec.Address, err)
	}
	return nil
}

// EnsureNamespace makes sure that a namespace exists.
func (c *Client) EnsureNamespace(ctx context.Context, name string) error {
	err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.labels(), Annotations: c.annotations()}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// Prepare makes sure that the place's namespaces exist and hold an OperatorGroup for its mode.
func (c *Client) Prepare(ctx context.Context, p lifecycle.Place) error {
	for _, name := range append([]string{p.Namespace}, p.Targets...) {
		if err := c.EnsureNamespace(ctx, name); err != nil {
			return err
		}
	}
	return c.Group(ctx, p.Namespace, p.Mode, p.Targets...)
}

// Group makes sure that namespace holds one OperatorGroup, for mode: all namespaces, namespace itself, or targets. One that
// this program made for another mode is changed; it is an error if somebody else's is for others.
func (c *Client) Group(ctx context.Context, namespace string, mode lifecycle.Mode, targets ...string) error {
	wanted := targets
	if mode == lifecycle.OwnNamespace {
		wanted = []string{namespace}
	}
	var groups operatorsv1.OperatorGroupList
	if err := c.List(ctx, &groups, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list OperatorGroups in %s: %w", namespace, err)
	}
	for i := range groups.Items {
		if err := c.regroup(ctx, &groups.Items[i], wanted); err != nil {
			return err
		}
	}
	if len(groups.Items) > 0 {
		return nil
	}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace, Labels: c.labels()}}
	group.Spec.TargetNamespaces = wanted
	if err := c.Create(ctx, group); err != nil {
		return fmt.Errorf("create OperatorGroup %s/%s: %w", namespace, group.Name, err)
	}
	return nil
}

// regroup has group list the wanted namespaces.
func (c *Client) regroup(ctx context.Context, group *operatorsv1.OperatorGroup, wanted []string) error {
	listed := slices.Sorted(slices.Values(group.Spec.TargetNamespaces))
	if group.Spec.Selector == nil && slices.Equal(listed, slices.Sorted(slices.Values(wanted))) {
		return nil
	}
	if group.Labels[cluster.ManagedByLabel] != cluster.ManagedBy {
		return hint.With(fmt.Errorf("OperatorGroup %s/%s is for %s, and the operator is to serve %s",
			group.Namespace, group.Name, describeTargets(group.Spec.Selector, listed), describeTargets(nil, wanted)),
			"delete this OperatorGroup, unless operators rely on it, or use a cluster where the namespace %s is free", group.Namespace)
	}
	before := group.DeepCopy()
	group.Spec.TargetNamespaces = wanted
	if err := c.Patch(ctx, group, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change OperatorGroup %s/%s: %w", group.Namespace, group.Name, err)
	}
	return nil
}

func describeTargets(selector *metav1.LabelSelector, namespaces []string) string {
	switch {
	case selector != nil:
		return "namespaces with " + metav1.FormatLabelSelector(selector)
	case len(namespaces) == 0:
		return "all namespaces"
	}
	return "the namespaces " + strings.Join(namespaces, ", ")
}

// Request subscribes to the package's channel, unless somebody did: OLM goes on from there to what the catalog offers.
func (c *Client) Request(ctx context.Context, p lifecycle.Place, _ string) error {
	var s v1alpha1.Subscription
	err := c.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Package}, &s)
	if apierrors.IsNotFound(err) || err == nil && s.Spec.Channel != p.Channel {
		return c.Subscribe(ctx, subscription(p))
	}
	return err
}

// Subscribe creates the Subscription s, or moves an existing one of its name to its channel.
func (c *Client) Subscribe(ctx context.Context, s Subscription) error {
	o := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Package, Labels: c.labels()}}
	spec := &v1alpha1.SubscriptionSpec{
		CatalogSource: s.Catalog, CatalogSourceNamespace: s.Namespace,
		Package: s.Package, Channel: s.Channel, StartingCSV: s.StartingCSV, InstallPlanApproval: cmp.Or(s.Approval, v1alpha1.ApprovalAutomatic),
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
