// Package controller reconciles Memcacheds of API version v1: in ordered steps, each of which writes only what differs.
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/internal/admission"
	"github.com/olmkit/olmkit/operator/internal/conversion"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

// takenRetry is how often a name that belongs to somebody else is looked at again: the operator does not watch what it
// does not own.
const takenRetry = time.Minute

// Reconciler brings about what Memcacheds ask for.
type Reconciler struct {
	Client client.Client
	// API reads past the cache.
	API    client.Reader
	Events events.EventRecorder
	// Image is the operand's image where a Memcached names none.
	Image string
}

// New makes the reconciler of a manager.
func New(mgr ctrl.Manager, image string) *Reconciler {
	return &Reconciler{Client: mgr.GetClient(), API: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("memcached-operator"), Image: image}
}

// step is one part of a reconciliation. An error ends it; the status is written all the same.
type step struct {
	name string
	run  func(context.Context, *v1.Memcached) error
}

func (r *Reconciler) steps() []step {
	applier := operand.Applier{Client: r.Client, API: r.API}
	return []step{
		{"check the spec", func(_ context.Context, m *v1.Memcached) error { return admission.Check(m) }},
		{"apply the deployment", func(ctx context.Context, m *v1.Memcached) error { return applier.Deployment(ctx, Wish(m, r.Image)) }},
		{"apply the service", func(ctx context.Context, m *v1.Memcached) error { return applier.Service(ctx, Wish(m, r.Image)) }},
	}
}

// Reconcile brings one Memcached nearer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var m v1.Memcached
	if err := r.Client.Get(ctx, request.NamespacedName, &m); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !m.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil // the garbage collector takes what the object owns
	}
	var trouble error
	for _, step := range r.steps() {
		if trouble = step.run(ctx, &m); trouble != nil {
			ctrl.LoggerFrom(ctx).Info("could not finish", "step", step.name, "cause", trouble.Error())
			break
		}
	}
	if err := r.report(ctx, &m, trouble); err != nil {
		return reconcile.Result{}, errors.Join(trouble, err)
	}
	return verdict(trouble)
}

// verdict decides about another try. What only the object's author can mend is not tried again before it changes.
func verdict(trouble error) (reconcile.Result, error) {
	taken := (*operand.TakenError)(nil)
	switch {
	case errors.As(trouble, &taken):
		return reconcile.Result{RequeueAfter: takenRetry}, nil
	case apierrors.IsInvalid(trouble):
		return reconcile.Result{}, nil
	default:
		return reconcile.Result{}, trouble
	}
}

// report writes what is observed into the status, if it says anything new.
func (r *Reconciler) report(ctx context.Context, m *v1.Memcached, trouble error) error {
	seen, err := operand.Observe(ctx, r.Client, m.Namespace, m.Name)
	if err != nil {
		return err
	}
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
	if equality.Semantic.DeepEqual(before.Status, m.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, m, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of memcached %s/%s: %w", m.Namespace, m.Name, err))
	}
	r.announce(before, m)
	return nil
}

// announce makes an event of each condition that changed its status.
func (r *Reconciler) announce(before, after *v1.Memcached) {
	for _, now := range after.Status.Conditions {
		was := meta.FindStatusCondition(before.Status.Conditions, now.Type)
		if was != nil && was.Status == now.Status || was == nil && now.Status == metav1.ConditionFalse {
			continue
		}
		kind := corev1.EventTypeNormal
		if (now.Type == v1.ConditionDegraded) == (now.Status == metav1.ConditionTrue) && now.Type != v1.ConditionProgressing {
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

// Wish is what a Memcached asks for, with image where it names none.
func Wish(m *v1.Memcached, image string) operand.Wish {
	w := operand.WishFor(m, v1.GroupVersion.String())
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

// Changed passes the updates of a Memcached that call for work: another spec, or a status that does not answer it.
//
// The generation alone would not do. It counts changes as they look in the version that was written; a write in an
// older version that drops the annotation with what only v1 says changes the v1 spec and status, not the generation.
func Changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1.Memcached)
		after, isV1 := e.ObjectNew.(*v1.Memcached)
		if !ok || !isV1 {
			return true
		}
		return before.Generation != after.Generation || after.Status.ObservedGeneration != after.Generation ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			!equality.Semantic.DeepEqual(before.Spec, after.Spec)
	}}
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
