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

// Deletion is what is known of the deletion of a Memcached's operand.
type Deletion struct {
	// Owner is the Memcached's UID.
	Owner types.UID
	// Known is the kinds of which the owner's object was deleted, or of which the API server said that there is none: of these,
	// what the cache has not is gone.
	Known map[string]bool
}

// Delete deletes the operand of a Memcached: the Service and its endpoints, and once clients can't
// find the servers any more, the Deployment and its pods, and at last what guarded these. It does not wait, and is to be
// called again until nothing remains. What another owner has under the same names is left alone.
func (a Applier) Delete(ctx context.Context, namespace, memcached string, deletion Deletion) (Remaining, error) {
	var remaining Remaining
	key := client.ObjectKey{Namespace: namespace, Name: Name(memcached)}
	pods, err := a.pods(ctx, namespace, memcached)
	if err != nil {
		return remaining, err
	}
	if _, err := a.deleteOwned(ctx, "Service", key, &corev1.Service{}, deletion, metav1.DeletePropagationForeground, &remaining); err != nil || len(remaining.Objects) > 0 {
		return remaining, err
	}
	// Pods are told to go after what would replace them is gone, so those that run vouch for it. Where none does, it has to be
	// waited for, which costs Kubernetes about twice the work.
	propagation := metav1.DeletePropagationForeground
	if slices.ContainsFunc(pods, counted) {
		propagation = metav1.DeletePropagationBackground
	}
	foreign, err := a.deleteOwned(ctx, "Deployment", key, &appsv1.Deployment{}, deletion, propagation, &remaining)
	if err != nil {
		return remaining, err
	}
	// The garbage collector would take the rest, but not when the CRD goes, too: it asks for the owner, of a kind that nobody
	// knows any more, and tries for ever (k8s.io/kubernetes v1.36.3, pkg/controller/garbagecollector, restMappingError). Nothing
	// depends on it, so the garbage collector has no part in its end.
	//
	// The budget goes with the Deployment: for pods that nothing controls Kubernetes can't reckon it, and keeps saying so.
	if _, err := a.deleteOwned(ctx, "PodDisruptionBudget", key, &policyv1.PodDisruptionBudget{}, deletion, metav1.DeletePropagationBackground, &remaining); err != nil {
		return remaining, err
	}
	if !foreign { // its pods are not ours either
		remaining.add(pods)
	}
	if len(remaining.Objects) > 0 {
		return remaining, nil
	}
	_, err = a.deleteOwned(ctx, "NetworkPolicy", key, &networkingv1.NetworkPolicy{}, deletion, metav1.DeletePropagationBackground, &remaining)
	return remaining, err
}

// deleteOwned deletes an object of the owner's, and adds it to what remains unless it is gone. An object of somebody else's
// is foreign.
func (a Applier) deleteOwned(ctx context.Context, kind string, key client.ObjectKey, live client.Object, deletion Deletion, propagation metav1.DeletionPropagation, remaining *Remaining) (foreign bool, err error) {
	if err = a.Client.Get(ctx, key, live); apierrors.IsNotFound(err) && !deletion.Known[kind] {
		err = a.API.Get(ctx, key, live)
	}
	if apierrors.IsNotFound(err) {
		deletion.Known[kind] = true
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
	if controller := metav1.GetControllerOf(live); controller == nil || controller.UID != deletion.Owner {
		return true, nil
	}
	what := kind + " " + key.Name
	if deleted := live.GetDeletionTimestamp(); deleted != nil {
		deletion.Known[kind] = true
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
	deletion.Known[kind] = true
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
