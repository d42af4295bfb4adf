package lifecycle

import (
	"strings"
	"testing"

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
