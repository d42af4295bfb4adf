package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

// How long what OLM waits for must stay the same before it counts as what never comes true. The server's version does not
// change; CRDs are established, and catalogs read, within seconds.
const (
	versionGrace     = 3 * time.Second
	requirementGrace = 15 * time.Second
)

// demand is what OLM waits for in vain.
type demand struct {
	Code  string
	Said  string        // by OLM
	Grace time.Duration // how long OLM must have said so
}

// held remembers since when something has been said.
type held struct {
	said  string
	since time.Time
}

// lasts returns for how long said has been said without a break. What is empty lasts for no time.
func (h *held) lasts(said string, now time.Time) time.Duration {
	if said != h.said || said == "" {
		h.said, h.since = said, now
	}
	return now.Sub(h.since)
}

// unmet returns what OLM waits for before it installs r and what cannot come true here, or nil.
func (w *walk) unmet(ctx context.Context, r *release) (*demand, error) {
	var csv v1alpha1.ClusterServiceVersion
	err := w.watcher.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: r.Name}, &csv)
	if apierrors.IsNotFound(err) {
		var subscription v1alpha1.Subscription
		err := w.watcher.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: w.pkg.Name}, &subscription)
		return unresolved(&subscription, r), client.IgnoreNotFound(err)
	}
	if err != nil {
		return nil, err
	}
	var plans v1alpha1.InstallPlanList
	if err := w.watcher.List(ctx, &plans, client.InNamespace(w.namespace)); err != nil {
		return nil, err
	}
	plan := olmv0.PlanFor(plans.Items, r.Name)
	return unfulfilled(&csv, plan != nil && plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete), nil
}

// unresolved returns why OLM's resolver refuses r for good. OLM asks again only when catalogs or Subscriptions change.
func unresolved(s *v1alpha1.Subscription, r *release) *demand {
	code := codeNotChosen
	if r.Dependent {
		code = codeUnmet
	}
	for _, c := range s.Status.Conditions {
		if c.Type == v1alpha1.SubscriptionResolutionFailed && c.Status == corev1.ConditionTrue && c.Reason == "ConstraintsNotSatisfiable" {
			return &demand{code, c.Message, requirementGrace}
		}
	}
	return nil
}

// unfulfilled returns those of csv's requirements that stay unmet once its InstallPlan is complete. ServiceAccounts and
// their permissions are left out, because OLM makes them after the plan as well.
func unfulfilled(csv *v1alpha1.ClusterServiceVersion, planComplete bool) *demand {
	if csv.Status.Phase != v1alpha1.CSVPhasePending || csv.Status.Reason != v1alpha1.CSVReasonRequirementsNotMet {
		return nil
	}
	var said []string
	for _, s := range csv.Status.RequirementStatus {
		switch {
		case olmv0.Met(s):
		case s.Kind == v1alpha1.ClusterServiceVersionKind:
			return &demand{codeUnmet, s.Message, versionGrace}
		case s.Status == v1alpha1.RequirementStatusReasonNotPresent && s.Kind != "ServiceAccount":
			said = append(said, s.Kind+" "+s.Name+" "+s.Message)
		}
	}
	if len(said) == 0 || !planComplete {
		return nil
	}
	slices.Sort(said)
	return &demand{codeUnmet, strings.Join(said, ", "), requirementGrace}
}

// versionFix says what to do about csv where the API server is older than it asks for, or "".
func versionFix(csv *v1alpha1.ClusterServiceVersion, server string) string {
	asked, err := semver.ParseTolerant(csv.Spec.MinKubeVersion)
	has, unknown := semver.ParseTolerant(server)
	if errors.Join(err, unknown) != nil || asked.LTE(has) {
		return ""
	}
	return fmt.Sprintf("lower spec.minKubeVersion of the ClusterServiceVersion to %d.%d.0 or less if the operator runs there; "+
		"else test it on a cluster of Kubernetes %s or newer: --cluster kind with --node-image, or --cluster existing", has.Major, has.Minor, asked)
}
