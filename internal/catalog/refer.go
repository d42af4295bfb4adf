package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
)

// Refer lets the catalog name the image of each bundle that it holds inline, in the place of the manifests: reference returns
// it, with its digest. A bundle's image has to hold the same manifests. Bundles that
// have an image keep that.
func (l Loader) Refer(ctx context.Context, c *Catalog, reference func(context.Context, *Bundle) (string, error)) error {
	for _, p := range c.Packages {
		for _, b := range p.Bundles {
			if b.Image != "" {
				if err := b.migrate(); err != nil {
					return err
				}
				continue
			}
			image, err := reference(ctx, b)
			if err != nil {
				return fmt.Errorf("refer to the image of bundle %s: %w", b.Name, err)
			}
			if err := l.refer(ctx, b, image); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l Loader) refer(ctx context.Context, b *Bundle, image string) error {
	found, err := l.Load(ctx, image)
	if err == nil {
		err = found.Err()
	}
	if err != nil {
		return fmt.Errorf("refer to the image of bundle %s: %w", b.Name, err)
	}
	var held *Bundle
	for _, p := range found.Packages {
		held = cmp.Or(held, p.Bundle(b.Name))
	}
	if held == nil || !slices.Equal(objects(b), objects(held)) {
		return hint.With(Flaw{fmt.Errorf("refer to the image of bundle %s (%s): %s does not hold the manifests that the directory holds", b.Name, b.At, image)},
			"push the bundle anew, with 'olmkit bundle push'")
	}
	b.Image, b.Properties, b.RelatedImages = held.Image, held.Properties, held.RelatedImages
	b.Document.JSON = held.Document.JSON
	b.Document.Source = document.New(held.Document.JSON, b.Document.At)
	return b.migrate()
}

// objects are the manifests of b, in order.
func objects(b *Bundle) []string {
	var all []string
	for _, p := range b.Properties {
		if p.Type == PropertyObject {
			all = append(all, string(p.Value))
		}
	}
	slices.Sort(all)
	return all
}
