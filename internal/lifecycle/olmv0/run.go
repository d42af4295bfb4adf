package olmv0

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
)

// RunCatalog is what the CatalogSource of 'bundle run' is called.
const RunCatalog = "olmkit-run"

// Subscriptions lists those to pkg on the cluster; all if that is "".
func (c *Client) Subscriptions(ctx context.Context, pkg string) ([]v1alpha1.Subscription, error) {
	var list v1alpha1.SubscriptionList
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list Subscriptions: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(s v1alpha1.Subscription) bool { return s.Spec == nil || pkg != "" && s.Spec.Package != pkg }), nil
}

// Subscribed names the Subscriptions in namespace that are neither those of 'bundle run' of pkg nor made by OLM for what that
// depends on.
func (c *Client) Subscribed(ctx context.Context, namespace, pkg string) ([]string, error) {
	var list v1alpha1.SubscriptionList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("list Subscriptions in %s: %w", namespace, err)
	}
	var names []string
	for i, s := range list.Items {
		if s.Labels[cluster.RunLabel] != pkg && (s.Spec == nil || s.Spec.CatalogSource != RunCatalog) {
			names = append(names, Describe(&list.Items[i]))
		}
	}
	return names, nil
}

// ClusterServiceVersion returns the one called name in namespace, or nil if it is not there.
func (c *Client) ClusterServiceVersion(ctx context.Context, namespace, name string) (*v1alpha1.ClusterServiceVersion, error) {
	csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if name == "" {
		return nil, nil
	}
	err := c.Get(ctx, client.ObjectKeyFromObject(csv), csv)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", Describe(csv), err)
	}
	return csv, nil
}

// InstallState is how far the installation of a bundle is.
type InstallState struct {
	Phase      string // "InstallPlan Installing", "CSV Pending"; "" before
	Done       bool   // it is installed, and what it replaces is gone
	Failed     bool   // OLM will not go on
	Unresolved bool   // OLM finds nothing to install, as things are
	Unnamed    bool   // it is installed, and the Subscription does not say so: see Remind
}

// InstallState returns how far the installation of the bundle called name is, through s, which replaces from unless that is "".
func (c *Client) InstallState(ctx context.Context, s Subscription, name, from string) (InstallState, error) {
	var now v1alpha1.Subscription
	if err := c.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Package}, &now); err != nil {
		return InstallState{}, fmt.Errorf("read Subscription %s/%s: %w", s.Namespace, s.Package, err)
	}
	var plans v1alpha1.InstallPlanList
	if err := c.List(ctx, &plans, client.InNamespace(s.Namespace)); err != nil {
		return InstallState{}, fmt.Errorf("list InstallPlans in %s: %w", s.Namespace, err)
	}
	plan := PlanFor(plans.Items, name)
	if plan != nil && plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed {
		return InstallState{Phase: "InstallPlan Failed", Failed: true}, nil
	}
	csv, err := c.ClusterServiceVersion(ctx, s.Namespace, name)
	if err != nil {
		return InstallState{}, err
	}
	switch {
	case csv != nil && csv.Status.Phase != "":
		state := InstallState{Phase: "CSV " + string(csv.Status.Phase)}
		if csv.Status.Phase != v1alpha1.CSVPhaseSucceeded || now.Status.InstalledCSV != name {
			state.Unnamed = csv.Status.Phase == v1alpha1.CSVPhaseSucceeded
			return state, nil
		}
		before, err := c.ClusterServiceVersion(ctx, s.Namespace, from)
		state.Done = err == nil && before == nil
		return state, err
	case plan != nil:
		return InstallState{Phase: "InstallPlan " + cmp.Or(string(plan.Status.Phase), "created")}, nil
	}
	return InstallState{Unresolved: now.Status.GetCondition(v1alpha1.SubscriptionResolutionFailed).Status == corev1.ConditionTrue}, nil
}
