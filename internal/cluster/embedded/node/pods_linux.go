package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	corev1informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
)

// podWorkers is how many pods are compared with the API at the same time.
const podWorkers = 16

// retries has a pod that failed wait longer each time. Pods do not wait for each other.
func retries() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 10*time.Second)
}

// runPods runs the pods that the API has for this node, until ctx ends. A pod is put into the queue whenever it changes, there or
// here. One worker at a time has it, so its status is written in the order in which it changes.
func (n *Node) runPods(ctx context.Context) error {
	informer := corev1informers.NewFilteredPodInformer(n.config.Client, metav1.NamespaceAll, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", n.config.Name).String()
	})
	changed := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			n.queue.Add(key)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, DeleteFunc: changed, UpdateFunc: func(_, object any) { changed(object) },
	}); err != nil {
		return fmt.Errorf("watch the pods of Node %s: %w", n.config.Name, err)
	}
	context.AfterFunc(ctx, n.queue.ShutDown)
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	for range podWorkers {
		running.Go(func() {
			for n.syncNext(ctx, informer.GetStore()) {
			}
		})
	}
	running.Wait()
	return nil
}

// syncNext takes the next pod from the queue, and returns false when the queue is shut down.
func (n *Node) syncNext(ctx context.Context, objects cache.Store) bool {
	key, down := n.queue.Get()
	if down {
		return false
	}
	defer n.queue.Done(key)
	err := n.syncPod(ctx, objects, key)
	if err == nil {
		n.queue.Forget(key)
		return true
	}
	if !apierrors.IsConflict(err) && ctx.Err() == nil { // after a conflict the watch has the pod soon
		utilruntime.HandleErrorWithContext(ctx, err, "A pod differs from what the API has", "pod", key)
	}
	n.queue.AddRateLimited(key)
	return true
}

// syncPod starts, changes or ends the pod of a key as objects, the pods of the API, say, and tells the API how it is.
func (n *Node) syncPod(ctx context.Context, objects cache.Store, key string) error {
	item, _, err := objects.GetByKey(key)
	if err != nil {
		return err
	}
	object, _ := item.(*corev1.Pod)
	p := n.find(key)
	if p != nil && (object == nil || object.UID != p.current().UID) { // deleted by force; one of its name waits for it to end
		if !p.end(graceOf(p.current())) {
			return nil
		}
		n.forget(key)
		p = nil
	}
	if object == nil {
		return nil
	}
	deleted := object.DeletionTimestamp != nil
	if p == nil {
		switch {
		case deleted:
			return n.remove(ctx, object)
		case !terminal(object):
			n.start(key, object)
		}
		return nil
	}
	p.update(object)
	ended := (deleted || terminal(object)) && p.end(graceOf(object))
	if err := p.report(ctx, object); err != nil {
		return err
	}
	if !deleted || !ended || p.removed {
		return nil
	}
	if err := n.remove(ctx, object); err != nil {
		return err
	}
	p.removed = true // the watch soon tells that it is gone, unless finalizers keep it
	return nil
}

// terminal tells whether a pod has a phase that it never leaves.
func terminal(object *corev1.Pod) bool {
	return object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed
}

// find returns the pod of a key, nil if this node has none.
func (n *Node) find(key string) *pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pods[key]
}

func (n *Node) start(key string, object *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[key] = n.newPod(object)
}

func (n *Node) forget(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, key)
}

// remove takes from the API a pod that is deleted and of which nothing runs.
func (n *Node) remove(ctx context.Context, object *corev1.Pod) error {
	err := n.config.Client.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0),
		Preconditions:      metav1.NewUIDPreconditions(string(object.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // a conflict: another pod has the name
		return fmt.Errorf("delete it: %w", err)
	}
	return nil
}

// report writes the status of a pod, which the API has as object, if it differs. Only the worker that has the pod calls it.
func (p *pod) report(ctx context.Context, object *corev1.Pod) error {
	if p.written != nil && newer(p.written, object) { // the watch does not have it yet
		object = p.written
	} else {
		p.written = nil
	}
	if terminal(object) {
		return nil
	}
	status := mergeStatus(&object.Status, p.snapshot())
	holdBack(status, &object.Status, object.Spec.ReadinessGates)
	if apiequality.Semantic.DeepEqual(status, &object.Status) {
		return nil
	}
	changed := *object
	changed.Status = *status
	written, err := p.node.config.Client.CoreV1().Pods(object.Namespace).UpdateStatus(ctx, &changed, metav1.UpdateOptions{})
	switch {
	case err == nil:
		p.written = written
	case apierrors.IsInvalid(err): // it will not become valid; the pod goes on, and can be deleted
		utilruntime.HandleErrorWithContext(ctx, err, "The API refuses the status of a pod", "pod", p.key)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("write its status: %w", err)
	}
	return nil
}

// newer tells whether a comes after b, which is the same pod.
func newer(a, b *corev1.Pod) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order > 0
}

// holdBack has status say that a pod is not ready while a condition that it waits for is not true; others write those. was is what the
// API has.
func holdBack(status, was *corev1.PodStatus, gates []corev1.PodReadinessGate) {
	isTrue := func(kind corev1.PodConditionType) func(corev1.PodCondition) bool {
		return func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue }
	}
	gate := slices.IndexFunc(gates, func(g corev1.PodReadinessGate) bool {
		return !slices.ContainsFunc(status.Conditions, isTrue(g.ConditionType))
	})
	ready := slices.IndexFunc(status.Conditions, isTrue(corev1.PodReady))
	if gate < 0 || ready < 0 {
		return
	}
	held := corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady", LastTransitionTime: now(),
		Message: fmt.Sprintf("the readiness gate %s is not true", gates[gate].ConditionType),
	}
	if i := slices.IndexFunc(was.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady }); i >= 0 && was.Conditions[i].Status == held.Status {
		held.LastTransitionTime = was.Conditions[i].LastTransitionTime
	}
	status.Conditions[ready] = held
}

// mergeStatus returns a pod's status in the API with what this node knows of it. What others write there stays.
func mergeStatus(api, own *corev1.PodStatus) *corev1.PodStatus {
	status := api.DeepCopy()
	status.Phase, status.StartTime = own.Phase, own.StartTime
	status.HostIP, status.HostIPs, status.PodIP, status.PodIPs = own.HostIP, own.HostIPs, own.PodIP, own.PodIPs
	status.InitContainerStatuses, status.ContainerStatuses = own.InitContainerStatuses, own.ContainerStatuses
	status.Conditions = slices.Clone(own.Conditions)
	for _, c := range api.Conditions {
		if !slices.ContainsFunc(own.Conditions, func(o corev1.PodCondition) bool { return o.Type == c.Type }) {
			status.Conditions = append(status.Conditions, c)
		}
	}
	return status
}
