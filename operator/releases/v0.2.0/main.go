// The manager of release 0.2.0: v1beta1 beside v1alpha1, with conversion between them, defaults and validation for
// v1beta1, and conditions in its status. v1alpha1 stays the stored version, so that those who use it need no webhook
// for anything, whatever state the upgrade to this release is in. The CRD does not have v1 yet, but conversion knows it:
// while the next release is installed, this manager converts for its CRD.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
	"github.com/olmkit/olmkit/operator/internal/conversion"
	"github.com/olmkit/olmkit/operator/internal/manager"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=system
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=system

func main() {
	manager.Main(manager.Release{
		Version:     "0.2.0",
		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme, v1.AddToScheme},
		Webhooks:    true,
		Setup:       setup,
	})
}

func setup(mgr ctrl.Manager, settings manager.Settings) error {
	if err := conversion.Serve(mgr, &v1beta1.Memcached{}, conversion.AlphaWithBeta(), conversion.V1WithBeta()); err != nil {
		return err
	}
	if err := ctrl.NewWebhookManagedBy(mgr, &v1beta1.Memcached{}).WithDefaulter(defaulter{}).WithValidator(validator{}).Complete(); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1beta1.Memcached{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Complete(&reconciler{client: mgr.GetClient(), api: mgr.GetAPIReader(), events: mgr.GetEventRecorder("memcached-operator"), image: settings.Image})
}

type reconciler struct {
	client client.Client
	api    client.Reader
	events events.EventRecorder
	image  string
}

// Reconcile applies the operands of a Memcached and reports on them.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var m v1beta1.Memcached
	if err := r.client.Get(ctx, request.NamespacedName, &m); err != nil || !m.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	applier, w := operand.Applier{Client: r.client, API: r.api}, desired(&m, r.image)
	_, _, applyErr := applier.Deployment(ctx, w)
	if applyErr == nil {
		applyErr = applier.Service(ctx, w)
	}
	seen, err := operand.Observe(ctx, r.client, m.Namespace, m.Name)
	if err != nil {
		return ctrl.Result{}, errors.Join(applyErr, err)
	}
	before := m.DeepCopy()
	m.Status.Nodes = slices.Sorted(maps.Keys(seen.Nodes))
	for _, condition := range operand.Conditions(m.Generation, w.Replicas, seen, applyErr) {
		meta.SetStatusCondition(&m.Status.Conditions, condition)
	}
	if equality.Semantic.DeepEqual(before.Status, m.Status) {
		return ctrl.Result{}, applyErr
	}
	if err := r.client.Status().Patch(ctx, &m, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, errors.Join(applyErr, fmt.Errorf("writing the status of memcached %s: %w", request, err))
	}
	if is := meta.IsStatusConditionTrue(m.Status.Conditions, "Degraded"); is && !meta.IsStatusConditionTrue(before.Status.Conditions, "Degraded") {
		condition := meta.FindStatusCondition(m.Status.Conditions, "Degraded")
		r.events.Eventf(&m, nil, corev1.EventTypeWarning, condition.Type+string(metav1.ConditionTrue), "Reconcile", "%s", condition.Message)
	}
	return ctrl.Result{}, applyErr
}

func desired(m *v1beta1.Memcached, image string) operand.Desired {
	w := operand.DesiredFor(m, v1beta1.GroupVersion.String())
	w.Replicas = m.Spec.Size
	if w.Replicas == 0 {
		w.Replicas = v1beta1.DefaultSize
	}
	w.Image = image
	if m.Spec.Image != "" {
		w.Image = m.Spec.Image
	}
	w.Port = m.Spec.ContainerPort
	return w
}
