package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	redisv1beta1 "github.com/olmkit/olmkit/examples/redis-operator/api/v1beta1"
)

// conditionAvailable is True while as many servers are ready as the spec asks for.
const conditionAvailable = "Available"

// available reports whether all servers that rc asks for are ready.
func available(rc *redisv1beta1.RedisCluster, statefulSet *appsv1.StatefulSet) bool {
	return statefulSet.Status.ObservedGeneration == statefulSet.Generation && statefulSet.Status.ReadyReplicas == max(rc.Spec.Replicas, 1)
}

// setStatus writes into rc's status what is to be seen of statefulSet.
func setStatus(rc *redisv1beta1.RedisCluster, statefulSet *appsv1.StatefulSet) {
	condition := metav1.Condition{
		Type: conditionAvailable, Status: metav1.ConditionFalse, Reason: "ServersNotReady", ObservedGeneration: rc.Generation,
		Message: fmt.Sprintf("%d of %d servers are ready", statefulSet.Status.ReadyReplicas, max(rc.Spec.Replicas, 1)),
	}
	if available(rc, statefulSet) {
		condition.Status, condition.Reason = metav1.ConditionTrue, "ServersReady"
	}
	meta.SetStatusCondition(&rc.Status.Conditions, condition)
	rc.Status.ReadyReplicas = statefulSet.Status.ReadyReplicas
	rc.Status.ObservedGeneration = rc.Generation
}

// updateStatus writes the status of rc if it is another than before.
func (r *RedisClusterReconciler) updateStatus(ctx context.Context, rc *redisv1beta1.RedisCluster, before *redisv1beta1.RedisClusterStatus, statefulSet *appsv1.StatefulSet) error {
	setStatus(rc, statefulSet)
	if equality.Semantic.DeepEqual(*before, rc.Status) {
		return nil
	}
	if err := r.Status().Update(ctx, rc); err != nil {
		return fmt.Errorf("update the status: %w", err)
	}
	is := meta.FindStatusCondition(rc.Status.Conditions, conditionAvailable)
	if is.Status == metav1.ConditionTrue && !meta.IsStatusConditionTrue(before.Conditions, conditionAvailable) {
		r.Recorder.Eventf(rc, nil, corev1.EventTypeNormal, conditionAvailable, "Reconcile", "%s", is.Message)
	}
	return nil
}
