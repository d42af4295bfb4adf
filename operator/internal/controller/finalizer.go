package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

// Finalizer keeps a deleted Memcached until its operand is gone. Clients lose the servers' addresses before the servers,
// and whoever waits for the deletion, or makes a Memcached of the same name after it, finds nothing of the old one.
const Finalizer = "finalizer.cache.example.com"

const (
	// deletionTimeout bounds how long a deleted Memcached waits for what it deleted: the pods of a lost node never go. It is
	// longer than the 30 s that Kubernetes gives a pod to end.
	deletionTimeout = time.Minute
	// deletionRetry is how often it is checked. All that it waits for is watched; this is for a watch that is behind.
	deletionRetry = 5 * time.Second
	// reasonDeleting is the reason of the condition Progressing meanwhile.
	reasonDeleting = "Dissolving"
)

// reconcileDelete deletes the operand of a deleted Memcached, and then removes the finalizer.
func (r *MemcachedReconciler) reconcileDelete(ctx context.Context, m *v1.Memcached) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(m, Finalizer) {
		return ctrl.Result{}, nil // the garbage collector takes what the object owns
	}
	if slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents) {
		return resultFor(r.removeFinalizer(ctx, m, corev1.EventTypeNormal, "Orphaned", "the servers stay, as the deletion asked"))
	}
	remaining, err := r.applier().Delete(ctx, m.Namespace, m.Name, r.deletion(m))
	if err == nil && len(remaining.Objects) == 0 {
		return resultFor(r.removeFinalizer(ctx, m, corev1.EventTypeNormal, "Dissolved", "all servers are gone"))
	}
	since := m.DeletionTimestamp.Time
	if remaining.Since.After(since) {
		since = remaining.Since
	}
	deleting := deletingCondition(m)
	if deleting != nil && deleting.LastTransitionTime.After(since) {
		since = deleting.LastTransitionTime.Time // the operator was not there at once
	}
	timeLeft := time.Until(since.Add(deletionTimeout))
	// What it may not do now it will not do later; the garbage collector will.
	if deleting != nil && timeLeft <= 0 && (err == nil || apierrors.IsForbidden(err)) {
		why := strings.Join(remaining.Objects, ", ")
		if err != nil {
			why = operand.Bounded(err.Error())
		}
		return resultFor(r.removeFinalizer(ctx, m, corev1.EventTypeWarning, "NotDissolved", fmt.Sprintf("not waiting any longer than %s for %s", deletionTimeout, why)))
	}
	if apierrors.IsConflict(err) {
		return resultFor(err)
	}
	// Most are gone before a second check: that it waits is not worth a write before, nor are the steps on the way.
	if err == nil && time.Since(since) < deletionRetry {
		return ctrl.Result{RequeueAfter: deletionRetry}, nil
	}
	if _, statusErr := r.updateStatus(ctx, m, 0, err); statusErr != nil {
		return resultFor(errors.Join(err, statusErr))
	}
	if err != nil {
		return resultFor(err)
	}
	return ctrl.Result{RequeueAfter: deletionRetry}, nil
}

// deletion is what is known of the deletion of m's operand.
func (r *MemcachedReconciler) deletion(m *v1.Memcached) operand.Deletion {
	key := client.ObjectKeyFromObject(m)
	if known, ok := r.deletions.Load(key); ok && known.(operand.Deletion).Owner == m.UID {
		return known.(operand.Deletion)
	}
	begun := operand.Deletion{Owner: m.UID, Known: map[string]bool{}}
	r.deletions.Store(key, begun)
	return begun
}

// setDeleting sets the condition Progressing of a deleted Memcached. Its last transition is when the operator began, also if
// it was true before.
func setDeleting(m *v1.Memcached) {
	if deletingCondition(m) == nil {
		meta.RemoveStatusCondition(&m.Status.Conditions, v1.ConditionProgressing)
	}
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: v1.ConditionProgressing, Status: metav1.ConditionTrue, ObservedGeneration: m.Generation,
		Reason: reasonDeleting, Message: "deleted; waiting for the servers to end",
	})
}

// deletingCondition returns the condition that setDeleting sets, nil if it is not set.
func deletingCondition(m *v1.Memcached) *metav1.Condition {
	if c := meta.FindStatusCondition(m.Status.Conditions, v1.ConditionProgressing); c != nil && c.Reason == reasonDeleting {
		return c
	}
	return nil
}

func (r *MemcachedReconciler) addFinalizer(ctx context.Context, m *v1.Memcached) error {
	before := m.DeepCopy()
	if !controllerutil.AddFinalizer(m, Finalizer) {
		return nil
	}
	// A merge patch replaces the whole list: the lock keeps what others add meanwhile.
	if err := r.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("adding the finalizer to memcached %s/%s: %w", m.Namespace, m.Name, err)
	}
	wrote(&r.written, client.ObjectKeyFromObject(m), m.ResourceVersion)
	return nil
}

// removeFinalizer lets the object go, and records an event that says why.
func (r *MemcachedReconciler) removeFinalizer(ctx context.Context, m *v1.Memcached, kind, reason, message string) error {
	before := m.DeepCopy()
	controllerutil.RemoveFinalizer(m, Finalizer)
	if err := r.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("removing the finalizer of memcached %s/%s: %w", m.Namespace, m.Name, err))
	}
	r.Recorder.Eventf(before, nil, kind, reason, "Delete", "%s", message)
	return nil
}
