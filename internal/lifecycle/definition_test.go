package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var crds = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// TestRemoveDefinition removes a definition although each request fails once for a reason that passes, and gives up at once where a
// right is missing.
func TestRemoveDefinition(t *testing.T) {
	for name, test := range map[string]struct {
		errs  []error // of the first requests
		stays bool
	}{
		"a busy API server": {errs: []error{
			fmt.Errorf("read: %w", syscall.ECONNREFUSED), nil, apierrors.NewInternalError(errors.New("failed calling webhook")), nil, nil,
			apierrors.NewServiceUnavailable("etcd has no leader"),
		}},
		"no right": {errs: []error{nil, apierrors.NewForbidden(crds, "teas.example.com", errors.New("no"))}, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := apiextensionsv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "teas.example.com"}}
			d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
			next := func() (err error) {
				if len(test.errs) > 0 {
					err, test.errs = test.errs[0], test.errs[1:]
				}
				return err
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(d).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					return errors.Join(next(), c.Get(ctx, key, o, options...))
				},
				Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
					if err := next(); err != nil {
						return err
					}
					return c.Update(ctx, o, options...)
				},
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
					if err := next(); err != nil {
						return err
					}
					return c.Delete(ctx, o, options...)
				},
			}).Build()
			began := time.Now()
			err := RemoveDefinition(t.Context(), c, d.Name, 20*time.Second, nil)
			if (err != nil) != test.stays || time.Since(began) > 15*time.Second {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
			if left := c.Get(t.Context(), client.ObjectKeyFromObject(d), d); (left == nil) != test.stays {
				t.Errorf("read after the removal: %v", left)
			}
			if len(test.errs) > 0 {
				t.Errorf("errors that were not met: %v", test.errs)
			}
		})
	}
}

// stuck is a definition that was deleted and stays until release says so of what is written to it. Each read of it takes that long, or,
// if pace is 0, the first hangs.
func stuck(t *testing.T, pace time.Duration, release func(*apiextensionsv1.CustomResourceDefinition) bool, objects ...metav1.PartialObjectMetadata) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "teas.example.com", Finalizers: []string{"example.com/cleanup"}}}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}}
	d.Spec.Names.Kind = "Tea"
	d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Terminating, Message: "could not list instances: no"}}
	reads := 0
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(d).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			takes := pace
			if reads++; reads == 1 && pace == 0 {
				takes = time.Hour
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(takes):
			}
			return c.Get(ctx, key, o, options...)
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			list.(*metav1.PartialObjectMetadataList).Items = objects
			return nil
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Tea"}, "green", nil)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if release(o.(*apiextensionsv1.CustomResourceDefinition)) {
				o.SetFinalizers(nil)
			}
			return c.Update(ctx, o, options...)
		},
	}).Build()
}

// TestUrge removes a definition that the API server does not look at any more, although the first request hangs.
func TestUrge(t *testing.T) {
	c := stuck(t, 0, func(d *apiextensionsv1.CustomResourceDefinition) bool {
		s := d.Spec.Versions[0].Schema
		return s != nil && *s.OpenAPIV3Schema.XPreserveUnknownFields
	})
	r := newRemoval(c, "teas.example.com", nil)
	r.stepLimit, r.urgeAfter = 100*time.Millisecond, 300*time.Millisecond
	if err := r.remove(t.Context(), 20*time.Second); err != nil {
		t.Error(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: r.name}, &r.definition); !apierrors.IsNotFound(err) {
		t.Errorf("read after the removal: %v", err)
	}
}

// TestWhyDefinitionStays names what keeps a definition, also where the time is up in the middle of a read.
func TestWhyDefinitionStays(t *testing.T) {
	now := metav1.Now()
	green := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "green", DeletionTimestamp: &now, Finalizers: []string{"example.com/pot"}}}
	c := stuck(t, 300*time.Millisecond, func(*apiextensionsv1.CustomResourceDefinition) bool { return false }, green)
	err := RemoveDefinition(t.Context(), c, "teas.example.com", time.Second, nil)
	want := "CustomResourceDefinition/teas.example.com still there 1s after being deleted: it has the finalizers example.com/cleanup; the API server says: could not list instances: no; Tea n/green has the finalizers example.com/pot"
	if err == nil || err.Error() != want {
		t.Errorf("the removal: %v, want %s", err, want)
	}
}

// TestRemoveWithoutAPIServer does not blame the definition where nothing answers.
func TestRemoveWithoutAPIServer(t *testing.T) {
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return fmt.Errorf("read: %w", syscall.ECONNREFUSED)
		},
	}).Build()
	err := RemoveDefinition(t.Context(), c, "teas.example.com", 300*time.Millisecond, nil)
	if !errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, new(DeletionTimeoutError)) {
		t.Errorf("the removal: %v", err)
	}
}
