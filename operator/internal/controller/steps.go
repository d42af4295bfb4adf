package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/internal/admission"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

// Step is one part of a reconciliation. It writes only what differs. An error ends the reconciliation; the status is
// written all the same.
type Step struct {
	name string
	run  func(context.Context, *pass, *v1.Memcached) error
}

// pass is one reconciliation.
type pass struct {
	*Reconciler
	// generation is the Deployment's that this pass made, 0 if it made none.
	generation int64
}

// The steps that releases take.
var (
	// Stay has the object stay, once it is deleted, until its operand is gone.
	Stay = Step{"add the finalizer", stay}
	// CheckSpec refuses what admission would have refused, had its webhook been asked.
	CheckSpec  = Step{"check the spec", func(_ context.Context, _ *pass, m *v1.Memcached) error { return admission.Check(m) }}
	Deployment = Step{"apply the deployment", deployment}
	Service    = Step{"apply the service", func(ctx context.Context, r *pass, m *v1.Memcached) error {
		return r.applier().Service(ctx, Desired(m, r.Image))
	}}
	DisruptionBudget = Step{"apply the disruption budget", func(ctx context.Context, r *pass, m *v1.Memcached) error {
		return r.applier().DisruptionBudget(ctx, Desired(m, r.Image))
	}}
	NetworkPolicy = Step{"apply the network policy", func(ctx context.Context, r *pass, m *v1.Memcached) error {
		return r.applier().NetworkPolicy(ctx, Desired(m, r.Image))
	}}
)

func (r *Reconciler) applier() operand.Applier { return operand.Applier{Client: r.Client, API: r.API} }

func stay(ctx context.Context, r *pass, m *v1.Memcached) error {
	before := m.DeepCopy()
	if !controllerutil.AddFinalizer(m, Finalizer) {
		return nil
	}
	// A merge patch replaces the whole list: the lock keeps what others add meanwhile.
	if err := r.Client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("adding the finalizer to memcached %s/%s: %w", m.Namespace, m.Name, err)
	}
	r.wrote(m)
	return nil
}

func deployment(ctx context.Context, r *pass, m *v1.Memcached) error {
	wish := Desired(m, r.Image)
	if r.Mismatched != nil {
		var live appsv1.Deployment
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: operand.Name(m.Name)}, &live)
		if err == nil && live.Spec.Replicas != nil && *live.Spec.Replicas != wish.Replicas {
			r.Mismatched(m.Namespace, m.Name)
		}
	}
	var err error
	r.generation, err = r.applier().Deployment(ctx, wish)
	return err
}
