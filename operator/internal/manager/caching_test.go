package manager

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/operator/internal/operand"
)

// Of what the cache drops nothing is read: which pods are ready and whose they are stays.
func TestCachedParts(t *testing.T) {
	t.Parallel()
	other := metav1.ManagedFieldsEntry{Manager: "kube-controller-manager"}
	now := metav1.NewTime(time.Unix(1, 0))
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}, DeletionTimestamp: &now, DeletionGracePeriodSeconds: new(int64(30))}
	full, kept := meta, meta
	full.Annotations = map[string]string{operand.OwnerAnnotation: "m", "other": "x"}
	full.ManagedFields = []metav1.ManagedFieldsEntry{other}
	kept.Annotations = map[string]string{operand.OwnerAnnotation: "m"}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	late := ready
	late.LastProbeTime = now
	for name, test := range map[string]struct {
		transform func(any) (any, error)
		in, want  any
	}{
		"a pod": {readinessAlone,
			&corev1.Pod{ObjectMeta: full, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled}, late}}},
			&corev1.Pod{ObjectMeta: kept, Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{ready}}}},
		"metadata": {nameAlone,
			&metav1.PartialObjectMetadata{ObjectMeta: full},
			&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", ResourceVersion: "7"}}},
		"no object": {readinessAlone, "x", "x"},
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
