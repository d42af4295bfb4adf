package olmv0

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// OLM starts an installation that failed again and again: what failed is the reason, whichever phase it is in just then.
func TestExplainVersionThatIsTriedAgain(t *testing.T) {
	const immutable = `Deployment.apps "manager" is invalid: spec.selector: field is immutable`
	failed := v1alpha1.ClusterServiceVersionCondition{Phase: v1alpha1.CSVPhaseFailed, Reason: v1alpha1.CSVReasonComponentFailed, Message: immutable}
	for phase, reason := range map[v1alpha1.ClusterServiceVersionPhase]v1alpha1.ConditionReason{
		v1alpha1.CSVPhaseFailed:       v1alpha1.CSVReasonComponentFailed,
		v1alpha1.CSVPhasePending:      v1alpha1.CSVReasonNeedsReinstall,
		v1alpha1.CSVPhaseInstallReady: v1alpha1.CSVReasonRequirementsMet,
	} {
		csv := &v1alpha1.ClusterServiceVersion{}
		csv.Status.Phase, csv.Status.Reason = phase, reason
		if phase == v1alpha1.CSVPhaseFailed {
			csv.Status.Message = immutable
		}
		csv.Status.Conditions = []v1alpha1.ClusterServiceVersionCondition{
			{Phase: v1alpha1.CSVPhasePending}, failed, {Phase: v1alpha1.CSVPhasePending, Reason: v1alpha1.CSVReasonNeedsReinstall},
		}
		if e := ExplainVersion(csv, nil, nil); !strings.Contains(e.Why, immutable) || e.Phase != "CSV Failed" {
			t.Errorf("in phase %s: %+v", phase, e)
		}
	}
	waiting := &v1alpha1.ClusterServiceVersion{}
	waiting.Status.Phase, waiting.Status.Reason = v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet
	if lastFailure(waiting) != nil {
		t.Error("an installation that waits has failed")
	}
}

func TestMissingRequirements(t *testing.T) {
	csv := &v1alpha1.ClusterServiceVersion{}
	csv.Status.RequirementStatus = []v1alpha1.RequirementStatus{
		{Kind: "CustomResourceDefinition", Name: "pots.example.com", Status: v1alpha1.RequirementStatusReasonPresent},
		{Kind: "APIService", Name: "v1.example.com", Status: "DeploymentFound"},
		{Kind: "ServiceAccount", Name: "manager", Status: v1alpha1.RequirementStatusReasonPresentNotSatisfied, Dependents: []v1alpha1.DependentStatus{
			{Kind: "PolicyRule", Status: v1alpha1.DependentStatusReasonSatisfied, Message: "rule one"},
			{Kind: "PolicyRule", Status: v1alpha1.DependentStatusReasonNotSatisfied, Message: "rule two"},
		}},
		{Kind: "ClusterServiceVersion", Name: "tea.v2", Status: v1alpha1.RequirementStatusReasonPresentNotSatisfied, Message: "minKubeVersion (1.99.0) > server version (1.36.3)"},
	}
	got := strings.Join(MissingRequirements(csv), "\n")
	want := "ClusterServiceVersion tea.v2 is PresentNotSatisfied: minKubeVersion (1.99.0) > server version (1.36.3)\n" +
		"ServiceAccount manager is PresentNotSatisfied (PolicyRule is NotSatisfied: rule two)"
	if got != want {
		t.Errorf("missing:\n%s\nwant\n%s", got, want)
	}
	for range 9 {
		csv.Status.RequirementStatus = append(csv.Status.RequirementStatus, v1alpha1.RequirementStatus{Kind: "Z", Status: v1alpha1.RequirementStatusReasonNotPresent})
	}
	if many := MissingRequirements(csv); len(many) != manyRequirements+1 || many[manyRequirements] != "and 6 more" {
		t.Errorf("of many: %q", many)
	}
}
