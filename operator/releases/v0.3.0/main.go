// The manager of release 0.3.0: v1, the hub of conversion and the stored version, beside v1beta1 and v1alpha1. It does
// not watch the Services that it owns, so that one which was deleted comes back only when something else happens to
// its Memcached; release 0.3.1 mends that.
package main

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
	"github.com/olmkit/olmkit/operator/internal/admission"
	"github.com/olmkit/olmkit/operator/internal/controller"
	"github.com/olmkit/olmkit/operator/internal/conversion"
	"github.com/olmkit/olmkit/operator/internal/manager"
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
		Version:     "0.3.0",
		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme, v1.AddToScheme},
		Webhooks:    true,
		Setup:       setup,
	})
}

func setup(mgr ctrl.Manager, settings manager.Settings) error {
	if err := conversion.Serve(mgr, &v1.Memcached{}, conversion.AlphaWithV1(), conversion.BetaWithV1()); err != nil {
		return err
	}
	if err := ctrl.NewWebhookManagedBy(mgr, &v1.Memcached{}).WithDefaulter(admission.Defaulter{Image: settings.Image}).WithValidator(admission.Validator{}).Complete(); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1.Memcached{}).
		Owns(&appsv1.Deployment{}).
		Complete(controller.NewBasic(mgr, settings.Image))
}
