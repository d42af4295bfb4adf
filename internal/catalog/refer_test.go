package catalog

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/hint"
)

// TestRefer: a catalog of bundle directories becomes the one of their images, migrated, and the images give the manifests back.
func TestRefer(t *testing.T) {
	l, images := pushed(t, "0.4.0", "0.5.0")
	want := images.Packages[0].Bundles
	load := func() *Catalog {
		c, err := l.Load(t.Context(), "../../bundle/memcached-operator/0.4.0", "../../bundle/memcached-operator/0.5.0")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load()
	asked := 0
	err := l.Refer(t.Context(), c, func(_ context.Context, b *Bundle) (string, error) {
		asked++
		return images.Packages[0].Bundle(b.Name).Image, nil
	})
	if err != nil || asked != 2 {
		t.Fatalf("%d bundles: %v", asked, err)
	}
	for i, b := range c.Packages[0].Bundles {
		text := string(b.Document.JSON)
		if !strings.Contains(b.Image, "@sha256:") || b.Image != want[i].Image || strings.Contains(text, PropertyObject) || !strings.Contains(text, PropertyCSVMetadata) {
			t.Errorf("%s refers to %s, and is written as %.300s", b.Name, b.Image, text)
		}
	}
	if err := l.Pull(t.Context(), c.Packages[0].Bundles); err != nil {
		t.Errorf("pull what it refers to: %v", err)
	}
	// An image that holds another bundle, or none, is refused.
	if err := l.Refer(t.Context(), load(), func(context.Context, *Bundle) (string, error) { return want[0].Image, nil }); !errors.As(err, &Flaw{}) || !strings.Contains(hint.Of(err), "bundle push") {
		t.Errorf("another bundle's image: %v", err)
	}
	missing := errors.New("no such tag")
	if err := l.Refer(t.Context(), load(), func(context.Context, *Bundle) (string, error) { return "", missing }); !errors.Is(err, missing) || !strings.Contains(err.Error(), "memcached-operator.v0.4.0") {
		t.Errorf("no image: %v", err)
	}
}
