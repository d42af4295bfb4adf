//go:build linux

package makefile_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// apartFrom are modules of which a tool has an older version than olmkit, and why.
var apartFrom = map[string][]string{
	"cluster": {"github.com/operator-framework/operator-registry"}, // that of the release of OLM
}

func required(t *testing.T, module string) map[string]string {
	t.Helper()
	file := filepath.Join(root, module, "go.mod")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.Parse(file, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range parsed.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions
}

// TestSharedVersions: tools that are built in every run of CI have no older version of a module than olmkit, so that its packages
// are compiled once. Linters and GoReleaser are left out, which have hardly a module in common with it.
func TestSharedVersions(t *testing.T) {
	ours := required(t, ".")
	for _, tool := range []string{"cluster", "codegen", "kubectl", "opm", "registry"} {
		for path, version := range required(t, filepath.Join("tools", tool)) {
			if own, ok := ours[path]; ok && semver.Compare(version, own) < 0 && !slices.Contains(apartFrom[tool], path) {
				t.Errorf("tools/%s has %s %s, and olmkit has %s: 'go -C tools/%[1]s get %[2]s@%[4]s'", tool, path, version, own)
			}
		}
		for _, path := range apartFrom[tool] {
			if ours[path] == "" {
				t.Errorf("%s is no module of olmkit's", path)
			}
		}
	}
}
