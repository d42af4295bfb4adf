package embedded

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/txtar"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/progress"
)

// TestComponentsModule holds the embedded archive to tools/cluster, and the versions said elsewhere to what it pins.
func TestComponentsModule(t *testing.T) {
	const dir = "../../../tools/cluster"
	archive := map[string][]byte{}
	for _, f := range txtar.Parse(componentsModule).Files {
		archive[f.Name] = f.Data
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(archive[e.Name()], data) {
			t.Errorf("%s in the archive is not the one in %s: run 'make generate'", e.Name(), dir)
		}
	}
	module, err := modfile.Parse("go.mod", archive["go.mod"], nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"k8s.io/kubernetes": KubernetesVersion, olmModule: OLMVersion}
	for _, r := range module.Require {
		if version, ok := want[r.Mod.Path]; ok && version != r.Mod.Version {
			t.Errorf("%s is pinned to %s, and said to be %s", r.Mod.Path, r.Mod.Version, version)
		}
		delete(want, r.Mod.Path)
	}
	for path := range want {
		t.Errorf("%s is not pinned", path)
	}
}

// Where there is no Go those components serve that are there, whichever version of it built them.
func TestComponentsWithoutGo(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("PATH", t.TempDir())
	if c, err := EnsureComponents(t.Context(), cache, nil); err == nil {
		t.Fatalf("without components and without Go there are %v", c)
	}
	dir := content(cache) + "-go1.0"
	fakeComponents(t, dir)
	if c, err := EnsureComponents(t.Context(), cache, nil); err != nil || c.Dir != dir {
		t.Errorf("components %v, %v", c, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cluster"), []byte("other"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureComponents(t.Context(), cache, nil); err == nil || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(hint.Of(err), "build them again") {
		t.Errorf("damaged ones: %v (%s)", err, hint.Of(err))
	}
}

// A flipped bit in a program is found, said, and mended by building again; a stand-in for Go does that here.
func TestDamagedComponentsAreBuiltAgain(t *testing.T) {
	cache, tools := t.TempDir(), t.TempDir()
	const fakeGo = `#!/bin/sh
[ "$1" = env ] && { echo go1.0; exit; }
while [ "$1" != -o ]; do shift; done
printf built >"$2"
`
	if err := os.WriteFile(filepath.Join(tools, "go"), []byte(fakeGo), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	dir := content(cache) + "-go1.0"
	for _, file := range componentFiles {
		var said bytes.Buffer
		built, err := EnsureComponents(t.Context(), cache, progress.New(&said))
		if err != nil || built.Dir != dir {
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
		if _, err := EnsureComponents(t.Context(), cache, progress.New(&said)); err != nil || !strings.Contains(said.String(), program+" is damaged") {
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
	for _, file := range componentFiles {
		path := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("built"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := recordDigests(dir); err != nil {
		t.Fatal(err)
	}
}

// Damage is found whichever component has it, also when its size and its time of modification are what they were.
func TestDamagedComponents(t *testing.T) {
	for _, file := range componentFiles {
		t.Run(file, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "components")
			fakeComponents(t, dir)
			for range 2 {
				if err := checkComponents(dir); err != nil {
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
			if err := checkComponents(dir); !errors.As(err, &damagedError{}) {
				t.Errorf("got %v", err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := checkComponents(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("without it: %v", err)
			}
		})
	}
	t.Run("of before digests", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "components")
		fakeComponents(t, dir)
		if err := os.Remove(filepath.Join(dir, digestsFile)); err != nil {
			t.Fatal(err)
		}
		if err := checkComponents(dir); !errors.As(err, &damagedError{}) {
			t.Errorf("what is no program: %v", err)
		}
	})
}
