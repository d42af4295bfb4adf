package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// tryNewNamespace creates for each of copies, which are gone, another one in a namespace that was not there when r's operator started, and notes in created whether
// it deals with that: who asks at its start which namespaces there are does not know of it. before says how long that is waited for.
func (w *walk) tryNewNamespace(ctx context.Context, r *lifecycle.Release, copies []*newObject, before, created map[string]judge.New) (err error) {
	if w.Place.Mode != lifecycle.AllNamespaces || !w.Provider.Disposable() {
		return nil
	}
	copies = slices.DeleteFunc(slices.Clone(copies), func(first *newObject) bool {
		stays := slices.ContainsFunc(created[first.CRD].Elsewhere, func(d judge.Distant) bool { return !d.Gone }) // nobody would delete it
		return !first.tried || first.Namespace == "" || stays || w.namesAnother(first.like)
	})
	if len(copies) == 0 {
		return nil
	}
	namespace := "olmkit-samples-" + rand.String(5)
	var there []*newObject
	defer func() { err = errors.Join(err, w.deleteNamespace(ctx, namespace, there, before, created)) }()
	for _, first := range copies {
		o, err := w.copyInto(ctx, r, first, namespace)
		if err != nil {
			return err
		}
		if o != nil {
			there = append(there, o)
		}
	}
	if len(there) == 0 {
		return nil
	}
	view, began := w.viewOf(objectsOf(there)...), time.Now()
	return lookUntil(ctx, judge.EffectLimit, quickPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		done := true
		for _, o := range there {
			is, well := created[o.CRD], false
			if !is.Copy.Made {
				if well, err = view.Well(ctx, o.Object); err != nil {
					return false, err
				}
			}
			dealt := judge.DealtWith(o.String(), operands, well)
			is.Anywhere = &dealt
			created[o.CRD] = is
			early := time.Since(began) < newLimit
			runs := podsOf(o.String(), operands).ready >= int64(is.Copy.Ready) // what it does when it is deleted may rest on that
			done = done && (is.DoesAnywhere() && (runs || !early) || !before[o.CRD].DoesAnywhere() && !early)
		}
		return done, nil
	})
}

// copyInto creates another copy as first in a namespace, once what it needs is there, or returns nil where the API server refuses it.
func (w *walk) copyInto(ctx context.Context, r *lifecycle.Release, first *newObject, namespace string) (*newObject, error) {
	if err := w.likeNamespace(ctx, first.Namespace, namespace); err != nil {
		return nil, err
	}
	sample := &unstructured.Unstructured{Object: first.like.Author}
	needs := w.namesakes(sample, first.Namespace)
	for _, n := range needs {
		n.SetNamespace(namespace)
	}
	if created, err := w.createNeeds(ctx, needs); err != nil || !created {
		return nil, err
	}
	o, err := w.makeCopy(ctx, r, first.like, client.ObjectKey{Namespace: namespace, Name: first.Name}, naming(sample, needs))
	if err != nil || o == nil {
		return nil, errors.Join(err, w.deleteNeeds(ctx, needs))
	}
	o.needs = needs
	return o, nil
}

// likeNamespace creates the namespace called name with the labels and annotations of another, by which operators may choose those that they serve, if it is not there.
func (w *walk) likeNamespace(ctx context.Context, other, name string) error {
	var like corev1.Namespace
	if err := client.IgnoreNotFound(w.Client.Get(ctx, client.ObjectKey{Name: other}, &like)); err != nil {
		return fmt.Errorf("read namespace %s: %w", other, err)
	}
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(like.Labels), Annotations: like.Annotations}}
	delete(made.Labels, corev1.LabelMetadataName)
	if err := w.Client.Create(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// namesAnother reports whether the spec of a sample names another one, which is not in the new namespace.
func (w *walk) namesAnother(like *observe.Object) bool {
	return slices.ContainsFunc(w.Objects, func(o *observe.Object) bool {
		return o.Name != like.Name && judge.Names(like.Author["spec"], o.Name, func(string) bool { return true })
	})
}

// deleteNamespace deletes the namespace that copies are in, and notes in created whether they go with it: an operator that makes something there before it removes
// its finalizer cannot any more. before says how long that is waited for. What stays is let go, since the cluster is the walk's.
func (w *walk) deleteNamespace(ctx context.Context, name string, copies []*newObject, before, created map[string]judge.New) error {
	if err := client.IgnoreNotFound(w.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})); err != nil {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	began := time.Now()
	return lookUntil(ctx, judge.GoLimit, lookPause, func() (bool, error) {
		done := true
		for _, o := range copies {
			stays, err := w.keptBy(ctx, o)
			if err != nil {
				return false, err
			}
			is, goes := created[o.CRD], len(stays) == 0
			is.Goes, is.Held = &goes, stays
			created[o.CRD] = is
			limit := newLimit
			if before[o.CRD].GoesAnywhere() {
				limit = judge.GoLimit
			}
			if late := time.Since(began)+lookPause > limit; !goes && late {
				_ = mergePatch(ctx, o.At(w.Dynamic, o.Version), o.Name, []byte(`{"metadata":{"finalizers":null}}`))
			} else if !goes {
				done = false
			}
		}
		return done, nil
	})
}

// keptBy are the finalizers that a copy has, none if it is gone.
func (w *walk) keptBy(ctx context.Context, o *newObject) ([]string, error) {
	now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s, whose namespace is deleted: %w", o, err)
	}
	return now.GetFinalizers(), nil
}
