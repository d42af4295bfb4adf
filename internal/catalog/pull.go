package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/sync/errgroup"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
)

// pulls is how many images are pulled at a time.
const pulls = 4

// Bare returns those of bundles whose manifests the catalog does not hold but their images do, as catalogs are published
// since olm.csv.metadata took the manifests' place.
func Bare(bundles []*Bundle) []*Bundle {
	var bare []*Bundle
	for _, b := range bundles {
		if b.Image != "" && !b.Has(PropertyObject) {
			bare = append(bare, b)
		}
	}
	return bare
}

// Pull gives bundles the manifests that their images hold, as OLM gets them when it unpacks the image. What else the catalog
// says of a bundle stays: OLM's resolver reads it there. The error names the first bundle, in their order, whose image can't
// be had, or holds another bundle.
func (l Loader) Pull(ctx context.Context, bundles []*Bundle) error {
	pulled, errs := make([]*Bundle, len(bundles)), make([]error, len(bundles))
	var mu sync.Mutex
	failed := len(bundles) // the first that is known to
	fails := func(i int) int {
		mu.Lock()
		defer mu.Unlock()
		failed = min(failed, i)
		return failed
	}
	var group errgroup.Group
	group.SetLimit(pulls)
	for i, b := range bundles {
		group.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil && fails(len(bundles)) > i {
				pulled[i], errs[i] = l.pull(ctx, b)
			}
			if errs[i] != nil {
				fails(i)
			}
			return nil
		})
	}
	_ = group.Wait() // errs holds them, in the order of bundles
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	for i, b := range bundles {
		*b = *pulled[i]
	}
	return nil
}

func (l Loader) pull(ctx context.Context, b *Bundle) (*Bundle, error) {
	if _, err := name.ParseReference(b.Image); err != nil || !image.Is(b.Image) {
		return nil, hint.With(Flaw{fmt.Errorf("pull bundle %s (%s): its image %q is no reference to an image in a registry", b.Name, b.At, b.Image)},
			"write it with the registry's host, as quay.io/team/my-operator-bundle@sha256:…")
	}
	found, err := l.Load(ctx, b.Image)
	if err != nil {
		return nil, hint.With(fmt.Errorf("pull bundle %s (%s): %w", b.Name, b.At, err), "%s",
			cmp.Or(hint.Of(err), "see that the image can be pulled from here"))
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("pull bundle %s (%s) from %s: %w", b.Name, b.At, b.Image, err)
	}
	var held *Bundle
	for _, p := range found.Packages {
		if other := p.Bundle(b.Name); other != nil {
			held = other
		}
	}
	if held == nil || !held.Has(PropertyObject) {
		return nil, hint.With(Flaw{fmt.Errorf("pull bundle %s (%s): its image %s holds another one", b.Name, b.At, b.Image)},
			"render the catalog from the images anew, and name them by digest")
	}
	merged := *b
	merged.Properties = slices.DeleteFunc(slices.Clone(b.Properties), func(p Property) bool { return p.Type == PropertyCSVMetadata })
	for _, p := range held.Properties {
		if p.Type == PropertyObject {
			merged.Properties = append(merged.Properties, p)
		}
	}
	d := *b.Document
	merged.Document = &d
	return &merged, merged.rewrite()
}
