package catalog

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/cache"
)

const shelfCatalog = `schema: olm.package
name: tea
defaultChannel: stable
icon: {base64data: eA==, mediatype: image/png}
---
{schema: olm.channel, package: tea, name: stable, entries: [{name: tea.v1, skipRange: <1.0.0}, {name: tea.v2, replaces: tea.v1, skips: [tea.v1.5]}]}
---
schema: olm.bundle
package: tea
name: tea.v1
image: registry.example.com/tea:1
properties:
- {type: olm.package, value: {packageName: tea, version: 1.0.0}}
- {type: olm.csv.metadata, value: {description: long}}
- {type: olm.maxOpenShiftVersion, value: "<4>"}
relatedImages: [{name: a, image: registry.example.com/a}]
---
schema: olm.bundle
package: tea
name: tea.v2
image: ''
properties:
- {type: olm.package, value: {packageName: tea, version: 2.0.0}}
- {type: olm.bundle.object, value: {data: eyJraW5kIjoiQSIsInRleHQiOiI8YT4ifQ==}}
- {type: olm.bundle.object, value: {data: a2luZDogQgp0ZXh0OiBZQU1MCg==}}
---
{schema: olm.deprecations, package: tea, entries: [{reference: {schema: olm.bundle, name: tea.v1}, message: old}]}
---
{schema: example.com/other, package: tea, text: of somebody}
`

// offered is what is served of c, and the manifests of each bundle.
func offered(t *testing.T, c *Catalog) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, p := range c.Packages {
		all[p.Name] = p.DefaultChannel
		for _, ch := range p.Channels {
			all[p.Name+"/"+ch.Name] = slices.Collect(func(yield func(Entry) bool) {
				for _, e := range ch.Entries {
					e.At.Line, e.At.Column = 0, 0
					if !yield(e) {
						return
					}
				}
			})
		}
		for _, b := range p.Bundles {
			objects, err := b.Objects()
			if err != nil {
				t.Fatal(err)
			}
			var texts, properties []string
			for _, o := range objects {
				texts = append(texts, string(o))
			}
			for _, p := range b.Properties {
				if p.Type != PropertyObject && p.Type != PropertyCSVMetadata {
					properties = append(properties, p.Type+string(p.Value))
				}
			}
			all[p.Name+"/"+b.Name] = []any{b.Image, b.Version.String(), texts, properties, b.At}
		}
		for _, d := range p.Deprecations {
			all[p.Name+" is deprecated: "+d.Schema+d.Name] = d.Message
		}
	}
	return all
}

func TestShelve(t *testing.T) {
	dir, store := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tea.yaml", shelfCatalog)
	write("milk.json", `{"schema": "olm.package", "name": "milk", "defaultChannel": "a"}`)
	shelving := Loader{Cache: cache.New(store)}
	var first *Catalog
	holds := func(what string, l Loader, ref string) *Catalog {
		t.Helper()
		want, err := l.Load(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.OpenLazy(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if want, got := offered(t, want), offered(t, got); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%v\nwant\n%v", what, got, want)
		}
		return got
	}
	first = holds("for the first time", shelving, dir)
	if b := first.Find("tea").Bundle("tea.v2"); b.Has(PropertyObject) {
		t.Error("the manifests are in memory")
	}
	holds("from the cache", shelving, dir)
	holds("a file", shelving, filepath.Join(dir, "tea.yaml"))
	holds("without a cache", Loader{}, dir)
	holds("where nothing can be kept", Loader{Cache: cache.New("/dev/null/nowhere")}, dir)

	write("tea.yaml", strings.Replace(shelfCatalog, "eyJraW5kIjoiQSIsInRleHQiOiI8YT4ifQ==", "eyJraW5kIjoiQyJ9", 1))
	holds("after a change", shelving, dir)
	// What is kept is damaged, and then gone: new catalogs are made of the files, and old ones stay as they are.
	if err := filepath.WalkDir(store, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return os.WriteFile(file+".new", []byte("damaged"), 0o600)
	}); err != nil {
		t.Fatal(err)
	}
	damaged, err := filepath.Glob(filepath.Join(store, "*", "*.new"))
	if err != nil || len(damaged) == 0 {
		t.Fatalf("nothing is kept: %v", err)
	}
	for _, file := range damaged {
		if err := os.Rename(file, strings.TrimSuffix(file, ".new")); err != nil {
			t.Fatal(err)
		}
	}
	holds("from a damaged cache", shelving, dir)
	if err := os.RemoveAll(store); err != nil {
		t.Fatal(err)
	}
	objects, err := first.Find("tea").Bundle("tea.v2").Objects()
	if err != nil || len(objects) != 2 || string(objects[0]) != `{"kind":"A","text":"<a>"}` {
		t.Errorf("the first catalog's manifests: %s, %v", objects, err)
	}
}

// TestShelveProblems: what is wrong with a catalog is found as often as it is read.
func TestShelveProblems(t *testing.T) {
	l := Loader{Cache: cache.New(t.TempDir())}
	for name, text := range map[string]string{"syntax": "a: [", "schema": "a: b", "type": "schema: olm.channel\npackage: tea\nname: a\nentries: b\n"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want, err := l.Load(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := l.OpenLazy(t.Context(), dir)
			if err != nil || len(got.Problems) == 0 || !reflect.DeepEqual(got.Problems, want.Problems) {
				t.Errorf("%s: %v, %v; want %v", name, got.Problems, err, want.Problems)
			}
		}
	}
	// A sound part of what is wrong is no sound catalog.
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	const whole = "schema: olm.package\nname: tea\n"
	for _, text := range []string{whole, whole + "---\nname: milk\n"} {
		problems := strings.Count(text, "milk")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := l.OpenLazy(t.Context(), file)
			if err != nil || len(got.Problems) != problems {
				t.Errorf("%q: %v, %v", text, got.Problems, err)
			}
		}
	}
	if _, err := l.OpenLazy(t.Context(), t.TempDir()); err == nil {
		t.Error("an empty folder is a catalog")
	}
	if _, err := l.OpenLazy(t.Context(), "nowhere"); err == nil {
		t.Error("what is not there is a catalog")
	}
}
