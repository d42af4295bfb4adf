package walk

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/fault"
)

// catalogName is what the walk's catalog is called.
const catalogName = "olmkit"

// publication is where the manager is to find the walk's catalog, and which faults hide it. Faults act at the same time: were each to
// put back the address that it found, it might be another's.
type publication struct {
	mu     sync.Mutex
	at     cluster.CatalogAddress
	hiding map[*fault.Active]bool
}

// nowhere is an address at which nothing listens.
var nowhere = cluster.CatalogAddress{Address: "127.0.0.1:9"}

// Publish serves a catalog with exactly the bundles names, and then has the manager read it.
func (w *walk) Publish(ctx context.Context, names ...string) error {
	fbc, err := w.Manager.Catalog(ctx, w.Place, w.pkg, w.was, w.channel, names...)
	if err != nil {
		return err
	}
	at, err := w.Provider.Catalog(ctx, catalogName, fbc)
	if err != nil {
		return fmt.Errorf("serve the catalog of %s: %w", strings.Join(names, ", "), err)
	}
	w.publication.mu.Lock()
	defer w.publication.mu.Unlock()
	w.publication.at = at
	return w.point(ctx)
}

// Hide has the manager look for the catalog where nothing is, on behalf of k, or ends that.
func (w *walk) Hide(ctx context.Context, k *fault.Active, hide bool) error {
	w.publication.mu.Lock()
	defer w.publication.mu.Unlock()
	if w.publication.hiding == nil {
		w.publication.hiding = map[*fault.Active]bool{}
	}
	w.publication.hiding[k] = hide
	return w.point(ctx)
}

// point has the manager look for the catalog where it is, or nowhere while a fault hides it.
func (w *walk) point(ctx context.Context) error {
	at := w.publication.at
	for _, hides := range w.publication.hiding {
		if hides {
			at = nowhere
		}
	}
	return w.Manager.Publish(ctx, w.Place, at)
}
