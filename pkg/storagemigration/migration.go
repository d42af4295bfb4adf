// Package storagemigration stores every object of a CRD anew in the CRD's stored version, and then removes the other versions from
// status.storedVersions. Until that is done, the API server refuses a CRD without them, and with it the release that drops them.
//
// It writes an empty patch of each object. The API server then encodes the object in the version that it stores now, and writes it
// if that gives other bytes than are stored (k8s.io/apiserver v0.36.3, pkg/storage/etcd3/store.go, GuaranteedUpdate). Only metadata
// is listed, in pages, so memory does not grow with the number of objects.
package storagemigration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotation holds, on a CRD, how far a migration with Save has come.
const Annotation = "olmkit.io/storage-migration"

const (
	page = 100
	// pageTimeout bounds what is done with one page of objects.
	pageTimeout = 10 * time.Minute
	// shown bounds how many failures an error names.
	shown = 10
)

// Migration migrates the objects of one CRD. It may be run again after a failure, and goes on where it failed.
type Migration struct {
	// Client writes. It must know CustomResourceDefinitions (apiextensions.k8s.io/v1).
	Client client.Client
	// API reads past any cache: what is stored counts.
	API client.Reader
	// CRD is the CRD's name.
	CRD string
	// Workers is how many objects are written at the same time; 0 is 1.
	Workers int
	// DryRun has the API server convert and validate every object, and store nothing.
	DryRun bool
	// Save remembers in an annotation of the CRD how far it came, so that another process goes on there.
	Save bool
	// Report, if not nil, is called after each page.
	Report func(Progress)

	progress Progress
}

// Progress is how far the objects are stored anew under one specification of the CRD. Another may store another version.
type Progress struct {
	CRD        types.UID `json:"crd"`
	Generation int64     `json:"generation"`
	// Objects is how many are stored anew, Remaining how many are left, as far as the API server tells.
	Objects   int    `json:"objects"`
	Remaining *int64 `json:"remaining,omitempty"`
	// Next is where the list goes on, "" at its beginning.
	Next string `json:"next,omitempty"`
	Done bool   `json:"done,omitempty"`
}

// Result is what a migration did.
type Result struct {
	CRD string `json:"crd"`
	// Version is the one that is stored.
	Version string `json:"version"`
	// StoredVersions is what the CRD listed before.
	StoredVersions []string `json:"storedVersions"`
	// Objects were stored anew, by this run and those that it went on from.
	Objects int  `json:"objects"`
	DryRun  bool `json:"dryRun,omitempty"`
	// Pruned says that the CRD lists Version alone now and did not before.
	Pruned bool `json:"pruned"`
}

// Run migrates. It does nothing if the CRD lists its stored version alone, but for the annotation that an earlier run may have left. The
// Result is valid also with an error. One that the API server gave can be met by running again; that the CRD was changed meanwhile ends
// the run. A dry run goes on where an object is refused, and returns the first ten refusals and the number of the others.
func (m *Migration) Run(ctx context.Context) (Result, error) {
	result := Result{CRD: m.CRD, DryRun: m.DryRun}
	var crd apiextensions.CustomResourceDefinition
	if err := m.API.Get(ctx, client.ObjectKey{Name: m.CRD}, &crd); err != nil {
		return result, fmt.Errorf("reading crd %s: %w", m.CRD, err)
	}
	result.Version, result.StoredVersions = storageVersion(&crd), crd.Status.StoredVersions
	if slices.Equal(crd.Status.StoredVersions, []string{result.Version}) {
		if !m.Save || m.DryRun {
			return result, nil
		}
		return result, m.forget(ctx, &crd) // which may have failed at the end of an earlier run
	}
	m.begin(&crd)
	if m.DryRun {
		defer func() { m.progress = Progress{} }() // of objects that are stored as they were
	}
	var failures []error
	for !m.progress.Done {
		next := m.progress.Next
		err := m.rewritePage(ctx, &crd, result.Version)
		result.Objects = m.progress.Objects
		var rejected *rejectedError
		switch {
		case m.DryRun && errors.As(err, &rejected):
			failures = append(failures, rejected.errs...)
		case err != nil && m.progress.Next != next: // the token was refused, and another process must not use it again
			return result, errors.Join(err, m.save(ctx, &crd))
		case err != nil:
			return result, err
		}
		if m.Report != nil {
			m.Report(m.progress)
		}
		if err := m.save(ctx, &crd); err != nil {
			return result, err
		}
	}
	if m.DryRun {
		return result, refused(failures)
	}
	prune := func(crd *apiextensions.CustomResourceDefinition) {
		crd.Status.StoredVersions = []string{result.Version}
	}
	if err := locked(ctx, m, &crd, prune, m.Client.Status().Patch); err != nil {
		return result, fmt.Errorf("writing the stored versions of crd %s: %w", m.CRD, err)
	}
	result.Pruned = true
	return result, m.forget(ctx, &crd)
}

// begin goes on with the progress of this process, or else with what is saved, if it is about the CRD as it is.
func (m *Migration) begin(crd *apiextensions.CustomResourceDefinition) {
	fits := func(p Progress) bool { return p.CRD == crd.UID && p.Generation == crd.Generation }
	if fits(m.progress) {
		return
	}
	var saved Progress
	if m.Save && !m.DryRun && json.Unmarshal([]byte(crd.Annotations[Annotation]), &saved) == nil && fits(saved) {
		m.progress = saved
		return
	}
	m.progress = Progress{CRD: crd.UID, Generation: crd.Generation}
}

// save writes the progress into the CRD's annotation.
func (m *Migration) save(ctx context.Context, crd *apiextensions.CustomResourceDefinition) error {
	if !m.Save || m.DryRun {
		return nil
	}
	saved, err := json.Marshal(m.progress)
	if err != nil {
		return err
	}
	return m.annotate(ctx, crd, func(a map[string]string) { a[Annotation] = string(saved) })
}

func (m *Migration) forget(ctx context.Context, crd *apiextensions.CustomResourceDefinition) error {
	if _, ok := crd.Annotations[Annotation]; !ok {
		return nil
	}
	return m.annotate(ctx, crd, func(a map[string]string) { delete(a, Annotation) })
}

func (m *Migration) annotate(ctx context.Context, crd *apiextensions.CustomResourceDefinition, change func(map[string]string)) error {
	write := func(crd *apiextensions.CustomResourceDefinition) {
		if crd.Annotations == nil {
			crd.Annotations = map[string]string{}
		}
		change(crd.Annotations)
	}
	if err := locked(ctx, m, crd, write, m.Client.Patch); err != nil {
		return fmt.Errorf("saving the progress in crd %s: %w", crd.Name, err)
	}
	return nil
}

// locked changes the CRD by patch, which fails if somebody wrote it meanwhile. It tries again unless what they wrote matters: the
// specification, by which another version may be stored, or the progress of another migration.
func locked[O any](ctx context.Context, m *Migration, crd *apiextensions.CustomResourceDefinition, change func(*apiextensions.CustomResourceDefinition),
	patch func(context.Context, client.Object, client.Patch, ...O) error,
) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before := crd.DeepCopy()
		change(crd)
		conflict := patch(ctx, crd, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(conflict) {
			return conflict
		}
		var now apiextensions.CustomResourceDefinition
		if err := m.API.Get(ctx, client.ObjectKeyFromObject(crd), &now); err != nil {
			return err
		}
		if now.UID != before.UID || now.Generation != before.Generation || now.Annotations[Annotation] != before.Annotations[Annotation] {
			return fmt.Errorf("it was changed meanwhile: %s", conflict) //nolint:errorlint // as a conflict it would be tried again
		}
		*crd = now
		return conflict
	})
}

// rejectedError is what the API server says of objects of one page.
type rejectedError struct{ errs []error }

func (e *rejectedError) Error() string { return refused(e.errs).Error() }

func (e *rejectedError) Unwrap() []error { return e.errs }

// refused is one error of many, nil of none.
func refused(errs []error) error {
	if len(errs) <= shown {
		return errors.Join(errs...)
	}
	return errors.Join(append(slices.Clone(errs[:shown]), fmt.Errorf("and %d more", len(errs)-shown))...)
}

// rewritePage writes every object of the next page back as it is. A page with an object that cannot be written is not done, except in
// a dry run.
func (m *Migration) rewritePage(ctx context.Context, crd *apiextensions.CustomResourceDefinition, version string) error {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := m.list(ctx, list); err != nil {
		return fmt.Errorf("listing %s: %w", crd.Name, err)
	}
	var options []client.PatchOption
	if m.DryRun {
		options = append(options, client.DryRunAll)
	}
	var mu sync.Mutex
	var errs []error
	var group errgroup.Group
	group.SetLimit(max(1, m.Workers))
	for i := range list.Items {
		object := &list.Items[i]
		object.SetGroupVersionKind(kind)
		group.Go(func() error {
			err := m.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte("{}")), options...)
			if client.IgnoreNotFound(err) != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("writing %s %s back: %w", kind.Kind, client.ObjectKeyFromObject(object), err))
			}
			return nil
		})
	}
	_ = group.Wait()
	if len(errs) > 0 && !m.DryRun {
		return &rejectedError{errs}
	}
	m.progress.Objects += len(list.Items)
	m.progress.Next, m.progress.Done, m.progress.Remaining = list.Continue, list.Continue == "", list.RemainingItemCount
	if len(errs) > 0 {
		return &rejectedError{errs}
	}
	return nil
}

// list reads the next page. A large set takes longer than the API server keeps the revision that the list began with: it
// then gives a token that goes on at the same place in the newest revision. Objects that were made meanwhile are stored in
// the version that is stored now.
func (m *Migration) list(ctx context.Context, list client.ObjectList) error {
	used := m.progress.Next
	err := m.API.List(ctx, list, client.Limit(page), client.Continue(used))
	switch {
	case used == "":
		return err
	case apierrors.IsResourceExpired(err):
		m.progress.Next = ""
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			m.progress.Next = status.Status().Continue
		}
		err = m.API.List(ctx, list, client.Limit(page), client.Continue(m.progress.Next))
	case apierrors.IsBadRequest(err), apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge): // as after etcd was restored
		m.progress.Next = ""
	}
	return err
}

func storageVersion(crd *apiextensions.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}
