package catalog

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/cache"
)

// wiping is a writer that deletes a folder before it takes the first text.
type wiping struct {
	bytes.Buffer
	dir string
}

func (w *wiping) Write(data []byte) (int, error) {
	if w.Len() == 0 {
		if err := os.RemoveAll(w.dir); err != nil {
			return 0, err
		}
	}
	return w.Buffer.Write(data)
}

// noFolder is the folder to wipe of who has no temporary one.
const noFolder = "no folder"

func TestRenderStreams(t *testing.T) {
	// Documents that stand twice, and one of no package, in both formats.
	several := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml": "schema: olm.package\nname: a\ndefaultChannel: c\n---\nschema: olm.bundle\nname: a.v2\npackage: a\nproperties:\n- {type: olm.package, value: {packageName: a, version: 2.0.0}}\n---\nschema: other\nbig: 9007199254740993\n",
		"a.json": `{"schema": "olm.bundle", "name": "a.v10", "package": "a", "properties": [{"type": "olm.package", "value": {"packageName": "a", "version": "10.0.0"}}]} {"schema": "olm.bundle", "name": "a.v2", "package": "a"}`,
		"c.yaml": "schema: olm.bundle\nname: a.v1\npackage: a\n",
	} {
		if err := os.WriteFile(filepath.Join(several, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	refs := []string{"../../catalog", several, "../../bundle/memcached-operator/0.1.0", filepath.Join(several, "c.yaml"), "../../bundle/memcached-operator/0.5.0"}
	for _, format := range Formats {
		t.Run(format, func(t *testing.T) {
			loaded, err := Load(t.Context(), nil, refs...)
			if err != nil || loaded.Err() != nil {
				t.Fatal(err, loaded.Err())
			}
			var want bytes.Buffer
			if err := Write(&want, format, loaded.Sorted()); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "cache")
			unwritable := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(unwritable, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				name  string
				cache *cache.Cache
				wipe  string
			}{
				{"no cache", nil, ""},
				{"no cache, and no temporary folder", nil, noFolder},
				{"nowhere to keep it", cache.New(unwritable), ""},
				{"cold", cache.New(dir), ""},
				{"warm", cache.New(dir), ""},
				{"deleted while it is used", cache.New(dir), dir},
				{"cold, and deleted while it is used", cache.New(dir), dir},
			} {
				temporary := t.TempDir()
				if c.wipe == noFolder {
					temporary = unwritable
				}
				t.Setenv("TMPDIR", temporary)
				got := wiping{dir: c.wipe}
				if err := (Loader{Cache: c.cache}).Render(t.Context(), &got, format, refs...); err != nil {
					t.Errorf("%s: %v", c.name, err)
				} else if !bytes.Equal(got.Bytes(), want.Bytes()) {
					t.Errorf("%s: it differs from what Load, Sorted and Write make:\n%s", c.name, got.String())
				}
				if left, err := os.ReadDir(temporary); c.wipe != noFolder && (err != nil || len(left) > 0) {
					t.Errorf("%s: it left %v, %v", c.name, left, err)
				}
			}
		})
	}
}

// TestRenderUsesCache holds that what the cache has is not made again, and what is damaged is.
func TestRenderUsesCache(t *testing.T) {
	dir := t.TempDir()
	l := Loader{Cache: cache.New(dir)}
	render := func() string {
		var b strings.Builder
		if err := l.Render(t.Context(), &b, "json", "../../bundle/memcached-operator/0.1.0"); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	want := render()
	var entries []string
	if err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			entries = append(entries, name)
		}
		return err
	}); err != nil || len(entries) != 2 {
		t.Fatalf("entries %v, %v: want that of the bundle, and that of the set", entries, err)
	}
	for _, file := range entries {
		before, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if render() != want {
			t.Error("the cache's rendering is another")
		}
		if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
			t.Error("an entry that is there was made again")
		}
		damageEntry(t, file, func(name string) {
			if render() != want {
				t.Errorf("with an entry %s the rendering is another", name)
			}
		})
		render()
	}
}

// damageEntry calls look with an entry of the cache that is damaged in several ways, and removes it.
func damageEntry(t *testing.T, file string, look func(name string)) {
	t.Helper()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"changed": func(b []byte) []byte { b[len(b)-10]++; return b },
		"empty":   func([]byte) []byte { return nil },
	} {
		if err := os.WriteFile(file, damage(bytes.Clone(whole)), 0o644); err != nil {
			t.Fatal(err)
		}
		look(name)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

func TestRenderTellsProblems(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "c.yaml"), []byte("schema: olm.bundle\nname: a\npackage: b\nproperties: 7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var b strings.Builder
		err := Loader{Cache: cache.New(filepath.Join(dir, "cache"))}.Render(t.Context(), &b, "json", filepath.Join(dir, "c.yaml"), dir)
		if err == nil || !strings.Contains(err.Error(), "c.yaml:4:1: properties is a number where a list belongs") || b.Len() > 0 {
			t.Errorf("got %v and %q", err, b.String())
		}
	}
}
