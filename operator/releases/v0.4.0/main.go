// The manager of release 0.4.0: v1alpha1 is deprecated, and who still writes it is named in an event; pods are watched, so
// that a status names the nodes that are there now.
package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

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
		Version:       "0.4.0",
		AddToScheme:   []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme, v1.AddToScheme},
		Webhooks:      true,
		ManagedFields: true,
		Setup:         setup,
	})
}

func setup(mgr ctrl.Manager, settings manager.Settings) error {
	if err := conversion.Serve(mgr, &v1.Memcached{}, conversion.AlphaWithV1(), conversion.BetaWithV1()); err != nil {
		return err
	}
	if err := ctrl.NewWebhookManagedBy(mgr, &v1.Memcached{}).WithDefaulter(admission.Defaulter{Image: settings.Image}).WithValidator(admission.Validator{}).Complete(); err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		For(&v1.Memcached{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&corev1.Pod{}, controller.OwnerOfPod(), builder.WithPredicates(controller.PodChanged())).
		Complete(controller.NewBasic(mgr, settings.Image)); err != nil {
		return err
	}
	return warnOfOldWriters(mgr)
}
