package olmv0

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A ClusterServiceVersion that OLM made as the last thing it did waits for OLM to take its finalizer away. It goes once OLM is gone, and
// not before.
func TestRemoveWithoutOLM(t *testing.T) {
	const cleanup = "operators.coreos.com/csv-cleanup"
	definitions, _, err := Release{}.parts()
	if err != nil {
		t.Fatal(err)
	}
	var versions *apiextensionsv1.CustomResourceDefinition
	for _, d := range definitions {
		if d.Spec.Names.Kind == v1alpha1.ClusterServiceVersionKind {
			versions = d
		}
	}
	versions.Finalizers = []string{"customresourcecleanup.apiextensions.k8s.io"}
	olm := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "olm-operator", Finalizers: []string{"foregroundDeletion"}}}
	late := version("ns", "tea.v1", nil)
	late.Finalizers = []string{cleanup}
	early, ended := false, time.Now().Add(500*time.Millisecond)
	c := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(versions, olm, late).WithInterceptorFuncs(interceptor.Funcs{
		// The API server deletes the objects of a definition with it, and the definition when they are gone.
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if err := c.Get(ctx, key, o, options...); err != nil || o.GetDeletionTimestamp() == nil {
				return err
			}
			switch o.(type) {
			case *appsv1.Deployment:
				if time.Now().After(ended) {
					o.SetFinalizers(nil)
					return c.Update(ctx, o)
				}
			case *apiextensionsv1.CustomResourceDefinition:
				csv := &v1alpha1.ClusterServiceVersion{}
				err := c.Get(ctx, client.ObjectKeyFromObject(late), csv)
				switch {
				case apierrors.IsNotFound(err):
					early = early || time.Now().Before(ended)
					o.SetFinalizers(nil)
					return c.Update(ctx, o)
				case err == nil && csv.DeletionTimestamp == nil:
					return c.Delete(ctx, csv)
				}
			}
			return nil
		},
	}).Build()
	if err := (&Client{WithWatch: c}).Remove(t.Context(), Installation{versions, olm}, 10*time.Second); err != nil || early {
		t.Errorf("%v; while OLM was there: %v", err, early)
	}
}
