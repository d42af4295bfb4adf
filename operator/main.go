// The memcached operator, a model operator: this is the manager of its newest stable release, 0.5.0. v1alpha1 is not
// served any more, and what is still stored in it is stored anew as v1. The managers of earlier releases, and of the
// next one's candidate, are in the releases folder.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
	"github.com/olmkit/olmkit/operator/internal/admission"
	"github.com/olmkit/olmkit/operator/internal/controller"
	"github.com/olmkit/olmkit/operator/internal/conversion"
	"github.com/olmkit/olmkit/operator/internal/manager"
	"github.com/olmkit/olmkit/operator/internal/migration"
	"github.com/olmkit/olmkit/operator/internal/monitoring"
)

// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=list;watch;patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create,namespace=system
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=memcached-operator.cache.example.com,verbs=get;update,namespace=system
// +kubebuilder:rbac:groups="",resources=events,verbs=create,namespace=system
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=memcacheds.cache.example.com,verbs=get
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,resourceNames=memcacheds.cache.example.com,verbs=patch

func main() {
	manager.Main(manager.Release{
		Version:     "0.5.0",
		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme, v1.AddToScheme, monitoring.AddToScheme},
		Webhooks:    true,
		Setup:       setup,
	})
}

func setup(mgr ctrl.Manager, settings manager.Settings) error {
	if err := conversion.Serve(mgr, &v1.Memcached{}, conversion.AlphaWithV1(), conversion.BetaWithV1()); err != nil {
		return err
	}
	if err := admission.Serve(mgr, settings.Image); err != nil {
		return err
	}
	if err := controller.New(mgr, settings).SetupWithManager(mgr); err != nil {
		return err
	}
	if err := monitoring.Add(mgr, settings); err != nil {
		return err
	}
	if !settings.Migrate {
		return nil
	}
	return mgr.Add(&migration.Migration{Client: mgr.GetClient(), API: mgr.GetAPIReader(), Log: mgr.GetLogger().WithName("migration")})
}
