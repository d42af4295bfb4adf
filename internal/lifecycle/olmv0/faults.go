package olmv0

import (
	"context"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
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

// FaultPhase is the usual one, except of what OLM has not: images to pull catalogs and bundles from.
func (c *Client) FaultPhase(name, usual string) string {
	if name == "registry-slow" {
		return ""
	}
	return usual
}

// Inject makes one of them.
func (c *Client) Inject(ctx context.Context, name string, hop lifecycle.Hop) (held func(context.Context) (bool, error), err error) {
	switch name {
	case "manual-approval":
		return c.wantApproval(ctx, hop)
	case "not-upgradeable":
		return c.refuseUpgrade(ctx, hop)
	}
	program := strings.TrimPrefix(name, "kill-")
	return nil, lifecycle.KillProgram(ctx, c.WithWatch, program, client.MatchingLabels{"app": program})
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
