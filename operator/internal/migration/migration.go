// Package migration stores every Memcached anew in the stored version of its API, and then strikes the other versions
// from the CRD's list of stored versions. Until that is done, the API server refuses a CRD without them, and with it
// the release that drops them.
package migration

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

const (
	crdName = "memcacheds.cache.example.com"
	page    = 100
	// attempt bounds one pass over the objects, firstWait and longestWait the pause before the next.
	attempt     = 10 * time.Minute
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

// Once makes one pass: nothing, if the CRD lists one stored version.
func (m *Migration) Once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
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
	m.Log.Info("migrating", "storedVersions", crd.Status.StoredVersions, "to", stored)
	objects, err := m.rewrite(ctx)
	if err != nil {
		return err
	}
	// The lock on the CRD's resourceVersion makes this fail if the stored version was changed meanwhile.
	before := crd.DeepCopy()
	crd.Status.StoredVersions = []string{stored}
	if err := m.Client.Status().Patch(ctx, &crd, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the stored versions of crd %s: %w", crdName, err)
	}
	pending.Set(0)
	m.Log.Info("migrated", "objects", objects, "storedVersions", crd.Status.StoredVersions)
	return nil
}

// rewrite writes every object back as it is. The API server encodes it in the version it stores now, and writes it if
// that gives other bytes than are stored (k8s.io/apiserver v0.36.3, pkg/storage/etcd3/store.go, GuaranteedUpdate).
func (m *Migration) rewrite(ctx context.Context) (int, error) {
	var (
		objects int
		list    v1.MemcachedList
	)
	for {
		if err := m.API.List(ctx, &list, client.Limit(page), client.Continue(list.Continue)); err != nil {
			return objects, fmt.Errorf("listing memcacheds: %w", err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if err := m.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte("{}"))); client.IgnoreNotFound(err) != nil {
				return objects, fmt.Errorf("writing memcached %s/%s back: %w", object.Namespace, object.Name, err)
			}
			rewritten.Inc()
			objects++
		}
		m.Log.Info("stored anew", "objects", objects, "left", list.RemainingItemCount)
		if list.Continue == "" {
			return objects, nil
		}
	}
}

func storageVersion(crd *apiextensions.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}
