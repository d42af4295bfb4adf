package embedded

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/txtar"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/progress"
)

// TestComponentsModules holds the embedded archives to their folders, and the versions said elsewhere to what they pin.
func TestComponentsModules(t *testing.T) {
	for _, m := range []struct {
		dir    string
		set    *componentSet
		pinned map[string]string
	}{
		{"../../../tools/cluster", kubernetesComponents(KubernetesVersion), map[string]string{"k8s.io/kubernetes": KubernetesVersion, olmModule: OLMVersion}},
		{"../../../tools/olmv1", olmV1Components, map[string]string{operatorControllerModule: OLMv1Version}},
		{"../../../tools/kind/kind", kindComponents, map[string]string{kindModulePath: KindVersion}},
	} {
		archive := map[string][]byte{}
		for _, f := range txtar.Parse(m.set.module).Files {
			archive[f.Name] = f.Data
		}
		if err := filepath.WalkDir(m.dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			name, err := filepath.Rel(m.dir, path)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil && !bytes.Equal(archive[filepath.ToSlash(name)], data) {
				t.Errorf("%s in the archive is not the one in %s: run 'make generate'", name, m.dir)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		module, err := modfile.Parse("go.mod", archive["go.mod"], nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range module.Require {
			if version, ok := m.pinned[r.Mod.Path]; ok && version != r.Mod.Version {
				t.Errorf("%s is pinned to %s, and said to be %s", r.Mod.Path, r.Mod.Version, version)
			}
			delete(m.pinned, r.Mod.Path)
		}
		for path := range m.pinned {
			t.Errorf("%s is not pinned", path)
		}
	}
}

// Where there is no Go those components serve that are there, whichever version of it built them.
func TestComponentsWithoutGo(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("PATH", t.TempDir())
	if c, err := olmComponents.ensure(t.Context(), cache, Source{}, nil); err == nil {
		t.Fatalf("without components and without Go there are %v", c)
	}
	dir := olmComponents.content(cache, runtime.GOARCH) + "-go1.0"
	fakeComponents(t, dir)
	if c, err := olmComponents.ensure(t.Context(), cache, Source{}, nil); err != nil || c != dir {
		t.Errorf("components %v, %v", c, err)
	}
	if err := os.WriteFile(filepath.Join(dir, olmComponents.files()[0]), []byte("other"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := olmComponents.ensure(t.Context(), cache, Source{}, nil); err == nil || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(hint.Of(err), "build them again") {
		t.Errorf("damaged ones: %v (%s)", err, hint.Of(err))
	}
}

// A flipped bit in a program is found, said, and mended by building again; a stand-in for Go does that here.
func TestDamagedComponentsAreBuiltAgain(t *testing.T) {
	cache := t.TempDir()
	withFakeGo(t)
	dir := olmComponents.content(cache, runtime.GOARCH) + "-go1.0"
	for _, file := range olmComponents.files() {
		var said bytes.Buffer
		built, err := olmComponents.ensure(t.Context(), cache, Source{}, progress.New(&said))
		if err != nil || built != dir {
			t.Fatalf("components %v, %v\n%s", built, err, said.String())
		}
		program := filepath.Join(dir, file)
		data, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		data[2] ^= 1
		time.Sleep(20 * time.Millisecond) // beyond what the kernel's clock tells apart
		if err := os.WriteFile(program, data, 0o755); err != nil {
			t.Fatal(err)
		}
		said.Reset()
		if _, err := olmComponents.ensure(t.Context(), cache, Source{}, progress.New(&said)); err != nil || !strings.Contains(said.String(), program+" is damaged") {
			t.Errorf("%s: %v\n%s", file, err, said.String())
		}
		if mended, err := os.ReadFile(program); err != nil || string(mended) != "built" {
			t.Errorf("%s holds %q, %v", file, mended, err)
		}
	}
}

// fakeComponents puts files that are no programs in their place, and records their digests.
func fakeComponents(t *testing.T, dir string) {
	t.Helper()
	for _, file := range olmComponents.files() {
		path := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("built"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := olmComponents.recordDigests(dir); err != nil {
		t.Fatal(err)
	}
}

// Damage is found whichever component has it, also when its size and its time of modification are what they were.
func TestDamagedComponents(t *testing.T) {
	for _, file := range olmComponents.files() {
		t.Run(file, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "components")
			fakeComponents(t, dir)
			for range 2 {
				if err := olmComponents.check(dir); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(dir, file)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // beyond what the kernel's clock tells apart
			if err := errors.Join(os.WriteFile(path, []byte("build"), 0o755), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
				t.Fatal(err)
			}
			if err := olmComponents.check(dir); !errors.As(err, &damagedError{}) {
				t.Errorf("got %v", err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := olmComponents.check(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("without it: %v", err)
			}
		})
	}
	t.Run("without digests", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "components")
		fakeComponents(t, dir)
		if err := os.Remove(filepath.Join(dir, digestsFile)); err != nil {
			t.Fatal(err)
		}
		if err := olmComponents.check(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}
