package olmv0

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// installation is what OLM says of the installation of one bundle.
type installation struct {
	subscription v1alpha1.Subscription
	plan         *v1alpha1.InstallPlan           // the newest that installs it, or nil
	csv          *v1alpha1.ClusterServiceVersion // or nil
	others       bool                            // bundles besides it are installed
}

// State says how far the installation of r came.
func (c *Client) State(ctx context.Context, p lifecycle.Place, r *lifecycle.Release, seen lifecycle.View) (lifecycle.State, error) {
	now, err := readInstallation(ctx, seen, p, r.Name)
	if err != nil {
		return lifecycle.State{}, err
	}
	state := lifecycle.State{Stage: now.stage()}
	if state.Stage == lifecycle.Installed {
		missing, err := c.WithoutRights(ctx, now.csv)
		if err != nil {
			return lifecycle.State{}, err
		}
		if missing != "" {
			state.Stage = lifecycle.Finishing
		}
	}
	state.Stall, state.Refused = now.refusal()
	if state.Stall == nil && now.failed(seen.Timeline) {
		state.Stall = &lifecycle.Stall{Reason: lifecycle.NotSucceeded}
	}
	if state.Stall == nil {
		state.Stall = now.unmet(r)
	}
	return state, nil
}

func readInstallation(ctx context.Context, c client.Reader, p lifecycle.Place, name string) (*installation, error) {
	now := &installation{}
	err := c.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Package}, &now.subscription)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	var plans v1alpha1.InstallPlanList
	var versions v1alpha1.ClusterServiceVersionList
	for _, list := range []client.ObjectList{&plans, &versions} {
		if err := c.List(ctx, list, client.InNamespace(p.Namespace)); err != nil {
			return nil, err
		}
	}
	now.plan = PlanFor(plans.Items, name)
	for i := range versions.Items {
		switch v := &versions.Items[i]; {
		case v.Name == name:
			now.csv = v
		case !v.IsCopied():
			now.others = true
		}
	}
	return now, nil
}

func (n *installation) stage() lifecycle.Stage {
	switch {
	case n.csv == nil && n.plan == nil:
		return lifecycle.Unresolved
	case n.csv == nil:
		return lifecycle.Resolved
	case n.csv.Status.Phase != v1alpha1.CSVPhaseSucceeded:
		return lifecycle.Installing
	case n.others:
		return lifecycle.Replacing
	case !n.complete() || n.subscription.Status.InstalledCSV != n.csv.Name:
		return lifecycle.Finishing
	}
	return lifecycle.Installed
}

func (n *installation) complete() bool {
	return n.plan != nil && n.plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete
}

// refusal returns why the InstallPlan will never be complete, or, while OLM still tries, that it refuses objects.
func (n *installation) refusal() (stall, refused *lifecycle.Stall) {
	if n.plan == nil {
		return nil, nil
	}
	why := ExplainPlan(n.plan) // now: OLM soon writes something else
	said := &lifecycle.Stall{Reason: planReason(n.plan), Why: &why}
	switch {
	// OLM tries for a minute, but stored versions do not change by themselves.
	case n.plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed, said.Reason == lifecycle.StoredVersionRefused:
		return said, nil
	case said.Reason == lifecycle.ObjectsRefused:
		return nil, said
	}
	return nil, nil
}

// planReason tells the failures of an InstallPlan apart. The texts are those of pkg/controller/operators/catalog/step.go and
// pkg/lib/crd/storage.go of operator-lifecycle-manager v0.46.0.
func planReason(plan *v1alpha1.InstallPlan) lifecycle.Reason {
	said := plan.Status.Message
	for _, c := range plan.Status.Conditions {
		said += " " + c.Message
	}
	switch {
	case strings.Contains(said, "risk of data loss"):
		return lifecycle.StoredVersionRefused
	case strings.Contains(said, "conversion webhook for"):
		return lifecycle.ConversionFails
	case strings.Contains(said, "error validating existing CRs"):
		return lifecycle.ObjectsRefused
	}
	return lifecycle.NotApplied
}

// manyFailures is after how many failures in the same words a ClusterServiceVersion is given up. OLM itself goes on for ever, or
// until the InstallPlan's minute is over.
const manyFailures = 6

// failed reports whether the ClusterServiceVersion will never succeed.
func (n *installation) failed(timeline []lifecycle.Event) bool {
	if n.csv == nil || n.csv.Status.Phase == v1alpha1.CSVPhaseSucceeded {
		return false
	}
	switch n.csv.Status.Reason {
	// OLM does not leave these by itself.
	case v1alpha1.CSVReasonComponentFailedNoRetry, v1alpha1.CSVReasonInvalidInstallModes, v1alpha1.CSVReasonInvalidStrategy,
		v1alpha1.CSVReasonInvalidWebhookDescription, v1alpha1.CSVReasonUnsupportedOperatorGroup, v1alpha1.CSVReasonOwnerConflict:
		if n.csv.Status.Phase == v1alpha1.CSVPhaseFailed {
			return true
		}
	}
	return failedAlike(timeline, n.csv.Name) >= manyFailures
}

// failedAlike counts how often the ClusterServiceVersion called name failed in timeline in the words in which it failed last.
func failedAlike(timeline []lifecycle.Event, name string) int {
	n := 0
	last := ""
	for _, e := range slices.Backward(timeline) {
		if e.Kind != kindCSV || e.Name != name || e.State != string(v1alpha1.CSVPhaseFailed) {
			continue
		}
		if last == "" {
			last = e.Reason
		}
		if e.Reason == last {
			n++
		}
	}
	return n
}

// How long what OLM waits for must stay the same before it counts as what never comes true. The server's version does not
// change; CRDs are established, and catalogs read, within seconds, but a slow machine's OLM was seen to look again after 15.
const (
	versionGrace     = 3 * time.Second
	requirementGrace = 45 * time.Second
)

// unmet returns what OLM waits for before it installs r and what cannot come true here, or nil.
func (n *installation) unmet(r *lifecycle.Release) *lifecycle.Stall {
	if n.csv == nil {
		return unresolved(&n.subscription, r)
	}
	return unfulfilled(n.csv, n.complete())
}

// unresolved returns why OLM's resolver refuses r for good. OLM asks again only when catalogs or Subscriptions change.
func unresolved(s *v1alpha1.Subscription, r *lifecycle.Release) *lifecycle.Stall {
	reason := lifecycle.NotChosen
	if r.Dependent {
		reason = lifecycle.Unmet
	}
	for _, c := range s.Status.Conditions {
		if c.Type == v1alpha1.SubscriptionResolutionFailed && c.Status == corev1.ConditionTrue && c.Reason == "ConstraintsNotSatisfiable" {
			return &lifecycle.Stall{Reason: reason, Said: c.Message, Grace: requirementGrace}
		}
	}
	return nil
}

// unfulfilled returns those of csv's requirements that stay unmet once its InstallPlan is complete. ServiceAccounts and
// their permissions are left out, because OLM makes them after the plan as well.
func unfulfilled(csv *v1alpha1.ClusterServiceVersion, planComplete bool) *lifecycle.Stall {
	if csv.Status.Phase != v1alpha1.CSVPhasePending || csv.Status.Reason != v1alpha1.CSVReasonRequirementsNotMet {
		return nil
	}
	var said []string
	for _, s := range csv.Status.RequirementStatus {
		switch {
		case Met(s):
		case s.Kind == kindCSV:
			return &lifecycle.Stall{Reason: lifecycle.Unmet, Said: s.Message, Grace: versionGrace}
		case s.Status == v1alpha1.RequirementStatusReasonNotPresent && s.Kind != "ServiceAccount":
			said = append(said, s.Kind+" "+s.Name+" "+s.Message)
		}
	}
	if len(said) == 0 || !planComplete {
		return nil
	}
	slices.Sort(said)
	return &lifecycle.Stall{Reason: lifecycle.Unmet, Said: strings.Join(said, ", "), Grace: requirementGrace}
}

// Warnings returns what OLM warned of since then while it carried out InstallPlans.
func (c *Client) Warnings(ctx context.Context, p lifecycle.Place, since time.Time) ([]lifecycle.Warning, error) {
	var events corev1.EventList
	if err := c.List(ctx, &events, client.InNamespace(p.Namespace)); err != nil {
		return nil, fmt.Errorf("list events in %s: %w", p.Namespace, err)
	}
	var warnings []lifecycle.Warning
	said := map[string]bool{}
	for _, e := range events.Items {
		recent := !e.LastTimestamp.Before(&metav1.Time{Time: since.Truncate(time.Second)})
		if e.Type != corev1.EventTypeWarning || e.InvolvedObject.Kind != kindPlan || !recent {
			continue
		}
		// OLM repeats a plan's steps, and with them their warnings, in any order.
		words := strings.FieldsFunc(e.Message, func(c rune) bool { return c == ' ' || c == ',' })
		slices.Sort(words)
		if key := e.InvolvedObject.Name + " " + strings.Join(words, " "); !said[key] {
			said[key] = true
			warnings = append(warnings, lifecycle.Warning{
				Object: kindPlan + "/" + p.Namespace + "/" + e.InvolvedObject.Name, Message: e.Reason + ": " + strings.TrimSpace(e.Message),
			})
		}
	}
	return warnings, nil
}

// Rollback removes the Subscription and the ClusterServiceVersions, subscribes to bundle with approval by hand, so that OLM does
// not upgrade at once, and approves the InstallPlan that brings it.
//
// It was seen that OLM takes the new Subscription for the one of its name that was there before: its status then names the
// release that failed, and OLM waits for that for ever. Then all of it is done again, as whoever sees that does.
func (c *Client) Rollback(ctx context.Context, p lifecycle.Place, bundle string, limit time.Duration) (func(context.Context) error, error) {
	again := subscription(p)
	again.StartingCSV, again.Approval = bundle, v1alpha1.ApprovalManual
	deadline := time.Now().Add(limit)
	for {
		if err := c.DeleteSubscription(ctx, p.Namespace, p.Package, limit); err != nil {
			return nil, err
		}
		if err := c.Subscribe(ctx, again); err != nil {
			return nil, err
		}
		approved := false
		err := lifecycle.Poll(ctx, time.Until(deadline), func(ctx context.Context) (_ bool, err error) {
			if approved, err = c.Approve(ctx, p.Namespace, bundle); approved || err != nil {
				return true, err
			}
			var s v1alpha1.Subscription
			if err := c.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Package}, &s); err != nil {
				return false, fmt.Errorf("read Subscription %s/%s: %w", p.Namespace, p.Package, err)
			}
			return s.Status.CurrentCSV != "" && s.Status.CurrentCSV != bundle, nil
		})
		if err != nil {
			return nil, err
		}
		if approved {
			// OLM may make a second InstallPlan for the bundle before it has noticed what the first brought.
			return func(ctx context.Context) error {
				_, err := c.Approve(ctx, p.Namespace, bundle)
				return err
			}, nil
		}
	}
}
