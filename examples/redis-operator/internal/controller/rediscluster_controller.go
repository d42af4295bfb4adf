// Package controller reconciles RedisClusters.
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	redisv1beta1 "github.com/olmkit/olmkit/examples/redis-operator/api/v1beta1"
	"github.com/olmkit/olmkit/examples/redis-operator/internal/backup"
	"github.com/olmkit/olmkit/examples/redis-operator/internal/resources"
)

const (
	// finalizer keeps a deleted RedisCluster until its backup is written.
	finalizer = "redis.example.com/backup"

	// backupTimeout is how long the backup of a deleted RedisCluster is tried. The volumes stay in any case.
	backupTimeout = 30 * time.Second
)

// RedisClusterReconciler reconciles a RedisCluster object.
type RedisClusterReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder events.EventRecorder
	Image    string // of servers whose RedisCluster names none
}

// +kubebuilder:rbac:groups=redis.example.com,resources=redisclusters,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=redis.example.com,resources=redisclusters/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=redis.example.com,resources=redisclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes what a RedisCluster asks for and writes its status.
func (r *RedisClusterReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var rc redisv1beta1.RedisCluster
	if err := r.Get(ctx, req.NamespacedName, &rc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !rc.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.reconcileDelete(ctx, &rc)
	}
	if controllerutil.AddFinalizer(&rc, finalizer) {
		if err := r.Update(ctx, &rc); err != nil {
			return ctrl.Result{}, fmt.Errorf("add the finalizer: %w", err)
		}
	}
	before := rc.Status.DeepCopy()
	if err := r.reconcileConfigMap(ctx, &rc); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.reconcileService(ctx, &rc); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.reconcilePodDisruptionBudget(ctx, &rc); err != nil {
		return ctrl.Result{}, err
	}
	statefulSet, err := r.reconcileStatefulSet(ctx, &rc)
	if err != nil {
		return ctrl.Result{}, err
	}
	restoreErr := r.reconcileRestore(ctx, &rc, statefulSet)
	return ctrl.Result{}, errors.Join(restoreErr, r.updateStatus(ctx, &rc, before, statefulSet))
}

func (r *RedisClusterReconciler) reconcileConfigMap(ctx context.Context, rc *redisv1beta1.RedisCluster) error {
	desired := resources.ConfigMap(rc)
	configMap := &corev1.ConfigMap{ObjectMeta: desired.ObjectMeta}
	return r.createOrUpdate(ctx, rc, configMap, func() {
		configMap.Labels = desired.Labels
		configMap.Data = desired.Data
	})
}

func (r *RedisClusterReconciler) reconcileService(ctx context.Context, rc *redisv1beta1.RedisCluster) error {
	desired := resources.Service(rc)
	service := &corev1.Service{ObjectMeta: desired.ObjectMeta}
	return r.createOrUpdate(ctx, rc, service, func() {
		service.Labels = desired.Labels
		if !equality.Semantic.DeepDerivative(desired.Spec, service.Spec) {
			service.Spec.ClusterIP = desired.Spec.ClusterIP
			service.Spec.Selector = desired.Spec.Selector
			service.Spec.Ports = desired.Spec.Ports
		}
	})
}

func (r *RedisClusterReconciler) reconcilePodDisruptionBudget(ctx context.Context, rc *redisv1beta1.RedisCluster) error {
	desired := resources.PodDisruptionBudget(rc)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: desired.ObjectMeta}
	return r.createOrUpdate(ctx, rc, budget, func() {
		budget.Labels = desired.Labels
		budget.Spec.MaxUnavailable = desired.Spec.MaxUnavailable
		budget.Spec.Selector = desired.Spec.Selector
	})
}

func (r *RedisClusterReconciler) reconcileStatefulSet(ctx context.Context, rc *redisv1beta1.RedisCluster) (*appsv1.StatefulSet, error) {
	desired := resources.StatefulSet(rc, r.Image)
	statefulSet := &appsv1.StatefulSet{ObjectMeta: desired.ObjectMeta}
	return statefulSet, r.createOrUpdate(ctx, rc, statefulSet, func() {
		statefulSet.Labels = desired.Labels
		// What the API server sets by default is left alone.
		if !equality.Semantic.DeepDerivative(desired.Spec, statefulSet.Spec) {
			statefulSet.Spec = desired.Spec
		}
	})
}

// createOrUpdate makes object, which rc owns from then on, what mutate says. It writes nothing if it is so already.
func (r *RedisClusterReconciler) createOrUpdate(ctx context.Context, rc *redisv1beta1.RedisCluster, object client.Object, mutate func()) error {
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, object, func() error {
		mutate()
		return controllerutil.SetControllerReference(rc, object, r.Scheme)
	})
	if err != nil {
		return fmt.Errorf("reconcile %T %s/%s: %w", object, object.GetNamespace(), object.GetName(), err)
	}
	if result != controllerutil.OperationResultNone {
		logf.FromContext(ctx).Info("reconciled", "object", fmt.Sprintf("%T", object), "result", result)
	}
	return nil
}

// reconcileDelete takes the backup of a deleted RedisCluster and lets it go.
func (r *RedisClusterReconciler) reconcileDelete(ctx context.Context, rc *redisv1beta1.RedisCluster) error {
	if !controllerutil.ContainsFinalizer(rc, finalizer) {
		return nil
	}
	if rc.Spec.DeletionPolicy != redisv1beta1.DeletionPolicyDelete {
		name := backup.SecretName(rc.Name, rc.UID)
		keys, err := backup.Take(ctx, r.Client, rc.Namespace, rc.Name, name)
		switch {
		case err == nil:
			r.Recorder.Eventf(rc, nil, corev1.EventTypeNormal, "BackupTaken", "Delete", "%d keys are saved in Secret %s", keys, name)
		case backup.Impossible(err) || time.Since(rc.DeletionTimestamp.Time) > backupTimeout:
			r.Recorder.Eventf(rc, nil, corev1.EventTypeWarning, "BackupSkipped", "Delete",
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

// reconcileRestore writes the keys of the backup that rc names into its servers, once all of them are ready.
func (r *RedisClusterReconciler) reconcileRestore(ctx context.Context, rc *redisv1beta1.RedisCluster, statefulSet *appsv1.StatefulSet) error {
	from := rc.Spec.RestoreFrom
	if from == nil || rc.Status.RestoredFrom == from.SecretName || !available(rc, statefulSet) {
		return nil
	}
	if err := backup.Restore(ctx, r.Client, rc.Namespace, rc.Name, from.SecretName); err != nil {
		return fmt.Errorf("restore from Secret %s: %w", from.SecretName, err)
	}
	rc.Status.RestoredFrom = from.SecretName
	r.Recorder.Eventf(rc, nil, corev1.EventTypeNormal, "Restored", "Restore", "the keys of Secret %s are written", from.SecretName)
	return nil
}

// SetupWithManager sets up the controller with the Manager.
func (r *RedisClusterReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&redisv1beta1.RedisCluster{}).
		Owns(&appsv1.StatefulSet{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Named("rediscluster").
		Complete(r)
}
