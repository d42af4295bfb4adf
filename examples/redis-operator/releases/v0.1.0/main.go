// The manager of release 0.1.0: a StatefulSet, a headless Service and a ConfigMap for each RedisCluster of v1alpha1, and
// the number of ready servers in its status.
package main

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	redisv1alpha1 "github.com/olmkit/olmkit/examples/redis-operator/api/v1alpha1"
	redisv1beta1 "github.com/olmkit/olmkit/examples/redis-operator/api/v1beta1"
	"github.com/olmkit/olmkit/examples/redis-operator/internal/resources"
	"github.com/olmkit/olmkit/examples/redis-operator/releases/manager"
)

func main() {
	manager.Run(setup, redisv1alpha1.AddToScheme)
}

func setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&redisv1alpha1.RedisCluster{}).
		Owns(&appsv1.StatefulSet{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Named("rediscluster").
		Complete(&reconciler{Client: mgr.GetClient()})
}

type reconciler struct {
	client.Client
}

// +kubebuilder:rbac:groups=redis.example.com,resources=redisclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=redis.example.com,resources=redisclusters/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=redis.example.com,resources=redisclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;patch

// Reconcile makes what a RedisCluster asks for and counts its servers.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var rc redisv1alpha1.RedisCluster
	if err := r.Get(ctx, req.NamespacedName, &rc); err != nil || !rc.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var asked redisv1beta1.RedisCluster
	if err := rc.ConvertTo(&asked); err != nil {
		return ctrl.Result{}, err
	}
	configMap, service := resources.ConfigMap(&asked), resources.Service(&asked)
	statefulSet := resources.StatefulSet(&asked, os.Getenv("RELATED_IMAGE_REDIS"))
	for _, object := range []client.Object{configMap, service, statefulSet} {
		if err := r.apply(ctx, &rc, object); err != nil {
			return ctrl.Result{}, err
		}
	}
	if rc.Status.ReadyReplicas == statefulSet.Status.ReadyReplicas && rc.Status.ObservedGeneration == rc.Generation {
		return ctrl.Result{}, nil
	}
	rc.Status.ReadyReplicas, rc.Status.ObservedGeneration = statefulSet.Status.ReadyReplicas, rc.Generation
	return ctrl.Result{}, r.Status().Update(ctx, &rc)
}

// apply makes an object of rc what it is to be, and fills in what the API server says of it.
func (r *reconciler) apply(ctx context.Context, rc *redisv1alpha1.RedisCluster, object client.Object) error {
	desired := object.DeepCopyObject()
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, object, func() error {
		switch live := object.(type) {
		case *corev1.ConfigMap:
			live.Data = desired.(*corev1.ConfigMap).Data
		case *corev1.Service:
			if spec := desired.(*corev1.Service).Spec; !equality.Semantic.DeepDerivative(spec, live.Spec) {
				live.Spec.Selector, live.Spec.Ports = spec.Selector, spec.Ports
			}
		case *appsv1.StatefulSet:
			if spec := desired.(*appsv1.StatefulSet).Spec; !equality.Semantic.DeepDerivative(spec, live.Spec) {
				live.Spec = spec
			}
		}
		return controllerutil.SetControllerReference(rc, object, r.Scheme())
	})
	if err != nil {
		return fmt.Errorf("reconcile %T %s/%s: %w", object, object.GetNamespace(), object.GetName(), err)
	}
	return nil
}
