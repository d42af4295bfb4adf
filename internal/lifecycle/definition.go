package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RemoveDefinition deletes a CustomResourceDefinition with all its objects, unless mayGo, if it is not nil, returns an error for
// these. Conversion is switched off first, since the webhook is gone by now and without it the API server could not read what
// it has to delete. It returns DeletionTimeoutError if the definition stays for longer than limit.
func RemoveDefinition(ctx context.Context, c client.Client, name string, limit time.Duration, mayGo func([]metav1.PartialObjectMetadata) error) error {
	return newRemoval(c, name, mayGo).remove(ctx, limit)
}

func newRemoval(c client.Client, name string, mayGo func([]metav1.PartialObjectMetadata) error) *definitionRemoval {
	return &definitionRemoval{
		Client: c, name: name, mayGo: mayGo, stepLimit: 15 * time.Second, urgeAfter: 20 * time.Second,
		urged: time.Now(), last: unansweredError{errors.New("the API server has not answered")},
	}
}

type definitionRemoval struct {
	client.Client
	name      string
	mayGo     func([]metav1.PartialObjectMetadata) error
	stepLimit time.Duration // of the requests of one step: one that hangs must not use up all the time there is
	urgeAfter time.Duration // how long the definition may be deleted before the API server is made to look at it again

	definition apiextensionsv1.CustomResourceDefinition // as it was last read
	urged      time.Time
	left       []metav1.PartialObjectMetadata // its objects, as they were last read
	last       error                          // of the last step, if trying again may mend it
}

func (r *definitionRemoval) remove(ctx context.Context, limit time.Duration) error {
	err := Poll(ctx, limit, r.try)
	switch {
	case errors.Is(err, ErrTimeout) && errors.As(r.last, new(unansweredError)):
		return fmt.Errorf("remove CustomResourceDefinition %s: %w: %w", r.name, err, r.last)
	case errors.Is(err, ErrTimeout):
		return DeletionTimeoutError{What: []string{"CustomResourceDefinition/" + r.name}, After: limit, Why: r.why()}
	case err != nil:
		return fmt.Errorf("remove CustomResourceDefinition %s: %w", r.name, err)
	}
	return nil
}

// try does what is next, and reports whether the definition is gone. It returns only errors that trying again does not mend.
func (r *definitionRemoval) try(ctx context.Context) (gone bool, err error) {
	limited, cancel := context.WithTimeout(ctx, r.stepLimit)
	defer cancel()
	gone, err = r.step(limited)
	if ctx.Err() != nil { // the time was up in the middle of the step
		return gone, ctx.Err()
	}
	r.last = err
	if passing(err) {
		return false, nil
	}
	return gone, err
}

func (r *definitionRemoval) step(ctx context.Context) (gone bool, err error) {
	var now apiextensionsv1.CustomResourceDefinition
	if err := r.Get(ctx, client.ObjectKey{Name: r.name}, &now); apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, unansweredError{err}
	}
	r.definition = now
	d := &r.definition
	if d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		return false, client.IgnoreNotFound(r.Update(ctx, d))
	}
	deleted := d.DeletionTimestamp != nil
	if deleted && time.Since(r.urged) > r.urgeAfter {
		return false, r.urge(ctx)
	}
	if deleted || r.mayGo != nil {
		if r.left, err = ObjectsOf(ctx, r.Client, d); apierrors.IsForbidden(err) {
			return false, err
		} else if err != nil {
			return false, unreadError{err}
		}
	}
	if deleted {
		return false, DropFinalizersOf(ctx, r.Client, r.left)
	}
	if r.mayGo != nil {
		if err := r.mayGo(r.left); err != nil {
			return false, err
		}
	}
	return false, client.IgnoreNotFound(r.Delete(ctx, d))
}

// urge writes schemas into the deleted definition that accept everything. The API server then opens the definition's storage anew
// and looks at once whether objects are left; after errors it does so ever more rarely (the rate-limited queue of
// pkg/controller/finalizer/crd_finalizer.go of apiextensions-apiserver v0.36.3). And objects that the schemas refuse can be changed.
func (r *definitionRemoval) urge(ctx context.Context) error {
	r.urged = time.Now()
	for i := range r.definition.Spec.Versions {
		v := &r.definition.Spec.Versions[i]
		v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Description: "being removed since " + r.urged.UTC().Format(time.RFC3339),
			Type:        "object", XPreserveUnknownFields: new(true),
		}}
		v.SelectableFields, v.AdditionalPrinterColumns, v.Subresources = nil, nil, nil
	}
	return client.IgnoreNotFound(r.Update(ctx, &r.definition))
}

// why says what is known of what keeps the definition; "" if that is nothing.
func (r *definitionRemoval) why() string {
	var reasons []string
	own := func(f string) bool { return f == apiextensionsv1.CustomResourceCleanupFinalizer }
	if others := slices.DeleteFunc(slices.Clone(r.definition.Finalizers), own); len(others) > 0 {
		reasons = append(reasons, "it has the finalizers "+strings.Join(others, ", "))
	}
	for _, c := range r.definition.Status.Conditions {
		if c.Type == apiextensionsv1.Terminating && c.Message != "" {
			reasons = append(reasons, "the API server says: "+c.Message)
		}
	}
	if i := slices.IndexFunc(r.left, func(o metav1.PartialObjectMetadata) bool { return len(o.Finalizers) > 0 }); i >= 0 {
		o := r.left[i]
		reasons = append(reasons, fmt.Sprintf("%s %s has the finalizers %s", o.Kind, client.ObjectKeyFromObject(&o), strings.Join(o.Finalizers, ", ")))
	}
	if r.last != nil {
		reasons = append(reasons, "the last error was: "+r.last.Error())
	}
	return strings.Join(reasons, "; ")
}

// unreadError is the error of objects that cannot be read for now: their definition is about to go, or the API server goes on calling
// the conversion webhook for a moment.
type unreadError struct{ error }

// unansweredError is the error of a definition that cannot be read.
type unansweredError struct{ error }

func (e unansweredError) Unwrap() error { return e.error }

// passing reports whether err says nothing about the request: objects cannot be read yet, somebody else wrote meanwhile, or the API
// server is busy, or it, or what it asks, is not there for a moment.
func passing(err error) bool {
	return errors.As(err, new(unreadError)) || apierrors.IsConflict(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || errors.Is(err, context.DeadlineExceeded) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)
}

// DropFinalizers lets the objects of d go that are deleted and wait for somebody to remove their finalizers. An object that
// the API server does not let change stays.
func DropFinalizers(ctx context.Context, c client.Client, d *apiextensionsv1.CustomResourceDefinition) error {
	objects, err := ObjectsOf(ctx, c, d)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil // it is gone, or the API server cannot read its objects for now
	}
	if err != nil {
		return err
	}
	return DropFinalizersOf(ctx, c, objects)
}

// DropFinalizersOf is DropFinalizers of objects that were listed.
func DropFinalizersOf(ctx context.Context, c client.Client, objects []metav1.PartialObjectMetadata) error {
	for _, o := range objects {
		if len(o.Finalizers) == 0 || o.DeletionTimestamp == nil {
			continue
		}
		err := c.Patch(ctx, &o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
			return fmt.Errorf("take the finalizers from %s %s: %w", o.Kind, client.ObjectKeyFromObject(&o), err)
		}
	}
	return nil
}

// ObjectsOf lists the metadata of d's objects; none if d is not served.
func ObjectsOf(ctx context.Context, c client.Client, d *apiextensionsv1.CustomResourceDefinition) ([]metav1.PartialObjectMetadata, error) {
	i := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served })
	if i < 0 {
		return nil, nil
	}
	version := schema.GroupVersion{Group: d.Spec.Group, Version: d.Spec.Versions[i].Name}
	objects := &metav1.PartialObjectMetadataList{}
	objects.SetGroupVersionKind(version.WithKind(d.Spec.Names.ListKind))
	if err := c.List(ctx, objects); err != nil {
		return nil, fmt.Errorf("list what is left of %s: %w", d.Name, err)
	}
	for i := range objects.Items {
		objects.Items[i].SetGroupVersionKind(version.WithKind(d.Spec.Names.Kind))
	}
	return objects.Items, nil
}
