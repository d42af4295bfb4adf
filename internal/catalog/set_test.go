package catalog

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/olmkit/olmkit/internal/cache"
)

const settledBundle = "../../bundle/memcached-operator/0.1.0"

// rendering returns what l renders of refs.
func rendering(t *testing.T, l Loader, refs ...string) string {
	t.Helper()
	var out strings.Builder
	if err := l.Render(t.Context(), &out, "json", refs...); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestRenderSet: of files that have not changed nothing is read, and whatever changes is seen, however carefully it is hidden.
func TestRenderSet(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("files are told apart by what they hold")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(settledBundle)); err != nil {
		t.Fatal(err)
	}
	csv := filepath.Join(dir, "manifests", "memcached-operator.clusterserviceversion.yaml")
	original, err := os.ReadFile(csv)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(csv)
	if err != nil {
		t.Fatal(err)
	}
	same := strings.Replace(string(original), "memcached", "memcacheD", 1)
	if same == string(original) {
		t.Fatal("nothing is to change")
	}
	extra := filepath.Join(dir, "manifests", "extra.yaml")
	l := Loader{Cache: cache.New(t.TempDir())}
	for name, change := range map[string]func() error{
		"content, with size and date as they were": func() error { return os.WriteFile(csv, []byte(same), 0o600) },
		"another file in its place": func() error {
			if err := os.WriteFile(csv+".new", []byte(same), info.Mode()); err != nil {
				return err
			}
			return os.Rename(csv+".new", csv)
		},
		"one more": func() error {
			return os.WriteFile(extra, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"), 0o600)
		},
		"a link there": func() error { return os.Symlink(filepath.Join("..", "metadata", "annotations.yaml"), extra) },
	} {
		time.Sleep(settled + 100*time.Millisecond)
		before := rendering(t, l, dir)
		if set := (renderer{Loader: l, format: "json"}).set(t.Context(), []string{dir}); !set.sound || set.get(nil) == nil {
			t.Fatal("the set is not kept")
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(csv, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		if want := rendering(t, Loader{}, dir); rendering(t, l, dir) != want {
			t.Errorf("%s: it is not seen", name)
		} else if name != "a link there" && want == before {
			t.Errorf("%s: nothing changed", name)
		}
		if err := os.WriteFile(csv, original, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(extra)
	}
}

// TestRenderSetIsUsed: what is kept is used: with another set in its place, that is the one.
func TestRenderSetIsUsed(t *testing.T) {
	t.Parallel()
	l := Loader{Cache: cache.New(t.TempDir())}
	rendering(t, l, settledBundle)
	set := (renderer{Loader: l, format: "json"}).set(t.Context(), []string{settledBundle})
	if set == nil {
		t.Skip("files are told apart by what they hold")
	}
	l.Cache.Put(set.key, cache.Part{Data: []byte("[]")})
	if got := rendering(t, l, settledBundle); got != "" {
		t.Errorf("the set is not used: %d bytes", len(got))
	}
	if rendering(t, l, settledBundle, settledBundle) == "" || rendering(t, Loader{Cache: l.Cache, MaxFile: 1 << 20}, settledBundle) == "" {
		t.Error("others have the same set")
	}
}

// TestRenderSetOfNewFiles: of files that changed but now nothing is kept, since another change may leave them the same time.
func TestRenderSetOfNewFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(settledBundle)); err != nil {
		t.Fatal(err)
	}
	l := Loader{Cache: cache.New(t.TempDir())}
	rendering(t, l, dir)
	if set := (renderer{Loader: l, format: "json"}).set(t.Context(), []string{dir}); set != nil && set.get(nil) != nil {
		t.Error("a set of files that were just written is kept")
	}
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"manifests", "metadata"} {
		files, err := os.ReadDir(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.Chtimes(filepath.Join(dir, name, f.Name()), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	rendering(t, l, dir)
	if set := (renderer{Loader: l, format: "json"}).set(t.Context(), []string{dir}); set != nil && set.get(nil) != nil {
		t.Error("a set of files that say they are old is kept")
	}
}
