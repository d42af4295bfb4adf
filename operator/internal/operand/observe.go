package operand

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Observation is what is seen of an operand.
type Observation struct {
	// Nodes is the pods that are not on their way out, and whether each is ready.
	Nodes map[string]bool
	// Ready is how many of them are ready.
	Ready int32
	// Generation is the Deployment's, as far as the cache knows it.
	Generation int64
	// Settled says that the Deployment is rolled out: the pods that run are those, and as many, as are wanted.
	Settled bool
	// Failure is the Deployment's own account of why it cannot make progress, empty if it can.
	Failure string
}

// Observe reads the state of a Memcached's operand from the cache.
func Observe(ctx context.Context, reader client.Reader, namespace, memcached string) (Observation, error) {
	seen := Observation{Nodes: map[string]bool{}}
	var pods corev1.PodList
	if err := reader.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(Selector(memcached))); err != nil {
		return seen, fmt.Errorf("listing the pods of memcached %s/%s: %w", namespace, memcached, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !pod.DeletionTimestamp.IsZero() || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		ready := PodReady(pod)
		seen.Nodes[pod.Name] = ready
		if ready {
			seen.Ready++
		}
	}
	var deployment appsv1.Deployment
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Name(memcached)}, &deployment); err != nil {
		return seen, client.IgnoreNotFound(err)
	}
	status := deployment.Status
	wanted := int32(1)
	if deployment.Spec.Replicas != nil {
		wanted = *deployment.Spec.Replicas
	}
	seen.Generation = deployment.Generation
	seen.Settled = status.ObservedGeneration >= deployment.Generation &&
		status.UpdatedReplicas == wanted && status.Replicas == wanted && status.AvailableReplicas == wanted
	for _, condition := range status.Conditions {
		if failing(condition) {
			seen.Failure = condition.Reason + ": " + condition.Message
		}
	}
	return seen, nil
}

// failing says that a Deployment cannot make progress, by a condition of its.
func failing(condition appsv1.DeploymentCondition) bool {
	return condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue ||
		condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse
}

// PodReady reports whether a pod takes requests.
func PodReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Conditions returns Available, Progressing and Degraded as observed. reconcileErr is what kept the operator from bringing the
// operand about, nil if nothing did.
func Conditions(generation int64, wanted int32, seen Observation, reconcileErr error) []metav1.Condition {
	var conditions []metav1.Condition
	set := func(kind string, is bool, reason, message string) {
		status := metav1.ConditionFalse
		if is {
			status = metav1.ConditionTrue
		}
		conditions = append(conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation})
	}
	count := fmt.Sprintf("%d of %d pods are ready", seen.Ready, wanted)
	switch {
	case seen.Ready == 0:
		set("Available", false, "NoPodReady", count)
	case seen.Ready < wanted:
		set("Available", true, "SomePodsReady", count)
	default:
		set("Available", true, "AllPodsReady", count)
	}
	if seen.Settled && seen.Ready == wanted && reconcileErr == nil {
		set("Progressing", false, "RolledOut", "the pods are as the spec asks")
	} else {
		set("Progressing", true, "RollingOut", "the pods are not yet as the spec asks")
	}
	switch {
	case reconcileErr != nil:
		set("Degraded", true, reason(reconcileErr), Bounded(reconcileErr.Error()))
	case seen.Failure != "":
		set("Degraded", true, "DeploymentFailing", Bounded(seen.Failure))
	default:
		set("Degraded", false, "AsExpected", "")
	}
	return conditions
}

func reason(err error) string {
	if taken := (*TakenError)(nil); errors.As(err, &taken) {
		return "NameTaken"
	}
	if apierrors.IsInvalid(err) {
		return "InvalidSpec"
	}
	return "ApplyFailed"
}

// Bounded keeps a message within what a condition may hold, and an event (1024 bytes), with room to spare.
func Bounded(message string) string {
	const most = 900
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "") + " ..."
}
