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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

// Finalizer keeps a deleted Memcached until its operand is gone. Clients lose the servers' addresses before the servers,
// and whoever waits for the deletion, or makes a Memcached of the same name after it, finds nothing of the old one.
const Finalizer = "finalizer.cache.example.com"

const (
	// patience bounds how long a deleted Memcached waits for what it deleted: the pods of a lost node never go. It is
	// longer than the 30 s that Kubernetes gives a pod to end.
	patience = time.Minute
	// glance is how often it looks again. All that it waits for is watched; this is for a watch that is behind.
	glance = 5 * time.Second
	// dissolving is the reason of the condition Progressing meanwhile.
	dissolving = "Dissolving"
)

// bid takes the operand of a deleted Memcached down, then lets the object go.
func (r *Reconciler) bid(ctx context.Context, m *v1.Memcached) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(m, Finalizer) {
		return reconcile.Result{}, nil // the garbage collector takes what the object owns
	}
	if slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents) {
		return verdict(r.release(ctx, m, corev1.EventTypeNormal, "Orphaned", "the servers stay, as the deletion asked"))
	}
	remains, trouble := r.applier().Dissolve(ctx, m.Namespace, m.Name, m.UID)
	if trouble == nil && len(remains.Objects) == 0 {
		return verdict(r.release(ctx, m, corev1.EventTypeNormal, "Dissolved", "all servers are gone"))
	}
	since := m.DeletionTimestamp.Time
	began := dissolves(m)
	if began != nil && began.LastTransitionTime.After(since) {
		since = began.LastTransitionTime.Time // the operator was not there at once
	}
	if remains.Since.After(since) {
		since = remains.Since
	}
	remaining := time.Until(since.Add(patience))
	// What it may not do now it will not do later; the garbage collector will.
	if remaining <= 0 && (trouble == nil || apierrors.IsForbidden(trouble)) {
		why := strings.Join(remains.Objects, ", ")
		if trouble != nil {
			why = operand.Bounded(trouble.Error())
		}
		return verdict(r.release(ctx, m, corev1.EventTypeWarning, "NotDissolved", fmt.Sprintf("not waiting any longer than %s for %s", patience, why)))
	}
	if apierrors.IsConflict(trouble) {
		return verdict(trouble)
	}
	// Most are gone before a second look: the steps on the way there are not worth a write each.
	if trouble == nil && began != nil && time.Since(began.LastTransitionTime.Time) < glance {
		return reconcile.Result{RequeueAfter: min(glance, remaining)}, nil
	}
	if err := r.report(ctx, m, 0, trouble); err != nil {
		return verdict(errors.Join(trouble, err))
	}
	if trouble != nil {
		return verdict(trouble)
	}
	return reconcile.Result{RequeueAfter: min(glance, remaining)}, nil
}

// dissolution is the condition Progressing of a deleted Memcached. Its last transition is when the operator began.
func dissolution(m *v1.Memcached) metav1.Condition {
	since := metav1.Now()
	if was := dissolves(m); was != nil {
		since = was.LastTransitionTime
	}
	return metav1.Condition{
		Type: v1.ConditionProgressing, Status: metav1.ConditionTrue, ObservedGeneration: m.Generation, LastTransitionTime: since,
		Reason: dissolving, Message: "deleted; waiting for the servers to end",
	}
}

// dissolves is the condition by which m's status says already that it is being dissolved, nil if it does not.
func dissolves(m *v1.Memcached) *metav1.Condition {
	if c := meta.FindStatusCondition(m.Status.Conditions, v1.ConditionProgressing); c != nil && c.Reason == dissolving {
		return c
	}
	return nil
}

// release lets the object go, and says why.
func (r *Reconciler) release(ctx context.Context, m *v1.Memcached, kind, reason, message string) error {
	before := m.DeepCopy()
	controllerutil.RemoveFinalizer(m, Finalizer)
	if err := r.Client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("taking the finalizer off memcached %s/%s: %w", m.Namespace, m.Name, err))
	}
	r.Events.Eventf(before, nil, kind, reason, "Delete", "%s", message)
	return nil
}
