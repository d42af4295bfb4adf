// The manager of a release 0.4.0 whose conversion to v1beta1 has ports in too small a type.
package main

import (
	"context"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
	"github.com/olmkit/olmkit/operator/internal/admission"
	"github.com/olmkit/olmkit/operator/internal/controller"
	"github.com/olmkit/olmkit/operator/internal/conversion"
	"github.com/olmkit/olmkit/operator/internal/manager"
)

func main() {
	manager.Main(manager.Release{
		Version:     "0.4.0",
		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme, v1.AddToScheme},
		Webhooks:    true,
		Setup:       setup,
	})
}

func setup(mgr ctrl.Manager, settings manager.Settings) error {
	if err := conversion.Serve(mgr, &v1.Memcached{}, conversion.AlphaWithV1(), narrow{conversion.BetaWithV1()}); err != nil {
		return err
	}
	if err := ctrl.NewWebhookManagedBy(mgr, &v1.Memcached{}).WithDefaulter(admission.Defaulter{Image: settings.Image}).WithValidator(admission.Validator{}).Complete(); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).For(&v1.Memcached{}).Owns(&appsv1.Deployment{}).Owns(&corev1.Service{}).Complete(controller.NewBasic(mgr, settings.Image))
}

type narrow struct {
	webhook.SpokeConverter[*v1.Memcached]
}

func (f narrow) ConvertHubToSpoke(ctx context.Context, hub *v1.Memcached, spoke runtime.Object) error {
	if err := f.SpokeConverter.ConvertHubToSpoke(ctx, hub, spoke); err != nil {
		return err
	}
	if hub.Spec.Service.Port > math.MaxInt16 {
		spoke.(*v1beta1.Memcached).Spec.ContainerPort = 0
	}
	return nil
}
