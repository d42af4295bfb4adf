package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/internal/manager"
	"github.com/olmkit/olmkit/operator/internal/monitoring"
)

// Add gives a manager the controller as it is since release 0.5.0: all steps, and watches of all that they write.
func Add(mgr ctrl.Manager, settings manager.Settings) error {
	reconciler := New(mgr, settings.Image, Stay, CheckSpec, Deployment, Service, DisruptionBudget, NetworkPolicy)
	reconciler.Selector, reconciler.Mismatched = settings.Selector, monitoring.Mismatched
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1.Memcached{}, builder.WithPredicates(predicate.Or(Changed(), reconciler.Restated()))).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&policyv1.PodDisruptionBudget{}, builder.WithPredicates(Touched())).
		Owns(&networkingv1.NetworkPolicy{}).
		Watches(&corev1.Pod{}, OwnerOfPod(), builder.WithPredicates(PodChanged())).
		WithOptions(controller.Options{RateLimiter: settings.Retries()}).
		Complete(reconciler)
}
