package main

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
)

// oldWriters tells of those who still write v1alpha1. The API server warns them in its answers, which programs rarely
// show to anyone; an event stays with the object for its owner to see.
type oldWriters struct {
	client client.Client
	events events.EventRecorder
}

func warnOfOldWriters(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("old-writers").
		For(&v1.Memcached{}, builder.OnlyMetadata, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(&oldWriters{client: mgr.GetClient(), events: mgr.GetEventRecorder("memcached-operator")})
}

// Reconcile looks for v1alpha1 among those who own fields of a Memcached.
func (r *oldWriters) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(v1.GroupVersion.WithKind("Memcached"))
	if err := r.client.Get(ctx, request.NamespacedName, m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, writer := range writers(m.ManagedFields) {
		r.events.Eventf(m, nil, corev1.EventTypeWarning, "DeprecatedVersion", "Write",
			"%s writes %s, which release 0.5.0 does not serve any more: write %s", writer, v1alpha1.GroupVersion, v1.GroupVersion)
	}
	return ctrl.Result{}, nil
}

// writers is who owns fields that were written in v1alpha1, sorted.
func writers(fields []metav1.ManagedFieldsEntry) []string {
	var out []string
	for _, entry := range fields {
		if entry.APIVersion == v1alpha1.GroupVersion.String() && entry.Subresource == "" {
			out = append(out, entry.Manager)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
