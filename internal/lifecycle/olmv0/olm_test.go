package olmv0

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

func TestManifestsNameTheImageThatInstallReplaces(t *testing.T) {
	objects, err := lifecycle.Decode(manifests)
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]string{}
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
			t.Fatal(err)
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			images[d.Name+" "+c.Command[0]] = c.Image
			for _, e := range c.Env {
				if e.Name == "CI" {
					t.Error("CI makes OLM panic where it would go on")
				}
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"olm-operator /bin/olm": Image, "catalog-operator /bin/catalog": Image}, images); diff != "" {
		t.Error(diff)
	}
}

func TestConnected(t *testing.T) {
	source := func(wanted, state, address string) *v1alpha1.CatalogSource {
		s := &v1alpha1.CatalogSource{Spec: v1alpha1.CatalogSourceSpec{Address: wanted}}
		if state != "" {
			s.Status.GRPCConnectionState = &v1alpha1.GRPCConnectionState{LastObservedState: state, Address: address}
		}
		return s
	}
	for _, test := range []struct {
		name   string
		source *v1alpha1.CatalogSource
		want   bool
	}{
		{"never tried", source("a:1", "", ""), false},
		{"on its way", source("a:1", "CONNECTING", "a:1"), false},
		{"there", source("a:1", "READY", "a:1"), true},
		{"still where it was", source("a:2", "READY", "a:1"), false},
		{"an image's own address", source("", "READY", "svc:50051"), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Connected(test.source); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func plan(name string, generation int, phase v1alpha1.InstallPlanPhase, installs ...string) v1alpha1.InstallPlan {
	return v1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
		Spec:       v1alpha1.InstallPlanSpec{ClusterServiceVersionNames: installs, Generation: generation},
		Status:     v1alpha1.InstallPlanStatus{Phase: phase},
	}
}

func TestPlanFor(t *testing.T) {
	plans := []v1alpha1.InstallPlan{plan("a", 1, "Complete", "op.v1"), plan("c", 3, "Installing", "op.v2", "dep.v1"), plan("b", 2, "Failed", "op.v2")}
	if got := PlanFor(plans, "op.v2"); got == nil || got.Name != "c" {
		t.Errorf("got %v", got)
	}
	if got := PlanFor(plans, "op.v3"); got != nil {
		t.Errorf("got %s", got.Name)
	}
}

func TestExplainResolution(t *testing.T) {
	ready := &v1alpha1.CatalogSource{Status: v1alpha1.CatalogSourceStatus{GRPCConnectionState: &v1alpha1.GRPCConnectionState{LastObservedState: "READY"}}}
	away := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "c"}, Status: v1alpha1.CatalogSourceStatus{
		GRPCConnectionState: &v1alpha1.GRPCConnectionState{LastObservedState: "TRANSIENT_FAILURE", Address: "a:1"}}}
	subscription := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}}
	subscription.Status.CurrentCSV, subscription.Status.State = "op.v1", v1alpha1.SubscriptionStateAtLatest
	failed := subscription.DeepCopy()
	failed.Status.Conditions = []v1alpha1.SubscriptionCondition{{
		Type: v1alpha1.SubscriptionResolutionFailed, Status: corev1.ConditionTrue, Reason: "ConstraintsNotSatisfiable", Message: "no operators found",
	}}
	for _, test := range []struct {
		name         string
		source       *v1alpha1.CatalogSource
		subscription *v1alpha1.Subscription
		want         string
	}{
		{"the catalog is away", away, subscription, "reading the catalog: CatalogSource/olm/c says: connection TRANSIENT_FAILURE to a:1"},
		{"resolution failed", ready, failed, "choosing the upgrade: Subscription/n/s says: ResolutionFailed ConstraintsNotSatisfiable: no operators found"},
		{"no edge", ready, subscription, "choosing the upgrade: Subscription/n/s says: state AtLatestKnown at op.v1, which has no upgrade to op.v2 that OLM takes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, explainResolution(test.source, test.subscription, "op.v2").String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExplainPlan(t *testing.T) {
	p := plan("p", 1, v1alpha1.InstallPlanPhaseInstalling, "op.v2")
	p.Status.Plan = []*v1alpha1.Step{
		{Resource: v1alpha1.StepResource{Kind: "Secret", Name: "a"}, Status: v1alpha1.StepStatusPresent},
		{Resource: v1alpha1.StepResource{Kind: "CustomResourceDefinition", Name: "b"}, Status: v1alpha1.StepStatusWaitingForAPI},
	}
	if diff := cmp.Diff("InstallPlan Installing: InstallPlan/n/p says: CustomResourceDefinition b is WaitingForApi", ExplainPlan(&p).String()); diff != "" {
		t.Error(diff)
	}
	p.Status.Message = "retrying execution due to error: x"
	if diff := cmp.Diff("InstallPlan Installing: InstallPlan/n/p says: retrying execution due to error: x", ExplainPlan(&p).String()); diff != "" {
		t.Error(diff)
	}
	p.Status.Phase = v1alpha1.InstallPlanPhaseFailed
	p.Status.Conditions = []v1alpha1.InstallPlanCondition{{Status: corev1.ConditionFalse, Reason: "InstallComponentFailed", Message: "y"}}
	if diff := cmp.Diff("InstallPlan Failed: InstallPlan/n/p says: InstallComponentFailed: y", ExplainPlan(&p).String()); diff != "" {
		t.Error(diff)
	}
	p.Status = v1alpha1.InstallPlanStatus{}
	if diff := cmp.Diff("InstallPlan: InstallPlan/n/p says: "+unwritten, ExplainPlan(&p).String()); diff != "" {
		t.Error(diff)
	}
}

func TestExplainVersion(t *testing.T) {
	csv := func(phase v1alpha1.ClusterServiceVersionPhase, reason v1alpha1.ConditionReason, message string) *v1alpha1.ClusterServiceVersion {
		c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "op.v2"}}
		c.Status.Phase, c.Status.Reason, c.Status.Message = phase, reason, message
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: "op"}}
		return c
	}
	unmet := csv("Pending", v1alpha1.CSVReasonRequirementsNotMet, "one or more requirements couldn't be found")
	unmet.Status.RequirementStatus = []v1alpha1.RequirementStatus{
		{Kind: "CustomResourceDefinition", Name: "b", Status: v1alpha1.RequirementStatusReasonPresent},
		{Kind: "ServiceAccount", Name: "sa", Status: v1alpha1.RequirementStatusReasonPresentNotSatisfied, Dependents: []v1alpha1.DependentStatus{
			{Kind: "PolicyRule", Status: v1alpha1.DependentStatusReasonNotSatisfied, Message: "cluster rule"},
		}},
	}
	deployment := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "op"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "op"}}
	pod := func(labels map[string]string, s corev1.ContainerStatus) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", Labels: labels}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{s}}}
	}
	crash := corev1.ContainerStatus{Name: "m", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}}
	crash.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 2}
	pending := pod(map[string]string{"app": "op"}, corev1.ContainerStatus{Name: "m", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}})
	pending.Status.Phase = corev1.PodPending
	installing := csv("Installing", "InstallWaiting", "waiting for deployment")
	for _, test := range []struct {
		name string
		csv  *v1alpha1.ClusterServiceVersion
		pods []corev1.Pod
		want string
	}{
		{"nothing more is known", csv("Failed", "InstallComponentFailed", "field is immutable"), nil,
			"CSV Failed: ClusterServiceVersion/n/op.v2 says: InstallComponentFailed: field is immutable"},
		{"requirements", unmet, nil, "CSV Pending: ClusterServiceVersion/n/op.v2 says: RequirementsNotMet: one or more requirements couldn't be found: " +
			"ServiceAccount sa is PresentNotSatisfied (PolicyRule is NotSatisfied: cluster rule)"},
		{"a crash", installing, []corev1.Pod{pod(map[string]string{"app": "op"}, crash)},
			"CSV Installing: Pod/n/p says: container m waits: CrashLoopBackOff back-off, restarted 3 times, last ended with exit code 2"},
		{"pods of others do not matter", installing, []corev1.Pod{pod(map[string]string{"app": "other"}, crash)},
			"CSV Installing: ClusterServiceVersion/n/op.v2 says: InstallWaiting: waiting for deployment"},
		{"a pod that is not made", installing, []corev1.Pod{pending}, "CSV Installing: Pod/n/p says: its containers are not created yet"},
		{"not ready", installing, []corev1.Pod{pod(map[string]string{"app": "op"}, corev1.ContainerStatus{Name: "m", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})},
			"CSV Installing: Pod/n/p says: container m runs and is not ready"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ExplainVersion(test.csv, []appsv1.Deployment{deployment}, test.pods).String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNewestWarning(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	event := func(minute int, kind, name, reason string) corev1.Event {
		return corev1.Event{
			Type: reason[:len("Warning")], Reason: reason, Message: "m", InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "n", Name: name},
			LastTimestamp: metav1.NewTime(now.Add(time.Duration(minute) * time.Minute)),
		}
	}
	events := []corev1.Event{
		event(1, "Pod", "p", "WarningA"), event(3, "Pod", "p", "WarningB"), event(2, "Pod", "p", "WarningC"),
		event(4, "Pod", "q", "WarningD"), event(5, "Pod", "p", "Normal...."),
	}
	e := lifecycle.Explanation{Object: "Pod/n/p"}
	if got := lifecycle.NewestWarning(events, e, "op.v2", now); got != "WarningB: m" {
		t.Errorf("got %q", got)
	}
	if got := lifecycle.NewestWarning(events, e, "op.v2", now.Add(time.Hour)); got != "" {
		t.Errorf("an old event counts: %q", got)
	}
	if got := lifecycle.NewestWarning(events, lifecycle.Explanation{}, "q", now); got != "WarningD: m" {
		t.Errorf("got %q", got)
	}
}
