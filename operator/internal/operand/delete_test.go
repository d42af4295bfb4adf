package operand

import (
	"context"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// The API server is asked once for what the cache has not, and not at all for what was there and was deleted.
func TestDeleteReads(t *testing.T) {
	t.Parallel()
	owned := metav1.ObjectMeta{Namespace: "ns", Name: Name("m"), UID: "x", OwnerReferences: []metav1.OwnerReference{{UID: "uid", Controller: new(true)}}}
	everything := []client.Object{
		&corev1.Service{ObjectMeta: owned}, &appsv1.Deployment{ObjectMeta: owned}, &policyv1.PodDisruptionBudget{ObjectMeta: owned}, &networkingv1.NetworkPolicy{ObjectMeta: owned},
	}
	for name, test := range map[string]struct {
		cached, beside []client.Object
		reads          int
	}{
		"all is in the cache":               {cached: everything},
		"nothing is there":                  {reads: 4},
		"the cache does not have it yet":    {beside: everything, reads: 4},
		"the cache lacks the NetworkPolicy": {cached: everything[:3], beside: everything[3:], reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads := 0
			copies := func(objects []client.Object) (out []client.Object) {
				for _, o := range objects {
					out = append(out, o.DeepCopyObject().(client.Object))
				}
				return out
			}
			server := fake.NewClientBuilder().WithObjects(copies(slices.Concat(test.cached, test.beside))...).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					reads++
					return c.Get(ctx, key, object, options...)
				},
			}).Build()
			cached := fake.NewClientBuilder().WithObjects(copies(test.cached)...).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
					if err := server.Delete(ctx, object); err != nil {
						return err
					}
					return client.IgnoreNotFound(c.Delete(ctx, object))
				},
			}).Build()
			a, deletion := Applier{Client: cached, API: server}, Deletion{Owner: "uid", Known: map[string]bool{}}
			for range 6 {
				if _, err := a.Delete(t.Context(), "ns", "m", deletion); err != nil {
					t.Fatal(err)
				}
			}
			remaining, err := a.Delete(t.Context(), "ns", "m", deletion)
			if err != nil || len(remaining.Objects) > 0 {
				t.Errorf("%v remains, %v", remaining.Objects, err)
			}
			if reads != test.reads {
				t.Errorf("the API server was asked %d times; known is %v", reads, slices.Sorted(maps.Keys(deletion.Known)))
			}
			for _, object := range everything {
				live := object.DeepCopyObject().(client.Object)
				if err := server.Get(t.Context(), client.ObjectKeyFromObject(live), live); client.IgnoreNotFound(err) != nil || err == nil {
					t.Errorf("%T is there: %v", live, err)
				}
			}
		})
	}
}

// One server has no budget, what another owner has under its name is left alone, and the API server is not asked.
func TestDisruptionBudgetOfOneServer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		owner types.UID
		left  bool
	}{
		"its own":    {owner: "uid"},
		"another's":  {owner: "another", left: true},
		"nothing":    {},
		"no owner's": {owner: "none", left: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: Name("m"), UID: "x"}}
			server := fake.NewClientBuilder()
			if test.owner != "none" {
				budget.OwnerReferences = []metav1.OwnerReference{{UID: test.owner, Controller: new(true)}}
			}
			if test.owner != "" {
				server.WithObjects(budget)
			}
			cached := server.Build()
			d := DesiredFor(&metav1.ObjectMeta{Name: "m", Namespace: "ns", UID: "uid"}, "cache.example.com/v1")
			d.Replicas = 1
			for range 2 {
				if err := (Applier{Client: cached}).DisruptionBudget(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			err := cached.Get(t.Context(), client.ObjectKeyFromObject(budget), budget)
			if left := err == nil; left != test.left || client.IgnoreNotFound(err) != nil {
				t.Errorf("it is left: %t (%v)", left, err)
			}
		})
	}
}
