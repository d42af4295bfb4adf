package olmv0

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

func TestUnfulfilled(t *testing.T) {
	pending := func(requirements ...v1alpha1.RequirementStatus) *v1alpha1.ClusterServiceVersion {
		csv := &v1alpha1.ClusterServiceVersion{}
		csv.Status.Phase, csv.Status.Reason = v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet
		csv.Status.RequirementStatus = requirements
		return csv
	}
	version := v1alpha1.RequirementStatus{Kind: v1alpha1.ClusterServiceVersionKind, Name: "tea.v2", Status: v1alpha1.RequirementStatusReasonPresentNotSatisfied, Message: "too old"}
	missing := v1alpha1.RequirementStatus{Kind: "CustomResourceDefinition", Name: "pots", Status: v1alpha1.RequirementStatusReasonNotPresent}
	soon := v1alpha1.RequirementStatus{Kind: "CustomResourceDefinition", Name: "cups", Status: v1alpha1.RequirementStatusReasonNotAvailable}
	account := v1alpha1.RequirementStatus{Kind: "ServiceAccount", Name: "manager", Status: v1alpha1.RequirementStatusReasonNotPresent}
	succeeded := pending(missing)
	succeeded.Status.Phase = v1alpha1.CSVPhaseSucceeded
	for name, test := range map[string]struct {
		csv      *v1alpha1.ClusterServiceVersion
		complete bool
		grace    time.Duration // 0 for none
	}{
		"a newer Kubernetes":             {pending(version, missing), false, versionGrace},
		"an API that is not there":       {pending(missing, account), true, requirementGrace},
		"an API while the plan goes on":  {pending(missing), false, 0},
		"a CRD that is not established":  {pending(soon), true, 0},
		"an account that OLM will make":  {pending(account), true, 0},
		"nothing, since it is installed": {succeeded, true, 0},
	} {
		got := unfulfilled(test.csv, test.complete)
		if (got != nil) != (test.grace > 0) || got != nil && (got.Grace != test.grace || got.Reason != lifecycle.Unmet) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestUnresolved(t *testing.T) {
	s := &v1alpha1.Subscription{}
	s.Status.Conditions = []v1alpha1.SubscriptionCondition{{Type: v1alpha1.SubscriptionResolutionFailed, Status: corev1.ConditionTrue, Reason: "ErrorPreventedResolution"}}
	if got := unresolved(s, &lifecycle.Release{}); got != nil {
		t.Errorf("an error that OLM tries again: %+v", got)
	}
	s.Status.Conditions[0].Reason = "ConstraintsNotSatisfiable"
	if got := unresolved(s, &lifecycle.Release{}); got == nil || got.Reason != lifecycle.NotChosen {
		t.Errorf("no way: %+v", got)
	}
	if got := unresolved(s, &lifecycle.Release{Dependent: true}); got == nil || got.Reason != lifecycle.Unmet {
		t.Errorf("a dependency: %+v", got)
	}
}

func TestFailedAlike(t *testing.T) {
	failed := func(reason string) lifecycle.Event {
		return lifecycle.Event{Kind: kindCSV, Name: "a", State: "Failed", Reason: reason}
	}
	if got := failedAlike([]lifecycle.Event{failed("x"), failed("y"), failed("x"), {Kind: kindCSV, Name: "a", State: "Pending"}, failed("x")}, "a"); got != 3 {
		t.Errorf("got %d", got)
	}
}

func TestPlanReason(t *testing.T) {
	for message, want := range map[string]lifecycle.Reason{
		`retrying execution due to error: risk of data loss updating "x": new CRD removes version v1 that is listed as a stored version on the existing CRD`:     lifecycle.StoredVersionRefused,
		`error validating existing CRs against new CRD's schema for "x": error validating example.com/v1, Kind=Thing "a": updated validation is too restrictive`: lifecycle.ObjectsRefused,
		`error validating existing CRs against new CRD's schema for "x": conversion webhook for example.com/v1, Kind=Thing failed: Post "https://x"`:             lifecycle.ConversionFails,
		`admission webhook "x" denied the request`: lifecycle.NotApplied,
	} {
		plan := &v1alpha1.InstallPlan{Status: v1alpha1.InstallPlanStatus{Message: message}}
		if got := planReason(plan); got != want {
			t.Errorf("%s: got %s, want %s", message, got, want)
		}
	}
}
