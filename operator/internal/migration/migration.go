// Package migration stores every Memcached anew in the stored version of its API, and then strikes the other versions
// from the CRD's list of stored versions. Until that is done, the API server refuses a CRD without them, and with it
// the release that drops them.
package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

const (
	crdName = "memcacheds.cache.example.com"
	page    = 100
	// pageTimeout bounds what is done with one page of objects, firstWait and longestWait the pause before the next attempt.
	pageTimeout = 10 * time.Minute
	firstWait   = time.Second
	longestWait = time.Minute
)

var (
	rewritten = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "memcached_operator_migration_objects_total",
		Help: "Memcacheds stored anew in the stored version of their API.",
	})
	pending = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "memcached_operator_migration_pending",
		Help: "1 while the CRD lists a stored version besides the one it stores now, 0 when none is left.",
	})
)

func init() { metrics.Registry.MustRegister(rewritten, pending) }

// Migration runs once in the manager that leads.
type Migration struct {
	Client client.Client
	// API reads past the cache: what is stored counts, and all of it, not what this manager watches.
	API client.Reader
	Log logr.Logger

	progress progress
}

// progress is how far the objects are stored anew under one specification of the CRD. Another may store another version.
type progress struct {
	crd        types.UID
	generation int64
	next       string // where the list goes on, "" at its beginning
	done       bool
	objects    int
}

// NeedLeaderElection says that one manager migrates.
func (m *Migration) NeedLeaderElection() bool { return true }

// Start migrates, and tries again after a failure until it is done or ctx ends: while the operator is upgraded, the
// conversion that old objects need may be out for a while.
func (m *Migration) Start(ctx context.Context) error {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := m.Once(ctx)
		if err == nil {
			return nil
		}
		m.Log.Error(err, "migrating the stored objects; trying again", "after", wait.String())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// Once goes on where the attempt before it failed: with the page that could not be had or written, or, when all objects are
// stored anew, with the CRD. It does nothing if the CRD lists one stored version.
func (m *Migration) Once(ctx context.Context) error {
	var crd apiextensions.CustomResourceDefinition
	if err := m.API.Get(ctx, client.ObjectKey{Name: crdName}, &crd); err != nil {
		return fmt.Errorf("reading crd %s: %w", crdName, err)
	}
	stored := storageVersion(&crd)
	if slices.Equal(crd.Status.StoredVersions, []string{stored}) {
		pending.Set(0)
		m.Log.Info("nothing to migrate", "storedVersions", crd.Status.StoredVersions)
		return nil
	}
	pending.Set(1)
	if m.progress.crd != crd.UID || m.progress.generation != crd.Generation {
		m.progress = progress{crd: crd.UID, generation: crd.Generation}
	}
	m.Log.Info("migrating", "storedVersions", crd.Status.StoredVersions, "to", stored, "objectsBefore", m.progress.objects)
	for !m.progress.done {
		if err := m.rewritePage(ctx); err != nil {
			return err
		}
	}
	// The lock on the CRD's resourceVersion makes this fail if the stored version was changed meanwhile.
	before := crd.DeepCopy()
	crd.Status.StoredVersions = []string{stored}
	if err := m.Client.Status().Patch(ctx, &crd, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the stored versions of crd %s: %w", crdName, err)
	}
	pending.Set(0)
	m.Log.Info("migrated", "objects", m.progress.objects, "storedVersions", crd.Status.StoredVersions)
	return nil
}

// rewritePage writes every object of the next page back as it is. The API server encodes it in the version it stores now, and
// writes it if that gives other bytes than are stored (k8s.io/apiserver v0.36.3, pkg/storage/etcd3/store.go,
// GuaranteedUpdate).
func (m *Migration) rewritePage(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	var list v1.MemcachedList
	if err := m.list(ctx, &list); err != nil {
		return fmt.Errorf("listing memcacheds: %w", err)
	}
	for i := range list.Items {
		object := &list.Items[i]
		if err := m.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte("{}"))); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("writing memcached %s/%s back: %w", object.Namespace, object.Name, err)
		}
		rewritten.Inc()
	}
	m.progress.objects += len(list.Items)
	m.progress.next, m.progress.done = list.Continue, list.Continue == ""
	m.Log.Info("stored anew", "objects", m.progress.objects, "left", list.RemainingItemCount)
	return nil
}

// list reads the next page. A large set takes longer than the API server keeps the revision that the list began with: it
// then gives a token that goes on at the same place in the newest revision. Objects that were made meanwhile are stored in
// the version that is stored now.
func (m *Migration) list(ctx context.Context, list *v1.MemcachedList) error {
	used := m.progress.next
	err := m.API.List(ctx, list, client.Limit(page), client.Continue(used))
	switch {
	case used == "":
		return err
	case apierrors.IsResourceExpired(err):
		status := apierrors.APIStatus(nil)
		if errors.As(err, &status) {
			m.progress.next = status.Status().Continue
		}
		err = m.API.List(ctx, list, client.Limit(page), client.Continue(m.progress.next))
	case apierrors.IsBadRequest(err), apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge): // as after etcd was restored
		m.progress.next = ""
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
