package catalog

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
)

// pushed pushes releases of the repository's own operator to a registry and returns a catalog of their images.
func pushed(t *testing.T, versions ...string) (Loader, *Catalog) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	var l Loader
	var refs []string
	for _, version := range versions {
		made, err := image.Bundle("../../bundle/memcached-operator/" + version)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := l.Images.Push(t.Context(), strings.TrimPrefix(server.URL, "http://")+"/team/bundle:v"+version, made)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	c, err := l.Load(t.Context(), refs...)
	if err != nil {
		t.Fatal(err)
	}
	return l, c
}

// What a migration takes out of a catalog, the images give back.
func TestMigrateAndPull(t *testing.T) {
	l, c := pushed(t, "0.4.0", "0.5.0")
	bundles := c.Packages[0].Bundles
	var before [][]string
	for _, b := range bundles {
		before = append(before, manifests(t, b))
	}
	if err := c.Migrate(); err != nil {
		t.Fatal(err)
	}
	for _, b := range bundles {
		if held := manifests(t, b); len(held) > 0 {
			t.Errorf("%s still holds %d manifests", b.Name, len(held))
		}
		if written := string(b.Document.JSON); strings.Contains(written, PropertyObject) || strings.Count(written, PropertyCSVMetadata) != 1 {
			t.Errorf("%s is written with other properties than it has", b.Name)
		}
	}
	if bare := Bare(bundles); len(bare) != len(bundles) {
		t.Fatalf("%d of %d bundles are bare", len(bare), len(bundles))
	}
	migrated := string(bundles[0].Document.JSON)
	if err := c.Migrate(); err != nil || string(bundles[0].Document.JSON) != migrated {
		t.Errorf("migrated twice it changes: %v", err)
	}
	if err := l.Pull(t.Context(), bundles); err != nil {
		t.Fatal(err)
	}
	for i, b := range bundles {
		if diff := cmp.Diff(before[i], manifests(t, b)); diff != "" {
			t.Errorf("%s: before and after (-/+):\n%s", b.Name, diff)
		}
	}
	if bare := Bare(bundles); len(bare) != 0 {
		t.Errorf("%d bundles are bare", len(bare))
	}
	if _, err := inline(bundles[0]); err != nil {
		t.Errorf("what was pulled can't be served: %v", err)
	}
}

func manifests(t *testing.T, b *Bundle) []string {
	t.Helper()
	objects, err := b.Objects()
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, o := range objects {
		text = append(text, string(o))
	}
	return text
}

func TestMigrateKeepsWhatHasNoImage(t *testing.T) {
	c, err := Load(t.Context(), nil, "../../bundle/memcached-operator/0.5.0")
	if err != nil {
		t.Fatal(err)
	}
	before := string(c.Documents[0].JSON)
	if err := c.Migrate(); err != nil || string(c.Documents[0].JSON) != before {
		t.Errorf("a bundle that OLM could then not install was migrated: %v", err)
	}
}

func TestPullRefuses(t *testing.T) {
	l, c := pushed(t, "0.4.0", "0.5.0")
	if err := c.Migrate(); err != nil {
		t.Fatal(err)
	}
	old, good := c.Packages[0].Bundles[0], c.Packages[0].Bundles[1]
	for name, test := range map[string]struct{ image, err string }{
		"another bundle's image": {old.Image, "holds another one"},
		"an image not there":     {strings.Replace(good.Image, "team/bundle", "team/missing", 1), "team/missing"},
		"a folder":               {"../../bundle/memcached-operator/0.5.0", "no reference"},
		"standard input":         {"-", "no reference"},
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := *good
			spoiled.Image = test.image
			err := l.Pull(t.Context(), []*Bundle{old, &spoiled})
			if err == nil || !strings.Contains(err.Error(), test.err) || !strings.Contains(err.Error(), good.Name) || hint.Of(err) == "" {
				t.Errorf("got %v, want an error of bundle %s with %q and a fix", err, good.Name, test.err)
			}
			if len(Bare([]*Bundle{old})) != 1 {
				t.Error("the other bundle was changed")
			}
		})
	}
	var flaw Flaw
	if err := l.Pull(t.Context(), []*Bundle{{Name: "x", Image: "-"}}); !errors.As(err, &flaw) {
		t.Errorf("%v is not told to be the catalog's own fault", err)
	}
}

// The error is of the first bundle, in their order, also if that takes longest to fail.
func TestPullNamesTheFirst(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return
		}
		if strings.Contains(r.URL.Path, "/slow/") {
			time.Sleep(100 * time.Millisecond)
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	var bundles []*Bundle
	for _, name := range []string{"slow", "fast", "fast", "fast", "fast", "fast"} {
		bundles = append(bundles, &Bundle{Name: name, Image: host + "/team/" + name + "/bundle:v1"})
	}
	if err := (Loader{}).Pull(t.Context(), bundles); err == nil || !strings.Contains(err.Error(), "pull bundle slow") || strings.Contains(err.Error(), "fast") {
		t.Errorf("got %v", err)
	}
}
