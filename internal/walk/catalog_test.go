package walk

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/observe"
)

// Faults that hide the catalog at the same time end with OLM reading it where the walk serves it, in whatever order they end.
func TestHiddenCatalogComesBack(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(olmv0.Scheme()).Build()
	w := &walk{Cluster: &observe.Cluster{Manager: &olmv0.Client{WithWatch: c}, Place: lifecycle.Place{Namespace: "n", Catalog: catalogName}}}
	address := func() string {
		t.Helper()
		var source v1alpha1.CatalogSource
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: catalogName}, &source); err != nil {
			t.Fatal(err)
		}
		return source.Spec.Address
	}
	w.publication.at = cluster.CatalogAddress{Address: "one:1"}
	if err := w.point(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := &fault.Set{Hop: fault.Hop{Cluster: w.Cluster, Walk: w}}
	down, other := &fault.Active{}, &fault.Active{}
	for _, k := range []*fault.Active{down, other} {
		if err := s.DownCatalog(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, k := range []*fault.Active{down, other} {
		got = append(got, address())
		if err := k.Undo.Run(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if got = append(got, address()); !slices.Equal(got, []string{nowhere.Address, nowhere.Address, "one:1"}) {
		t.Errorf("OLM looks for it at %q", got)
	}

	// A catalog that is published meanwhile is the one that comes back.
	if err := s.DownCatalog(t.Context(), down); err != nil {
		t.Fatal(err)
	}
	w.publication.at = cluster.CatalogAddress{Address: "two:2"}
	if err := errors.Join(w.point(t.Context()), down.Undo.Run(t.Context(), time.Minute)); err != nil || address() != "two:2" {
		t.Errorf("OLM looks for it at %s: %v", address(), err)
	}

	// So it is when the walk is interrupted while the catalog flaps.
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	flap := &fault.Active{}
	if err := s.FlapCatalog(ctx, flap); err == nil {
		t.Error("the flapping was not interrupted")
	}
	if err := flap.Undo.Run(ctx, time.Minute); err != nil || address() != "two:2" {
		t.Errorf("OLM looks for it at %s: %v", address(), err)
	}
}
