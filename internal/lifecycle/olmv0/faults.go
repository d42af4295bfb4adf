package olmv0

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Faults are those of OLM's own programs, and of what only OLM waits for.
func (c *Client) Faults() []lifecycle.Fault {
	return []lifecycle.Fault{
		{Name: "manual-approval", Phase: lifecycle.BeforeHop, Fixed: true, Blocks: true,
			Doc: "the Subscription requires manual approval, given 2 s after the InstallPlan is created"},
		{Name: "not-upgradeable", Phase: lifecycle.BeforeHop, Fixed: true, Blocks: true,
			Doc: "the installed version's OperatorCondition has Upgradeable=False, until 2 s after OLM stops at it"},
		{Name: "kill-olm-operator", Phase: "installing", Shared: true,
			Doc: "the pods of OLM's olm-operator are deleted without a grace period"},
		{Name: "kill-catalog-operator", Phase: "install-plan-created", Shared: true,
			Doc: "the pods of OLM's catalog-operator are deleted without a grace period"},
	}
}

// Inject makes one of them.
func (c *Client) Inject(ctx context.Context, name string, hop lifecycle.Hop) (held func(context.Context) (bool, error), err error) {
	switch name {
	case "manual-approval":
		return c.wantApproval(ctx, hop)
	case "not-upgradeable":
		return c.refuseUpgrade(ctx, hop)
	}
	return nil, c.kill(ctx, strings.TrimPrefix(name, "kill-"))
}

// kill ends the pods of OLM's own operator called name.
func (c *Client) kill(ctx context.Context, name string) error {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.MatchingLabels{"app": name}); err != nil {
		return fmt.Errorf("list pods of %s: %w", name, err)
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("no pod is called app=%s", name)
	}
	for i := range pods.Items {
		if err := c.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("kill pod %s: %w", pods.Items[i].Name, err)
		}
	}
	return nil
}

// resolved is how long OLM may need to be through with a resolution that it began before the Subscription was changed, in
// which it would go by the old one.
const resolved = time.Second

// wantApproval has the InstallPlan wait for an administrator.
func (c *Client) wantApproval(ctx context.Context, hop lifecycle.Hop) (func(context.Context) (bool, error), error) {
	hop.Undo(func(ctx context.Context) error {
		_, err := c.Approve(ctx, hop.Namespace, hop.To)
		return err
	})
	hop.Undo(func(ctx context.Context) error {
		return c.SetApproval(ctx, subscription(hop.Place), v1alpha1.ApprovalAutomatic)
	})
	if err := c.SetApproval(ctx, subscription(hop.Place), v1alpha1.ApprovalManual); err != nil {
		return nil, err
	}
	select {
	case <-time.After(resolved):
	case <-ctx.Done():
	}
	return func(ctx context.Context) (bool, error) {
		now, err := readInstallation(ctx, hop.Seen, hop.Place, hop.To)
		switch {
		case err != nil || now.plan == nil:
			return false, err
		case now.plan.Spec.Approval == v1alpha1.ApprovalAutomatic:
			return false, lifecycle.Inapplicable("OLM made the InstallPlan by what the Subscription said before")
		}
		return now.plan.Status.Phase == v1alpha1.InstallPlanPhaseRequiresApproval && now.csv == nil, nil
	}, nil
}

// refuseUpgrade has the installed operator say that it must not be replaced now.
func (c *Client) refuseUpgrade(ctx context.Context, hop lifecycle.Hop) (func(context.Context) (bool, error), error) {
	hop.Undo(func(ctx context.Context) error { return c.SetUpgradeable(ctx, hop.Namespace, hop.From, true) })
	return func(ctx context.Context) (bool, error) {
		now, err := readInstallation(ctx, hop.Seen, hop.Place, hop.To)
		return err == nil && now.csv != nil && now.csv.Status.Reason == v1alpha1.CSVReasonOperatorConditionNotUpgradeable, err
	}, c.SetUpgradeable(ctx, hop.Namespace, hop.From, false)
}
