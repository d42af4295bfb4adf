package embedded

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/txtar"

	"github.com/olmkit/olmkit/internal/progress"
)

// TestOLMModules: the module of each release requires that release and nothing else, by its digests.
func TestOLMModules(t *testing.T) {
	releases, minors := OLMReleases(), OLMMinors()
	if !slices.IsSortedFunc(releases, semver.Compare) || len(slices.Compact(slices.Clone(minors))) != len(minors) {
		t.Errorf("%v are not one of each minor, from the oldest on", releases)
	}
	if n := len(txtar.Parse(olmModules).Files); n != 2*len(otherOLMReleases) {
		t.Errorf("olm.txtar has %d files of %d releases: run 'make olm-modules'", n, len(otherOLMReleases))
	}
	for _, release := range otherOLMReleases {
		files := map[string]string{}
		for _, f := range txtar.Parse(olmComponentsOf(release).module).Files {
			files[f.Name] = string(f.Data)
		}
		m, err := modfile.Parse("go.mod", []byte(files["go.mod"]), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Require) != 1 || m.Require[0].Mod.Path != olmModule || m.Require[0].Mod.Version != release || len(m.Replace) > 0 {
			t.Errorf("%s: go.mod is\n%s", release, files["go.mod"])
		}
		sums := strings.Fields(files["go.sum"])
		if len(sums) != 6 || sums[1] != release || sums[4] != release+"/go.mod" || !strings.HasPrefix(sums[2], "h1:") || !strings.HasPrefix(sums[5], "h1:") {
			t.Errorf("%s: go.sum is\n%s", release, files["go.sum"])
		}
	}
}

// Another release is built in the folder that the Go command has of its module; a stand-in for that command says where it builds. Its
// CustomResourceDefinitions are kept beside the programs, and as well guarded against damage.
func TestOtherOLM(t *testing.T) {
	release, cache := otherOLMReleases[0], t.TempDir()
	t.Setenv("OLMKIT_CACHE", cache)
	module := withFakeGoModule(t)
	definitions := filepath.Join(module, "deploy", "chart", "crds")
	if _, err := OLMDefinitions(t.Context(), release, Source{}, nil); err == nil || !strings.Contains(err.Error(), "there are no files") {
		t.Errorf("a module without definitions: %v", err)
	}
	if err := os.MkdirAll(definitions, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"b.crd.yaml": "kind: B\n", "a.crd.yaml": "kind: A\n", "readme.md": "other"} {
		if err := os.WriteFile(filepath.Join(definitions, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	dirs, err := Build(t.Context(), Parts{OLMv0: []string{release}}, progress.New(&said))
	if err != nil || len(dirs) != 1 || !strings.Contains(said.String(), "to build once: OLM "+release+"; ") {
		t.Fatalf("%v, %v\n%s", dirs, err, said.String())
	}
	for _, program := range olmComponents.files() {
		if data, err := os.ReadFile(filepath.Join(dirs[0], program)); err != nil || string(data) != "built in "+module {
			t.Errorf("%s was %q, %v; want it in %s", program, data, err, module)
		}
	}
	kept := filepath.Join(dirs[0], olmDefinitions)
	for range 2 {
		if crds, err := OLMDefinitions(t.Context(), release, Source{}, nil); err != nil || string(crds) != "---\nkind: A\n---\nkind: B\n" {
			t.Errorf("definitions %q, %v", crds, err)
		}
		time.Sleep(20 * time.Millisecond) // beyond what the kernel's clock tells apart
		if err := os.WriteFile(kept, []byte("kind: C\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if images := olmImages(release, dirs...); len(images) != 1 || images["quay.io/operator-framework/olm:"+release] != filepath.Join(dirs[0], "olm") {
		t.Errorf("images %v", images)
	}
	if crds, err := OLMDefinitions(t.Context(), OLMVersion, Source{}, nil); crds != nil || err != nil {
		t.Errorf("olmkit has the definitions of %s itself: %q, %v", OLMVersion, crds, err)
	}
}

// withFakeGoModule has a program go on the PATH that downloads OLM's module to the folder that is returned, and builds in no time.
func withFakeGoModule(t *testing.T) string {
	t.Helper()
	dir, module := t.TempDir(), t.TempDir()
	fakeGo := fmt.Sprintf(`#!/bin/sh
[ "$1" = env ] && { echo go1.0; exit; }
[ "$1" = mod ] && { grep -q %[1]q go.mod && echo '{"Path": %[1]q, "Dir": %[2]q}'; exit; }
while [ "$1" != -o ]; do shift; done
printf 'built in %%s' "$PWD" >"$2"
`, olmModule, module)
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(fakeGo), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return module
}
