package embedded

import (
	"bytes"
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
