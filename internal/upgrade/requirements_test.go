package upgrade

import (
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
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
		if (got != nil) != (test.grace > 0) || got != nil && (got.Grace != test.grace || got.Code != codeUnmet) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestUnresolved(t *testing.T) {
	s := &v1alpha1.Subscription{}
	s.Status.Conditions = []v1alpha1.SubscriptionCondition{{Type: v1alpha1.SubscriptionResolutionFailed, Status: corev1.ConditionTrue, Reason: "ErrorPreventedResolution"}}
	if got := unresolved(s, &release{}); got != nil {
		t.Errorf("an error that OLM tries again: %+v", got)
	}
	s.Status.Conditions[0].Reason = "ConstraintsNotSatisfiable"
	if got := unresolved(s, &release{}); got == nil || got.Code != codeNotChosen {
		t.Errorf("no way: %+v", got)
	}
	if got := unresolved(s, &release{Dependent: true}); got == nil || got.Code != codeUnmet {
		t.Errorf("a dependency: %+v", got)
	}
}

func TestHeld(t *testing.T) {
	var h held
	start := time.Now()
	for _, step := range []struct {
		said string
		at   time.Duration
		want time.Duration
	}{{"", 0, 0}, {"a", 1, 0}, {"a", 3, 2}, {"b", 4, 0}, {"b", 9, 5}, {"", 10, 0}, {"", 20, 0}} {
		if got := h.lasts(step.said, start.Add(step.at)); got != step.want {
			t.Errorf("%q at %d: %d, want %d", step.said, step.at, got, step.want)
		}
	}
}

func TestVersionFix(t *testing.T) {
	csv := &v1alpha1.ClusterServiceVersion{}
	csv.Spec.MinKubeVersion = "1.99.0"
	if got := versionFix(csv, "v1.36.3"); !strings.Contains(got, "to 1.36.0 or less") || !strings.Contains(got, "1.99.0 or newer") {
		t.Error(got)
	}
	for _, other := range []string{"", "1.36.3", "nonsense"} {
		csv.Spec.MinKubeVersion = other
		if got := versionFix(csv, "v1.36.3"); got != "" {
			t.Errorf("%q: %s", other, got)
		}
	}
}
