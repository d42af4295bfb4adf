// Package migration migrates the stored Memcacheds in the manager that leads, and counts them. What it does is in pkg/storagemigration.
package migration

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/olmkit/olmkit/pkg/storagemigration"
)

const (
	crdName = "memcacheds.cache.example.com"
	// firstWait and longestWait are the pause before the next attempt.
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

	run *storagemigration.Migration
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

// Once goes on where the attempt before it failed. It does nothing if the CRD lists one stored version.
func (m *Migration) Once(ctx context.Context) error {
	if m.run == nil {
		done := 0
		m.run = &storagemigration.Migration{Client: m.Client, API: m.API, CRD: crdName, Report: func(p storagemigration.Progress) {
			pending.Set(1)
			rewritten.Add(float64(max(0, p.Objects-done)))
			done = p.Objects
			m.Log.Info("stored anew", "objects", p.Objects, "left", p.Remaining)
		}}
	}
	result, err := m.run.Run(ctx)
	if err != nil {
		if result.Version != "" {
			pending.Set(1)
		}
		return err
	}
	pending.Set(0)
	m.Log.Info("migrated", "objects", result.Objects, "storedVersions", result.StoredVersions, "to", result.Version, "pruned", result.Pruned)
	return nil
}
