package manager

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/operator/internal/operand"
)

// Of what the cache drops nothing is read: who applied the operator's fields, which pods are ready and whose they are, stays.
func TestCachedParts(t *testing.T) {
	t.Parallel()
	own := metav1.ManagedFieldsEntry{Manager: operand.FieldOwner, Operation: metav1.ManagedFieldsOperationApply}
	status, other := own, own
	status.Subresource, other.Manager = "status", "kube-controller-manager"
	now := metav1.NewTime(time.Unix(1, 0))
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}, DeletionTimestamp: &now, DeletionGracePeriodSeconds: new(int64(30))}
	full, kept := meta, meta
	full.Annotations = map[string]string{operand.OwnerAnnotation: "m", "other": "x"}
	full.ManagedFields = []metav1.ManagedFieldsEntry{other}
	kept.Annotations = map[string]string{operand.OwnerAnnotation: "m"}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	late := ready
	late.LastProbeTime = now
	fields := func(e ...metav1.ManagedFieldsEntry) metav1.ObjectMeta { return metav1.ObjectMeta{ManagedFields: e} }
	for name, test := range map[string]struct {
		transform func(any) (any, error)
		in, want  any
	}{
		"a pod": {readinessAlone,
			&corev1.Pod{ObjectMeta: full, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled}, late}}},
			&corev1.Pod{ObjectMeta: kept, Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{ready}}}},
		"a Deployment": {ownFieldsAlone,
			&appsv1.Deployment{ObjectMeta: fields(other, own, status), Status: appsv1.DeploymentStatus{Replicas: 1}},
			&appsv1.Deployment{ObjectMeta: fields(own), Status: appsv1.DeploymentStatus{Replicas: 1}}},
		"a PodDisruptionBudget": {ownFieldsAlone,
			&policyv1.PodDisruptionBudget{ObjectMeta: fields(own), Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1}},
			&policyv1.PodDisruptionBudget{ObjectMeta: fields(own)}},
		"metadata": {nameAlone,
			&metav1.PartialObjectMetadata{ObjectMeta: full},
			&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", ResourceVersion: "7"}}},
		"no object": {ownFieldsAlone, "x", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.transform(test.in)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}
