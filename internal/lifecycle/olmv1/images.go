package olmv1

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/image"
)

// Store makes images of catalogs whose bundles carry their manifests inline, and of these bundles.
type Store struct {
	Host Registry

	mu     sync.Mutex
	pushed map[string]string // references by the name of the bundle's image and its digest
	served map[served]string // references of catalogs
}

// served is a catalog that was pushed: a walk publishes the same one for each hop.
type served struct {
	name    string
	content [sha256.Size]byte
}

// Catalog pushes the file-based catalog fbc, and an image of each of its bundles, and returns where the catalog is.
func (s *Store) Catalog(ctx context.Context, name string, fbc []byte) (cluster.CatalogAddress, error) {
	key := served{name, sha256.Sum256(fbc)}
	s.mu.Lock()
	known := s.served[key]
	s.mu.Unlock()
	if known != "" {
		return cluster.CatalogAddress{Image: known}, nil
	}
	parsed := catalog.Parse(name, fbc)
	if err := parsed.Err(); err != nil {
		return cluster.CatalogAddress{}, fmt.Errorf("read catalog %s: %w", name, err)
	}
	refs := map[string]string{}
	for _, p := range parsed.Packages {
		for _, b := range p.Bundles {
			if !b.Has(catalog.PropertyObject) {
				continue // it is in the image that the catalog names
			}
			ref, err := s.pushBundle(ctx, p, b)
			if err != nil {
				return cluster.CatalogAddress{}, fmt.Errorf("make an image of bundle %s: %w", b.Name, err)
			}
			refs[b.Name] = ref
		}
	}
	rewritten, err := withImages(fbc, refs)
	if err != nil {
		return cluster.CatalogAddress{}, fmt.Errorf("rewrite catalog %s: %w", name, err)
	}
	ref, err := s.pack(ctx, name, func(dir string) (image.Artifact, error) {
		if err := os.WriteFile(filepath.Join(dir, "catalog.json"), rewritten, 0o600); err != nil {
			return nil, err
		}
		return image.Catalog(os.DirFS(dir), []string{"catalog.json"}, nil)
	})
	if err != nil {
		return cluster.CatalogAddress{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served == nil {
		s.served = map[served]string{}
	}
	s.served[key] = ref
	return cluster.CatalogAddress{Image: ref}, nil
}

// pack pushes what is made in a folder of its own.
func (s *Store) pack(ctx context.Context, repository string, make func(dir string) (image.Artifact, error)) (string, error) {
	dir, err := os.MkdirTemp("", "olmkit-image-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	made, err := make(dir)
	if err != nil {
		return "", err
	}
	one, ok := made.(v1.Image)
	if !ok {
		return "", fmt.Errorf("image %s is a %T", repository, made)
	}
	digest, err := one.Digest()
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := repository + "@" + digest.String()
	if s.pushed[key] == "" {
		if s.pushed == nil {
			s.pushed = map[string]string{}
		}
		if s.pushed[key], err = s.Host.PushImage(ctx, repository, one); err != nil {
			return "", err
		}
	}
	return s.pushed[key], nil
}

// pushBundle pushes the image of a bundle of p.
func (s *Store) pushBundle(ctx context.Context, p *catalog.Package, b *catalog.Bundle) (string, error) {
	return s.pack(ctx, p.Name, func(dir string) (image.Artifact, error) { return b.Pack(dir, p.Name, nil) })
}

// withImages returns fbc with the images refs, by the names of bundles, and without the manifests: OLM v1 reads those from the images.
func withImages(fbc []byte, refs map[string]string) ([]byte, error) {
	return catalog.RewriteBundles(fbc, func(_, name string, document map[string]json.RawMessage) (err error) {
		ref, pushed := refs[name]
		if !pushed {
			return nil
		}
		if document["image"], err = json.Marshal(ref); err != nil {
			return err
		}
		document["properties"], err = withoutObjects(document["properties"])
		return err
	})
}

func withoutObjects(raw json.RawMessage) (json.RawMessage, error) {
	var all, kept []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	for _, p := range all {
		var property struct{ Type string }
		if err := json.Unmarshal(p, &property); err != nil {
			return nil, err
		}
		if property.Type != catalog.PropertyObject {
			kept = append(kept, p)
		}
	}
	return json.Marshal(kept)
}
