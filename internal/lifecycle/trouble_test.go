package lifecycle

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a cluster refuses a pod of the operator's for is what an installation failed for.
func TestExplainRefusedPod(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "manager-1"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason: "PodRefused", Message: "hostNetwork, privileged container manager: run them on a cluster of --cluster kind",
	}}}}
	e, found := Trouble(p)
	if !found || e.Object != "Pod/operators/manager-1" || !strings.Contains(e.Why, "PodRefused hostNetwork, privileged container manager") {
		t.Errorf("%v, %+v", found, e)
	}
}

// A program that ends by itself, again and again, is what keeps a Deployment from being available: at whichever moment its pod is
// looked at.
func TestExplainProgramThatEnds(t *testing.T) {
	ended := &corev1.ContainerStateTerminated{ExitCode: 0, Reason: "Completed"}
	for name, test := range map[string]struct {
		status corev1.ContainerStatus
		why    string
	}{
		"waits":       {corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}, "container manager waits: CrashLoopBackOff , restarted 2 times"},
		"has ended":   {corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended}}, "container manager ended with exit code 0 (Completed), restarted 2 times"},
		"runs":        {corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, "container manager runs and is not ready"},
		"just became": {corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, Ready: true}, "container manager was restarted 2 times, last ended with exit code 0"},
	} {
		t.Run(name, func(t *testing.T) {
			test.status.Name, test.status.RestartCount, test.status.LastTerminationState.Terminated = "manager", 2, ended
			p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "manager-1", Labels: map[string]string{"app": "manager"}}}
			p.Spec.RestartPolicy, p.Status.ContainerStatuses = corev1.RestartPolicyAlways, []corev1.ContainerStatus{test.status}
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "manager"}}
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: p.Labels}
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable"}}
			e, found := DeploymentTrouble(d, []corev1.Pod{p})
			if !found || e.Object != "Pod/operators/manager-1" || !strings.HasPrefix(e.Why, test.why) || !e.Ended {
				t.Errorf("%v, %+v", found, e)
			}
		})
	}
}

// What has done its work is no trouble, and neither is a restart long ago of what is available.
func TestNoTrouble(t *testing.T) {
	ended := &corev1.ContainerStateTerminated{ExitCode: 0, Reason: "Completed"}
	job := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: ended}}}}}
	if e, found := Trouble(job); found {
		t.Errorf("%+v", e)
	}
	p := corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Ready: true, RestartCount: 1, LastTerminationState: corev1.ContainerState{Terminated: ended}}}}}
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}}}
	if e, found := DeploymentTrouble(d, []corev1.Pod{p}); found {
		t.Errorf("%+v", e)
	}
}
