// Package controller reconciles Memcached objects of API version v1.
package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/internal/admission"
	"github.com/olmkit/olmkit/operator/internal/manager"
	"github.com/olmkit/olmkit/operator/internal/monitoring"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

// takenRetry is how often a name that belongs to another owner is checked again: the operator does not watch what it does
// not own.
const takenRetry = time.Minute

// rolloutStep is how long the status may keep a step of a rollout to itself.
const rolloutStep = time.Second

// conflictRetry is how long the cache is given to learn of a write that was faster than the operator's.
const conflictRetry = 200 * time.Millisecond

// MemcachedReconciler reconciles a Memcached object.
type MemcachedReconciler struct {
	client.Client
	// APIReader reads past the cache.
	APIReader client.Reader
	Recorder  events.EventRecorder
	// Image is the operand's image where a Memcached names none.
	Image string
	// Selector says by their labels which Memcacheds are reconciled; nil for all.
	Selector labels.Selector
	// RateLimiter is the queue's; nil for controller-runtime's default.
	RateLimiter workqueue.TypedRateLimiter[ctrl.Request]
	// Mismatched, if not nil, is called for each Deployment that was found with another size than its Memcached asks for.
	Mismatched func(namespace, name string)
	// Basic leaves out what releases before 0.5.0 did not have: the finalizer, PodDisruptionBudgets and NetworkPolicies.
	Basic bool
	// Scalable writes the pods' labels into the status, where the scale subresource finds them; since 0.6.0.
	Scalable bool
	// ConfigMaps adds the arguments of the ConfigMap that a Memcached names; since 0.6.0.
	ConfigMaps bool

	// written is the newest write of each Memcached by the reconciler itself.
	written sync.Map
	// applied is the newest write of each Deployment.
	applied sync.Map
	// postponed is since when there has been something to write into the status of each Memcached that can wait.
	postponed sync.Map
	// deletions is what is known of the deletion of each Memcached's operand.
	deletions sync.Map
}

// New returns the reconciler of a manager.
func New(mgr ctrl.Manager, settings manager.Settings) *MemcachedReconciler {
	r := NewBasic(mgr, settings.Image)
	r.Basic = false
	r.Selector = settings.Selector
	r.RateLimiter = settings.Retries()
	r.Mismatched = monitoring.Mismatched
	return r
}

// NewBasic returns the reconciler of a manager of a release before 0.5.0.
func NewBasic(mgr ctrl.Manager, image string) *MemcachedReconciler {
	return &MemcachedReconciler{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Recorder:  mgr.GetEventRecorder("memcached-operator"),
		Image:     image,
		Basic:     true,
	}
}

// SetupWithManager adds the controller to a manager, with watches of all that it writes.
func (r *MemcachedReconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		For(&v1.Memcached{}, builder.WithPredicates(predicate.Or(memcachedChanged(), r.statusOverwritten()))).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&policyv1.PodDisruptionBudget{}, builder.WithPredicates(changedBesidesStatus())).
		Owns(&networkingv1.NetworkPolicy{}).
		Watches(&corev1.Pod{}, OwnerOfPod(), builder.WithPredicates(PodChanged())).
		WithOptions(controller.Options{RateLimiter: r.RateLimiter})
	if r.ConfigMaps {
		if err := r.watchConfigMaps(mgr, b); err != nil {
			return err
		}
	}
	return b.Complete(r)
}

// Reconcile applies the operand of a Memcached and updates its status, or, once it is deleted, deletes the operand. An error
// because the manager stops is none: the next manager reconciles every object.
func (r *MemcachedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, req)
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctrl.Result{}, nil
	}
	return result, err
}

func (r *MemcachedReconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var m v1.Memcached
	if err := r.Get(ctx, req.NamespacedName, &m); err != nil {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if wait := behind(&r.written, &m); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if r.Selector != nil && !r.Selector.Matches(labels.Set(m.Labels)) {
		return ctrl.Result{}, nil
	}
	if !m.DeletionTimestamp.IsZero() {
		return r.reconcileDelete(ctx, &m)
	}
	generation, err := r.reconcileOperand(ctx, &m)
	if ctx.Err() != nil {
		return ctrl.Result{}, err
	}
	if err != nil {
		logf.FromContext(ctx).Info("could not reconcile", "cause", err.Error())
	}
	if apierrors.IsConflict(err) {
		return resultFor(err) // nothing is wrong with the object
	}
	wait, statusErr := r.updateStatus(ctx, &m, generation, err)
	if statusErr != nil {
		return ctrl.Result{}, errors.Join(err, statusErr)
	}
	if wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return resultFor(err)
}

// forget drops what is remembered of a Memcached that is gone.
func (r *MemcachedReconciler) forget(m client.ObjectKey) {
	for _, of := range []*sync.Map{&r.written, &r.postponed, &r.deletions} {
		of.Delete(m)
	}
	r.applied.Delete(client.ObjectKey{Namespace: m.Namespace, Name: operand.Name(m.Name)})
}

// reconcileOperand brings the operand about, and returns the generation of the Deployment that it made, 0 if it made none.
// Each step writes only what differs.
func (r *MemcachedReconciler) reconcileOperand(ctx context.Context, m *v1.Memcached) (generation int64, err error) {
	if !r.Basic {
		if err := r.addFinalizer(ctx, m); err != nil {
			return 0, err
		}
	}
	if m, err = r.withConfigMap(ctx, m); err != nil {
		return 0, err
	}
	// What admission would have refused, had its webhook been asked, or known the ConfigMap.
	if err := admission.Check(m); err != nil {
		return 0, err
	}
	if generation, err = r.reconcileDeployment(ctx, m); err != nil {
		return generation, err
	}
	if err := r.reconcileService(ctx, m); err != nil {
		return generation, err
	}
	if r.Basic {
		return generation, nil
	}
	if err := r.reconcilePodDisruptionBudget(ctx, m); err != nil {
		return generation, err
	}
	return generation, r.reconcileNetworkPolicy(ctx, m)
}

func (r *MemcachedReconciler) reconcileDeployment(ctx context.Context, m *v1.Memcached) (generation int64, err error) {
	desired := Desired(m, r.Image)
	key := client.ObjectKey{Namespace: m.Namespace, Name: operand.Name(m.Name)}
	if r.Mismatched != nil {
		var live appsv1.Deployment
		err := r.Get(ctx, key, &live)
		if err == nil && live.Spec.Replicas != nil && *live.Spec.Replicas != desired.Replicas && behind(&r.applied, &live) == 0 {
			r.Mismatched(m.Namespace, m.Name)
		}
	}
	generation, version, err := r.applier().Deployment(ctx, desired)
	if version != "" {
		wrote(&r.applied, key, version)
	}
	return generation, err
}

func (r *MemcachedReconciler) reconcileService(ctx context.Context, m *v1.Memcached) error {
	return r.applier().Service(ctx, Desired(m, r.Image))
}

func (r *MemcachedReconciler) reconcilePodDisruptionBudget(ctx context.Context, m *v1.Memcached) error {
	return r.applier().DisruptionBudget(ctx, Desired(m, r.Image))
}

func (r *MemcachedReconciler) reconcileNetworkPolicy(ctx context.Context, m *v1.Memcached) error {
	return r.applier().NetworkPolicy(ctx, Desired(m, r.Image))
}

func (r *MemcachedReconciler) applier() operand.Applier {
	return operand.Applier{Client: r.Client, API: r.APIReader}
}

// resultFor says when to reconcile again after err. What only the object's author can correct is not tried again before it
// changes, and what is gone, the object or its namespace, not at all; what the API server asks to be asked later is; what
// another writer wrote first is read again soon. All else is an error, and waits longer each time, as the queue's rate limiter
// has it.
func resultFor(err error) (ctrl.Result, error) {
	taken := (*operand.TakenError)(nil)
	delay, later := apierrors.SuggestsClientDelay(err)
	switch {
	case errors.As(err, &taken):
		return ctrl.Result{RequeueAfter: takenRetry}, nil
	case apierrors.IsInvalid(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	case later:
		return ctrl.Result{RequeueAfter: max(time.Duration(delay)*time.Second, conflictRetry)}, nil
	default:
		return ctrl.Result{}, err
	}
}

// updateStatus writes what is observed, and reconcileErr, into the status, if it says anything new. A Deployment that the
// cache has in an older generation than this is not rolled out, whatever it looks like there. It returns how long what is
// new can wait, with what comes next, 0 if nothing waits.
func (r *MemcachedReconciler) updateStatus(ctx context.Context, m *v1.Memcached, generation int64, reconcileErr error) (time.Duration, error) {
	seen, err := operand.Observe(ctx, r.Client, m.Namespace, m.Name)
	if err != nil {
		return 0, err
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
	if r.Scalable {
		m.Status.Selector = operand.Selector(m.Name).String()
	}
	m.Status.ObservedGeneration = m.Generation
	for _, condition := range operand.Conditions(m.Generation, replicas(m), seen, reconcileErr) {
		if condition.Type == v1.ConditionProgressing && !m.DeletionTimestamp.IsZero() {
			setDeleting(m)
			continue
		}
		meta.SetStatusCondition(&m.Status.Conditions, condition)
	}
	key := client.ObjectKeyFromObject(m)
	if equality.Semantic.DeepEqual(before.Status, m.Status) {
		r.postponed.Delete(key)
		return 0, nil
	}
	if reconcileErr == nil && rollsOut(before, m) {
		since, _ := r.postponed.LoadOrStore(key, time.Now())
		if wait := rolloutStep - time.Since(since.(time.Time)); wait > 0 {
			return wait, nil
		}
	}
	r.postponed.Delete(key)
	if err := r.Status().Patch(ctx, m, client.MergeFrom(before)); err != nil {
		return 0, client.IgnoreNotFound(fmt.Errorf("writing the status of memcached %s/%s: %w", m.Namespace, m.Name, err))
	}
	wrote(&r.written, key, m.ResourceVersion)
	r.recordEvents(before, m)
	return 0, nil
}

// rollsOut says that a rollout goes on without anything that went wrong: its steps are not worth a write each, and most rollouts
// are over soon.
func rollsOut(before, after *v1.Memcached) bool {
	if !after.DeletionTimestamp.IsZero() || !meta.IsStatusConditionTrue(after.Status.Conditions, v1.ConditionProgressing) {
		return false
	}
	for _, conditions := range [][]metav1.Condition{before.Status.Conditions, after.Status.Conditions} {
		if meta.IsStatusConditionTrue(conditions, v1.ConditionDegraded) {
			return false
		}
	}
	return !meta.IsStatusConditionTrue(before.Status.Conditions, v1.ConditionAvailable) || meta.IsStatusConditionTrue(after.Status.Conditions, v1.ConditionAvailable)
}

// recordEvents records an event for each condition that changed its status. Each is about a new revision of the object, so
// the recorder never counts one as the repetition of another, which would keep its words from being read, and takes the right
// to patch events.
func (r *MemcachedReconciler) recordEvents(before, after *v1.Memcached) {
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
		r.Recorder.Eventf(after, nil, kind, now.Type+string(now.Status), "Reconcile", "%s", message)
	}
}
