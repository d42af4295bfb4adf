package embedded

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/txtar"
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
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "cluster"), nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	if c, err := EnsureComponents(t.Context(), cache, nil); err != nil || c.Dir != dir {
		t.Errorf("components %v, %v", c, err)
	}
}
