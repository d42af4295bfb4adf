package olmv0

import (
	"context"
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// SetApproval has the Subscription's further InstallPlans wait for an approval, or not.
func (c *Client) SetApproval(ctx context.Context, s Subscription, approval v1alpha1.Approval) error {
	var o v1alpha1.Subscription
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Package}, &o); err != nil {
			return err
		}
		o.Spec.InstallPlanApproval = approval
		return c.Update(ctx, &o)
	})
	if err != nil {
		return fmt.Errorf("set the approval of Subscription %s/%s to %s: %w", s.Namespace, s.Package, approval, err)
	}
	return nil
}

// Approve lets the InstallPlan go on that installs the bundle called name, and says whether there is one that may. OLM makes
// a plan first and then writes its status, with the steps: whoever approves in between has it make another plan (createInstallPlan
// in pkg/controller/operators/catalog/operator.go of operator-lifecycle-manager v0.46.0).
func (c *Client) Approve(ctx context.Context, namespace, name string) (found bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var plans v1alpha1.InstallPlanList
		if err := c.List(ctx, &plans, client.InNamespace(namespace)); err != nil {
			return err
		}
		plan := PlanFor(plans.Items, name)
		if found = plan != nil && plan.Status.Phase != v1alpha1.InstallPlanPhaseNone; !found || plan.Spec.Approved {
			return nil
		}
		plan.Spec.Approved = true
		return c.Update(ctx, plan)
	})
	if err != nil {
		return found, fmt.Errorf("approve the InstallPlan for %s: %w", name, err)
	}
	return found, nil
}

// SetUpgradeable overrides what the operator called name says of whether it may be replaced now. OLM makes the
// OperatorCondition with the ClusterServiceVersion and calls it the same.
func (c *Client) SetUpgradeable(ctx context.Context, namespace, name string, upgradeable bool) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var o operatorsv2.OperatorCondition
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &o); err != nil {
			return err
		}
		o.Spec.Overrides = slices.DeleteFunc(o.Spec.Overrides, func(c metav1.Condition) bool { return c.Type == operatorsv2.Upgradeable })
		if !upgradeable {
			meta.SetStatusCondition(&o.Spec.Overrides, metav1.Condition{
				Type: operatorsv2.Upgradeable, Status: metav1.ConditionFalse, Reason: "Fault", Message: "olmkit holds the upgrade up for a while",
			})
		}
		return c.Update(ctx, &o)
	})
	if upgradeable {
		err = client.IgnoreNotFound(err) // the version that was held up may have replaced this one already
	}
	if err != nil {
		return fmt.Errorf("say whether %s may be upgraded: %w", name, err)
	}
	return nil
}

// Certificates lists the Secrets with the certificates that OLM made for webhooks.
func (c *Client) Certificates(ctx context.Context, p lifecycle.Place) ([]corev1.Secret, error) {
	var secrets corev1.SecretList
	if err := c.List(ctx, &secrets, client.InNamespace(p.Namespace), client.MatchingLabels{ManagedLabel: "true"}); err != nil {
		return nil, fmt.Errorf("list Secrets in %s: %w", p.Namespace, err)
	}
	return slices.DeleteFunc(secrets.Items, func(s corev1.Secret) bool { return s.Type != corev1.SecretTypeTLS }), nil
}

// AuthorityKey is OLM's own name for it (pkg/controller/install/certresources.go of operator-lifecycle-manager v0.46.0).
func (c *Client) AuthorityKey() string { return "olmCAKey" }
