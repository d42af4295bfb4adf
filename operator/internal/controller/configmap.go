package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

const (
	// configMapIndex finds Memcacheds by the ConfigMap that they name.
	configMapIndex = "spec.cache.extraArgsFrom.name"
	// argsKey is the ConfigMap's key with the arguments, one a line.
	argsKey = "args"
)

// watchConfigMaps has a Memcached reconciled when the ConfigMap that it names changes. The cache holds no more of ConfigMaps than
// their names and versions: there may be many, and most are no Memcached's.
func (r *MemcachedReconciler) watchConfigMaps(mgr ctrl.Manager, b *builder.Builder) error {
	b.WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.memcachedsOf), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}))
	return mgr.GetFieldIndexer().IndexField(context.Background(), &v1.Memcached{}, configMapIndex, configMapOf)
}

// configMapOf is the name of the ConfigMap that a Memcached names, if it does.
func configMapOf(object client.Object) []string {
	if m, ok := object.(*v1.Memcached); ok && m.Spec.Cache.ExtraArgsFrom != nil {
		return []string{m.Spec.Cache.ExtraArgsFrom.Name}
	}
	return nil
}

// memcachedsOf leads from a ConfigMap to the Memcacheds that name it.
func (r *MemcachedReconciler) memcachedsOf(ctx context.Context, configMap client.Object) []reconcile.Request {
	var list v1.MemcachedList
	if err := r.List(ctx, &list, client.InNamespace(configMap.GetNamespace()), client.MatchingFields{configMapIndex: configMap.GetName()}); err != nil {
		logf.FromContext(ctx).Error(err, "listing the Memcacheds that name a ConfigMap", "configMap", configMap.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: configMap.GetNamespace(), Name: list.Items[i].Name}})
	}
	return requests
}

// withConfigMap returns m with the arguments of the ConfigMap that it names after its own.
func (r *MemcachedReconciler) withConfigMap(ctx context.Context, m *v1.Memcached) (*v1.Memcached, error) {
	if !r.ConfigMaps || m.Spec.Cache.ExtraArgsFrom == nil {
		return m, nil
	}
	key := client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.Cache.ExtraArgsFrom.Name}
	var configMap corev1.ConfigMap
	if err := r.APIReader.Get(ctx, key, &configMap); err != nil {
		return nil, fmt.Errorf("reading the ConfigMap %s of spec.cache.extraArgsFrom: %w", key, err)
	}
	args := slices.Clone(m.Spec.Cache.ExtraArgs)
	for line := range strings.Lines(configMap.Data[argsKey]) {
		if line = strings.TrimSpace(line); line != "" {
			args = append(args, line)
		}
	}
	m = m.DeepCopy()
	m.Spec.Cache.ExtraArgs = args
	return m, nil
}
