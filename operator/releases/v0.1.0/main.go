// The manager of release 0.1.0: API version v1alpha1 alone, a Deployment and a Service for each object, no webhooks.
package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/internal/manager"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=system
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=system

func main() {
	manager.Main(manager.Release{
		Version:     "0.1.0",
		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
		Setup:       setup,
	})
}

func setup(mgr ctrl.Manager, settings manager.Settings) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Memcached{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Complete(&reconciler{client: mgr.GetClient(), api: mgr.GetAPIReader(), image: settings.Image})
}

type reconciler struct {
	client client.Client
	api    client.Reader
	image  string
}

// Reconcile applies the operands of a Memcached and lists its pods.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var m v1alpha1.Memcached
	if err := r.client.Get(ctx, request.NamespacedName, &m); err != nil || !m.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	applier, w := operand.Applier{Client: r.client, API: r.api}, desired(&m, r.image)
	if _, _, err := applier.Deployment(ctx, w); err != nil {
		return ctrl.Result{}, err
	}
	if err := applier.Service(ctx, w); err != nil {
		return ctrl.Result{}, err
	}
	seen, err := operand.Observe(ctx, r.client, m.Namespace, m.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	nodes := slices.Sorted(maps.Keys(seen.Nodes))
	var result ctrl.Result
	if len(nodes) != int(w.Replicas) {
		// Nothing tells when the cache has the pods that the Deployment already counts.
		result.RequeueAfter = time.Second
	}
	if slices.Equal(nodes, m.Status.Nodes) {
		return result, nil
	}
	before := m.DeepCopy()
	m.Status.Nodes = nodes
	if err := r.client.Status().Patch(ctx, &m, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status of memcached %s: %w", request, err)
	}
	return result, nil
}

func desired(m *v1alpha1.Memcached, image string) operand.Desired {
	w := operand.DesiredFor(m, v1alpha1.GroupVersion.String())
	w.Replicas = m.Spec.Size
	w.Image = image
	return w
}
