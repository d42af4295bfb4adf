package controller

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

// memcachedChanged passes the updates of a Memcached that call for work: another spec, other labels, or a status that does not
// answer the spec. The generation alone would not do. It counts changes as they look in the version that was written; a
// write in an older version that drops the annotation with what only v1 says changes the v1 spec and status, not the
// generation. Labels count since the manager's selector may ask for them.
func memcachedChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1.Memcached)
		after, isV1 := e.ObjectNew.(*v1.Memcached)
		if !ok || !isV1 {
			return true
		}
		return before.Generation != after.Generation || after.Status.ObservedGeneration != after.Generation ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			!slices.Equal(before.Finalizers, after.Finalizers) ||
			!maps.Equal(before.Labels, after.Labels) ||
			!equality.Semantic.DeepEqual(before.Spec, after.Spec)
	}}
}

// statusOverwritten passes the updates of a Memcached whose status another writer wrote: what it says is the operator's to say. An
// update that arrives before the answer to the write that made it passes, too, and leads to a reconciliation that finds nothing.
func (r *MemcachedReconciler) statusOverwritten() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1.Memcached)
		after, isV1 := e.ObjectNew.(*v1.Memcached)
		if !ok || !isV1 || equality.Semantic.DeepEqual(before.Status, after.Status) {
			return false
		}
		written, ok := r.written.Load(client.ObjectKeyFromObject(after))
		return !ok || written.(write).version != after.ResourceVersion
	}}
}

// changedBesidesStatus passes the updates of an object that say more than its status: what its controller counts is no concern
// of ours. Of its fields the cache has a digest of those that the operator manages.
func changedBesidesStatus() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{},
		predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(e.ObjectOld.GetManagedFields(), e.ObjectNew.GetManagedFields()) ||
				!equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences()) ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		}})
}

// OwnerOfPod leads from a pod to the Memcached that it belongs to. Pods are the Deployment's grandchildren: no owner
// reference leads there.
func OwnerOfPod() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, pod client.Object) []reconcile.Request {
		name, ok := pod.GetAnnotations()[operand.OwnerAnnotation]
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
	})
}

// PodChanged passes the updates of a pod that show in a status: its readiness, its leaving, its end.
func PodChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, isPod := e.ObjectNew.(*corev1.Pod)
		if !ok || !isPod {
			return true
		}
		return operand.PodReady(before) != operand.PodReady(after) || before.Status.Phase != after.Status.Phase ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
	}}
}
