// The manager of release 0.2.0: v1beta1 beside v1alpha1, which stays the stored version, with conversion and validation; a
// backup before a RedisCluster is deleted; conditions and events. The controller reads v1alpha1, so that what it reads
// needs no conversion.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	redisv1alpha1 "github.com/olmkit/olmkit/examples/redis-operator/api/v1alpha1"
	redisv1beta1 "github.com/olmkit/olmkit/examples/redis-operator/api/v1beta1"
	"github.com/olmkit/olmkit/examples/redis-operator/internal/backup"
	"github.com/olmkit/olmkit/examples/redis-operator/internal/resources"
	webhookv1beta1 "github.com/olmkit/olmkit/examples/redis-operator/internal/webhook/v1beta1"
	"github.com/olmkit/olmkit/examples/redis-operator/releases/manager"
)

const (
	finalizer     = "redis.example.com/backup"
	backupTimeout = 30 * time.Second
)

func main() {
	manager.Run(setup, redisv1alpha1.AddToScheme, redisv1beta1.AddToScheme)
}

func setup(mgr ctrl.Manager) error {
	if err := webhookv1beta1.SetupRedisClusterWebhookWithManager(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&redisv1alpha1.RedisCluster{}).
		Owns(&appsv1.StatefulSet{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Named("rediscluster").
		Complete(&reconciler{Client: mgr.GetClient(), events: mgr.GetEventRecorder("redis-operator")})
}

type reconciler struct {
	client.Client
	events events.EventRecorder
}

// +kubebuilder:rbac:groups=redis.example.com,resources=redisclusters,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=redis.example.com,resources=redisclusters/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=redis.example.com,resources=redisclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes what a RedisCluster asks for and writes its status.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var rc redisv1alpha1.RedisCluster
	if err := r.Get(ctx, req.NamespacedName, &rc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var asked redisv1beta1.RedisCluster
	if err := rc.ConvertTo(&asked); err != nil {
		return ctrl.Result{}, err
	}
	if !rc.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.reconcileDelete(ctx, &rc, asked.Spec.DeletionPolicy)
	}
	if controllerutil.AddFinalizer(&rc, finalizer) {
		if err := r.Update(ctx, &rc); err != nil {
			return ctrl.Result{}, fmt.Errorf("add the finalizer: %w", err)
		}
	}
	configMap, service := resources.ConfigMap(&asked), resources.Service(&asked)
	statefulSet := resources.StatefulSet(&asked, os.Getenv("RELATED_IMAGE_REDIS"))
	for _, object := range []client.Object{configMap, service, statefulSet} {
		if err := r.apply(ctx, &rc, object); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, r.updateStatus(ctx, &rc, statefulSet)
}

// apply makes an object of rc what it is to be, and fills in what the API server says of it.
func (r *reconciler) apply(ctx context.Context, rc *redisv1alpha1.RedisCluster, object client.Object) error {
	desired := object.DeepCopyObject()
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, object, func() error {
		object.SetLabels(desired.(client.Object).GetLabels())
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

// updateStatus writes the status of rc if it is another than the one that is stored.
func (r *reconciler) updateStatus(ctx context.Context, rc *redisv1alpha1.RedisCluster, statefulSet *appsv1.StatefulSet) error {
	before := rc.Status.DeepCopy()
	ready, size := statefulSet.Status.ReadyReplicas, max(rc.Spec.Size, 1)
	condition := metav1.Condition{
		Type: "Available", Status: metav1.ConditionFalse, Reason: "ServersNotReady", ObservedGeneration: rc.Generation,
		Message: fmt.Sprintf("%d of %d servers are ready", ready, size),
	}
	if statefulSet.Status.ObservedGeneration == statefulSet.Generation && ready == size {
		condition.Status, condition.Reason = metav1.ConditionTrue, "ServersReady"
	}
	meta.SetStatusCondition(&rc.Status.Conditions, condition)
	rc.Status.ReadyReplicas, rc.Status.ObservedGeneration = ready, rc.Generation
	if equality.Semantic.DeepEqual(*before, rc.Status) {
		return nil
	}
	if err := r.Status().Update(ctx, rc); err != nil {
		return fmt.Errorf("update the status: %w", err)
	}
	if condition.Status == metav1.ConditionTrue && !meta.IsStatusConditionTrue(before.Conditions, condition.Type) {
		r.events.Eventf(rc, nil, corev1.EventTypeNormal, condition.Type, "Reconcile", "%s", condition.Message)
	}
	return nil
}

// reconcileDelete takes the backup of a deleted RedisCluster and lets it go.
func (r *reconciler) reconcileDelete(ctx context.Context, rc *redisv1alpha1.RedisCluster, policy redisv1beta1.DeletionPolicy) error {
	if !controllerutil.ContainsFinalizer(rc, finalizer) {
		return nil
	}
	if policy != redisv1beta1.DeletionPolicyDelete {
		name := backup.SecretName(rc.Name, rc.UID)
		keys, err := backup.Take(ctx, r.Client, rc.Namespace, rc.Name, name)
		switch {
		case err == nil:
			r.events.Eventf(rc, nil, corev1.EventTypeNormal, "BackupTaken", "Delete", "%d keys are saved in Secret %s", keys, name)
		case backup.Impossible(err) || time.Since(rc.DeletionTimestamp.Time) > backupTimeout:
			r.events.Eventf(rc, nil, corev1.EventTypeWarning, "BackupSkipped", "Delete",
				"no backup was taken, the data stay in the PersistentVolumeClaims: %v", err)
		default:
			return fmt.Errorf("take a backup: %w", err)
		}
	}
	controllerutil.RemoveFinalizer(rc, finalizer)
	if err := r.Update(ctx, rc); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("remove the finalizer: %w", err))
	}
	return nil
}
