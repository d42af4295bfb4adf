// The manager of a release 0.4.0 that writes into each Deployment when it last looked at it.
package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
	"github.com/olmkit/olmkit/operator/internal/admission"
	"github.com/olmkit/olmkit/operator/internal/controller"
	"github.com/olmkit/olmkit/operator/internal/conversion"
	"github.com/olmkit/olmkit/operator/internal/manager"
	"github.com/olmkit/olmkit/operator/internal/operand"
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
	if err := conversion.Serve(mgr, &v1.Memcached{}, conversion.AlphaWithV1(), conversion.BetaWithV1()); err != nil {
		return err
	}
	if err := ctrl.NewWebhookManagedBy(mgr, &v1.Memcached{}).WithDefaulter(admission.Defaulter{Image: settings.Image}).WithValidator(admission.Validator{}).Complete(); err != nil {
		return err
	}
	sound := controller.NewBasic(mgr, settings.Image)
	stamping := reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		result, err := sound.Reconcile(ctx, request)
		if err != nil {
			return result, err
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"cache.example.com/seen":%q}}}`, time.Now().Format(time.RFC3339))
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: operand.Name(request.Name)}}
		return result, client.IgnoreNotFound(mgr.GetClient().Patch(ctx, deployment, client.RawPatch(types.MergePatchType, patch)))
	})
	return ctrl.NewControllerManagedBy(mgr).For(&v1.Memcached{}).Owns(&appsv1.Deployment{}).Owns(&corev1.Service{}).Complete(stamping)
}
