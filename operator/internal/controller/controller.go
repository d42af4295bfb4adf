// Package controller reconciles Memcacheds of API version v1: in ordered steps, each of which writes only what differs.
package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/internal/conversion"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

// takenRetry is how often a name that belongs to somebody else is looked at again: the operator does not watch what it
// does not own.
const takenRetry = time.Minute

// conflictRetry is how long the cache is given to learn of a write that was faster than the operator's.
const conflictRetry = 200 * time.Millisecond

// The cache is given cacheTimeout to learn of the operator's own write, and looked at first after cacheRetry, then after twice
// as long each time. One that does not know it after that never will: etcd was restored from before the write.
const (
	cacheRetry   = 20 * time.Millisecond
	cacheTimeout = time.Minute
)

// Reconciler brings about what Memcacheds ask for, in the steps that its release takes.
type Reconciler struct {
	Client client.Client
	// API reads past the cache.
	API    client.Reader
	Events events.EventRecorder
	// Image is the operand's image where a Memcached names none.
	Image string
	// Steps are taken in order.
	Steps []Step
	// Selector says by their labels which Memcacheds are worked on; nil for all.
	Selector labels.Selector
	// written is the newest write of each Memcached by the reconciler itself.
	written sync.Map
	// Mismatched, if not nil, is told of each Deployment that was found with another size than its Memcached asks for.
	Mismatched func(namespace, name string)
}

// New makes the reconciler of a manager.
func New(mgr ctrl.Manager, image string, steps ...Step) *Reconciler {
	return &Reconciler{Client: mgr.GetClient(), API: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("memcached-operator"), Image: image, Steps: steps}
}

// Reconcile brings one Memcached nearer to what it asks for, or, once it is deleted, to its end. What fails because the manager
// ends is no error: the next manager begins with every object.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, request)
	if errors.Is(ctx.Err(), context.Canceled) {
		return reconcile.Result{}, nil
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var m v1.Memcached
	if err := r.Client.Get(ctx, request.NamespacedName, &m); err != nil {
		r.written.Delete(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if wait := r.behind(&m); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if r.Selector != nil && !r.Selector.Matches(labels.Set(m.Labels)) {
		return reconcile.Result{}, nil
	}
	if !m.DeletionTimestamp.IsZero() {
		return r.bid(ctx, &m)
	}
	var trouble error
	p := &pass{Reconciler: r}
	for _, step := range r.Steps {
		trouble = step.run(ctx, p, &m)
		if ctx.Err() != nil {
			return reconcile.Result{}, trouble
		}
		if trouble != nil {
			ctrl.LoggerFrom(ctx).Info("could not finish", "step", step.name, "cause", trouble.Error())
			break
		}
	}
	if apierrors.IsConflict(trouble) {
		return verdict(trouble) // nothing is wrong with the object
	}
	if err := r.report(ctx, &m, p.generation, trouble); err != nil {
		return reconcile.Result{}, errors.Join(trouble, err)
	}
	return verdict(trouble)
}

// write is a write of a Memcached.
type write struct {
	version string // the resourceVersion that it led to
	at      time.Time
}

// behind returns how long to wait for the cache if it does not know yet what was written to m, else 0: whoever judged by such
// a state would announce what was announced, or take a status for written that is not.
func (r *Reconciler) behind(m *v1.Memcached) time.Duration {
	written, ok := r.lastWrite(m)
	if !ok {
		return 0
	}
	order, err := resourceversion.CompareResourceVersion(m.ResourceVersion, written.version)
	age := time.Since(written.at)
	if err != nil || order >= 0 || age > cacheTimeout {
		return 0
	}
	return max(cacheRetry, age)
}

// wrote remembers what the API server answered to a write of m.
func (r *Reconciler) wrote(m *v1.Memcached) {
	r.written.Store(client.ObjectKeyFromObject(m), write{m.ResourceVersion, time.Now()})
}

func (r *Reconciler) lastWrite(m *v1.Memcached) (write, bool) {
	written, ok := r.written.Load(client.ObjectKeyFromObject(m))
	if !ok {
		return write{}, false
	}
	return written.(write), true
}

// verdict decides about another try. What only the object's author can mend is not tried again before it changes, and what
// is gone, the object or its namespace, not at all; what the API server asks to be asked later is; what somebody else
// wrote first is read again soon. All else is an error, and waits longer each time, as the queue's rate limiter has it.
func verdict(trouble error) (reconcile.Result, error) {
	taken := (*operand.TakenError)(nil)
	delay, later := apierrors.SuggestsClientDelay(trouble)
	switch {
	case errors.As(trouble, &taken):
		return reconcile.Result{RequeueAfter: takenRetry}, nil
	case apierrors.IsInvalid(trouble), apierrors.HasStatusCause(trouble, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(trouble):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(trouble):
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	case later:
		return reconcile.Result{RequeueAfter: max(time.Duration(delay)*time.Second, conflictRetry)}, nil
	default:
		return reconcile.Result{}, trouble
	}
}

// report writes what is observed into the status, if it says anything new. A Deployment that the cache has in an older
// generation than this is not rolled out, whatever it looks like there.
func (r *Reconciler) report(ctx context.Context, m *v1.Memcached, generation int64, trouble error) error {
	seen, err := operand.Observe(ctx, r.Client, m.Namespace, m.Name)
	if err != nil {
		return err
	}
	seen.Settled = seen.Settled && seen.Generation >= generation
	before := m.DeepCopy()
	m.Status.Nodes = nil
	for name, ready := range seen.Nodes {
		if m.Status.Nodes == nil {
			m.Status.Nodes = map[string]v1.Node{}
		}
		m.Status.Nodes[name] = v1.Node{Ready: ready}
	}
	m.Status.ReadyReplicas = seen.Ready
	m.Status.ObservedGeneration = m.Generation
	operand.Conditions(&m.Status.Conditions, m.Generation, replicas(m), seen, trouble)
	if !m.DeletionTimestamp.IsZero() {
		*meta.FindStatusCondition(m.Status.Conditions, v1.ConditionProgressing) = dissolution(before)
	}
	if equality.Semantic.DeepEqual(before.Status, m.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, m, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of memcached %s/%s: %w", m.Namespace, m.Name, err))
	}
	r.wrote(m)
	r.announce(before, m)
	return nil
}

// announce makes an event of each condition that changed its status. Each is about a new revision of the object, so the
// recorder never counts one as the repetition of another, which would keep its words from being read, and takes the right to
// patch events.
func (r *Reconciler) announce(before, after *v1.Memcached) {
	for _, now := range after.Status.Conditions {
		was := meta.FindStatusCondition(before.Status.Conditions, now.Type)
		if was != nil && was.Status == now.Status || was == nil && now.Status == metav1.ConditionFalse {
			continue
		}
		kind := corev1.EventTypeNormal
		if after.DeletionTimestamp.IsZero() && (now.Type == v1.ConditionDegraded) == (now.Status == metav1.ConditionTrue) && now.Type != v1.ConditionProgressing {
			kind = corev1.EventTypeWarning
		}
		message := now.Message
		if message == "" {
			message = now.Reason
		}
		r.Events.Eventf(after, nil, kind, now.Type+string(now.Status), "Reconcile", "%s", message)
	}
}

func replicas(m *v1.Memcached) int32 {
	if m.Spec.Replicas == 0 {
		return v1.DefaultReplicas
	}
	return m.Spec.Replicas
}

// Desired is what a Memcached asks for, with image where it names none.
func Desired(m *v1.Memcached, image string) operand.Desired {
	w := operand.DesiredFor(m, v1.GroupVersion.String())
	w.Replicas = replicas(m)
	w.Image = image
	if asked := m.Spec.Image; asked != nil {
		complete := *asked
		if complete.Repository == "" && (complete.Tag != "" || complete.Digest != "") {
			complete.Repository = conversion.SplitImage(image).Repository
		}
		if reference := conversion.JoinImage(&complete); reference != "" {
			w.Image = reference
		}
		w.PullPolicy = asked.PullPolicy
	}
	w.Port = m.Spec.Service.Port
	w.MemoryMegabytes = m.Spec.Cache.MemoryMegabytes
	w.MaxConnections = m.Spec.Cache.MaxConnections
	w.ExtraArgs = m.Spec.Cache.ExtraArgs
	if r := m.Spec.Resources; r != nil {
		w.Resources.Requests = resourceList(r.Requests)
		w.Resources.Limits = resourceList(r.Limits)
	}
	return w
}

func resourceList(l v1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	if l.CPU != nil {
		out[corev1.ResourceCPU] = *l.CPU
	}
	if l.Memory != nil {
		out[corev1.ResourceMemory] = *l.Memory
	}
	return out
}

// Changed passes the updates of a Memcached that call for work: another spec, other labels, or a status that does not
// answer the spec. The generation alone would not do. It counts changes as they look in the version that was written; a
// write in an older version that drops the annotation with what only v1 says changes the v1 spec and status, not the
// generation. Labels count since the manager's selector may ask for them.
func Changed() predicate.Predicate {
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

// Restated passes the updates of a Memcached whose status somebody else wrote: what it says is the operator's to say. An
// update that arrives before the answer to the write that made it passes, too, and leads to a look that finds nothing.
func (r *Reconciler) Restated() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1.Memcached)
		after, isV1 := e.ObjectNew.(*v1.Memcached)
		if !ok || !isV1 || equality.Semantic.DeepEqual(before.Status, after.Status) {
			return false
		}
		written, _ := r.lastWrite(after)
		return written.version != after.ResourceVersion
	}}
}

// Touched passes the updates of an object that say more than its status: what its controller counts is no concern of ours.
func Touched() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{},
		predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return !equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences()) ||
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
