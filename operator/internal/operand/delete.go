package operand

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Remaining is what of an operand is not deleted yet.
type Remaining struct {
	// Objects names them, each with its kind.
	Objects []string
	// Since is when the newest of them was deleted, zero if that is not known.
	Since time.Time
}

// Delete deletes the operand of the Memcached with this UID: the Service and its endpoints, and once clients can't
// find the servers any more, the Deployment and its pods, and at last what guarded these. It does not wait, and is to be
// called again until nothing remains. What another owner has under the same names is left alone.
func (a Applier) Delete(ctx context.Context, namespace, memcached string, owner types.UID) (Remaining, error) {
	var remaining Remaining
	key := client.ObjectKey{Namespace: namespace, Name: Name(memcached)}
	pods, err := a.pods(ctx, namespace, memcached)
	if err != nil {
		return remaining, err
	}
	last := a
	if begun, err := a.deletionBegun(ctx, key, pods); err != nil {
		return remaining, err
	} else if begun {
		last.API = a.Client // the API server was asked before they were deleted, and is again when they are gone
	}
	if _, err := last.deleteOwned(ctx, "Service", key, &corev1.Service{}, owner, metav1.DeletePropagationForeground, &remaining); err != nil || len(remaining.Objects) > 0 {
		return remaining, err
	}
	// Pods are told to go after what would replace them is gone, so those that run vouch for it. Where none does, it has to be
	// waited for, which costs Kubernetes about twice the work.
	propagation := metav1.DeletePropagationForeground
	if slices.ContainsFunc(pods, counted) {
		propagation = metav1.DeletePropagationBackground
	}
	foreign, err := last.deleteOwned(ctx, "Deployment", key, &appsv1.Deployment{}, owner, propagation, &remaining)
	if err != nil {
		return remaining, err
	}
	// The garbage collector would take the rest, but not when the CRD goes, too: it asks for the owner, of a kind that nobody
	// knows any more, and tries for ever (k8s.io/kubernetes v1.36.3, pkg/controller/garbagecollector, restMappingError). Nothing
	// depends on it, so the garbage collector has no part in its end.
	//
	// The budget goes with the Deployment: for pods that nothing controls Kubernetes can't reckon it, and keeps saying so.
	if _, err := last.deleteOwned(ctx, "PodDisruptionBudget", key, &policyv1.PodDisruptionBudget{}, owner, metav1.DeletePropagationBackground, &remaining); err != nil {
		return remaining, err
	}
	if !foreign { // its pods are not ours either
		remaining.add(pods)
	}
	if len(remaining.Objects) > 0 {
		return remaining, nil
	}
	_, err = a.deleteOwned(ctx, "NetworkPolicy", key, &networkingv1.NetworkPolicy{}, owner, metav1.DeletePropagationBackground, &remaining)
	return remaining, err
}

// deleteOwned deletes an object of the owner's, and adds it to what remains unless it is gone. An object of somebody else's
// is foreign.
func (a Applier) deleteOwned(ctx context.Context, kind string, key client.ObjectKey, live client.Object, owner types.UID, propagation metav1.DeletionPropagation, remaining *Remaining) (foreign bool, err error) {
	err = a.read(ctx, key, live)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
	if controller := metav1.GetControllerOf(live); controller == nil || controller.UID != owner {
		return true, nil
	}
	what := kind + " " + key.Name
	if deleted := live.GetDeletionTimestamp(); deleted != nil {
		remaining.Objects = append(remaining.Objects, what)
		if deleted.After(remaining.Since) {
			remaining.Since = deleted.Time
		}
		return false, nil
	}
	// Who orphans an object takes its owner away: what was read must still be so.
	same := client.Preconditions{UID: new(live.GetUID()), ResourceVersion: new(live.GetResourceVersion())}
	if err := a.Client.Delete(ctx, live, same, client.PropagationPolicy(propagation)); client.IgnoreNotFound(err) != nil {
		remaining.Objects = append(remaining.Objects, what)
		return false, fmt.Errorf("deleting %s %s: %w", kind, key, err)
	}
	remaining.Since = time.Now()
	if propagation == metav1.DeletePropagationForeground || len(live.GetFinalizers()) > 0 {
		remaining.Objects = append(remaining.Objects, what)
	}
	return false, nil
}

// pods is the Memcached's pods, as the cache has them.
func (a Applier) pods(ctx context.Context, namespace, memcached string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := a.Client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(Selector(memcached))); err != nil {
		return nil, fmt.Errorf("listing the pods of memcached %s/%s: %w", namespace, memcached, err)
	}
	return pods.Items, nil
}

// deletionBegun says whether the Deployment, or what is left of it, is being deleted.
func (a Applier) deletionBegun(ctx context.Context, key client.ObjectKey, pods []corev1.Pod) (bool, error) {
	var deployment appsv1.Deployment
	switch err := a.Client.Get(ctx, key, &deployment); {
	case apierrors.IsNotFound(err):
		return len(pods) > 0 && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.DeletionTimestamp.IsZero() }), nil
	case err != nil:
		return false, fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	return !deployment.DeletionTimestamp.IsZero(), nil
}

// counted says that a pod is one that its ReplicaSet counts.
func counted(pod corev1.Pod) bool {
	return pod.DeletionTimestamp.IsZero() && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

// add adds pods to what remains.
func (r *Remaining) add(pods []corev1.Pod) {
	for _, pod := range pods {
		r.Objects = append(r.Objects, "Pod "+pod.Name)
		if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
			continue
		}
		if deleted := pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second); deleted.After(r.Since) {
			r.Since = deleted
		}
	}
	slices.Sort(r.Objects)
}
