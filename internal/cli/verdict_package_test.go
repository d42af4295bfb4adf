package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
)

// packagesIn returns the names of the files in the cache of packages' verdicts.
func packagesIn(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(folder, "verdicts-by-package"), func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[file] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// severalPackages returns this repository's catalog under several names of its package, each requiring the next one.
func severalPackages(t *testing.T, count int) []string {
	t.Helper()
	data, err := os.ReadFile("../../catalog/memcached-operator/catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for i := range count {
		text := strings.ReplaceAll(string(data), "memcached-operator", fmt.Sprintf("pots-%d", i))
		required := fmt.Sprintf("properties:\n  - type: olm.package.required\n    value:\n      packageName: pots-%d\n      versionRange: '>=%d.0.0'\n", (i+1)%count, i%2)
		texts = append(texts, strings.ReplaceAll(text, "properties:\n", required))
	}
	return texts
}

// TestPackageVerdicts: whatever changes in a catalog, the verdict is the one that judging all of it gives, and only the packages that
// changed are judged.
func TestPackageVerdicts(t *testing.T) {
	dir := t.TempDir()
	texts := severalPackages(t, 4)
	inOne := func(texts ...string) map[string]string {
		return map[string]string{"catalog.yaml": strings.Join(texts, "---\n")}
	}
	changed := strings.Replace(texts[2], "replaces: pots-2.v0.4.0", "replaces: pots-2.v0.4.9", 1)
	withTwice := strings.Replace(texts[3], "  - name: pots-3.v0.5.0\n", "  - name: pots-3.v0.5.0\n  - name: pots-3.v0.5.0\n", 1)
	aimless := strings.Replace(texts[3], "defaultChannel: stable\n", "", 1) // of which a finding stands in its first line
	if changed == texts[2] || withTwice == texts[3] || aimless == texts[3] {
		t.Fatal("nothing changed")
	}
	folder := t.TempDir()
	before := 0
	for _, step := range []struct {
		name  string
		files map[string]string
		args  []string
		new   int // packages that are judged
	}{
		{name: "all", files: inOne(texts...), new: 4},
		{name: "a comment at the end", files: inOne(append(texts[:4:4], "# nothing\n")...)},
		{name: "moved down", files: inOne(append([]string{"# one\n# two\n"}, texts...)...)},
		{name: "one changed", files: inOne(texts[0], texts[1], changed, texts[3]), new: 1},
		{name: "one is longer, so that one moved that says where", files: inOne(texts[0], texts[1]+"# more\n\n", changed, texts[3]), new: 2},
		{name: "one is gone, which another requires", files: inOne(texts[1:]...)},
		{name: "only some checks", files: inOne(texts...), args: []string{"--only", "EDG,CAT,DEP"}, new: 4},
		{name: "one package", files: inOne(texts...), args: []string{"--package", "pots-2"}},
		{name: "against", files: inOne(texts...), args: []string{"--against", "AGAINST"}, new: 4},
		{name: "a text that says where", files: inOne(texts[0], texts[1], texts[2], withTwice), new: 1},
		{name: "that moved", files: inOne("# one\n"+texts[0], texts[1], texts[2], withTwice), new: 1},
		{name: "found in the first line", files: inOne(texts[0], texts[1], texts[2], aimless), new: 1},
		{name: "which moved", files: inOne("# one\n"+texts[0], texts[1], texts[2], aimless)},
		{name: "in files", files: map[string]string{"a.yaml": texts[0], "b.yaml": "# b\n" + texts[1]}, new: 2},
		{name: "in files, one moved", files: map[string]string{"a.yaml": "# a\n\n" + texts[0], "b.yaml": texts[1]}},
	} {
		if err := os.RemoveAll(filepath.Join(dir, "catalog")); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "catalog"), 0o750); err != nil {
			t.Fatal(err)
		}
		for name, text := range step.files {
			if err := os.WriteFile(filepath.Join(dir, "catalog", name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args := []string{filepath.Join(dir, "catalog"), "--all"}
		for _, arg := range step.args {
			if arg == "AGAINST" {
				arg = catalogCopy(t)
			}
			args = append(args, arg)
		}
		t.Setenv("OLMKIT_CACHE", "off")
		want := validateCatalog(t, args...)
		t.Setenv("OLMKIT_CACHE", folder)
		if got := validateCatalog(t, args...); got != want {
			t.Errorf("%s: the verdict is another one", step.name)
		}
		now := len(packagesIn(t, folder))
		if now-before != step.new {
			t.Errorf("%s: %d packages are judged, not %d", step.name, now-before, step.new)
		}
		before = now
	}
}

// A damaged entry, or that of another program, is not taken.
func TestPackageVerdictsOfOthers(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	write := func(texts ...string) {
		if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), []byte(strings.Join(texts, "---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	texts := severalPackages(t, 2)
	write(texts...)
	t.Setenv("OLMKIT_CACHE", "off")
	want := validateCatalog(t, dir)
	t.Setenv("OLMKIT_CACHE", folder)
	validateCatalog(t, dir)
	for file := range packagesIn(t, folder) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, bytes.Replace(data, []byte("EDG"), []byte("CRD"), 1), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(folder, "verdicts")); err != nil {
		t.Fatal(err)
	}
	if validateCatalog(t, dir) != want {
		t.Error("damaged entries make another verdict")
	}
	loaded, err := catalog.Load(t.Context(), nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[[32]byte]bool{}
	for _, v := range []*packageVerdicts{
		(&session{}).packageVerdicts([]byte("one"), check.Options{}, loaded), (&session{}).packageVerdicts([]byte("two"), check.Options{}, loaded),
		(&session{}).packageVerdicts([]byte("one"), check.Options{Skip: []string{"CRD"}}, loaded),
		(&session{}).packageVerdicts([]byte("one"), check.Options{Previous: loaded}, loaded),
		(&session{}).packageVerdicts([]byte("one"), check.Options{Previous: &catalog.Catalog{}}, loaded),
	} {
		for _, moved := range []bool{true, false} {
			key, _, ok := v.key(loaded.Packages[0], moved)
			if !ok {
				t.Fatal("a package has no key")
			}
			keys[key] = true
		}
	}
	if len(keys) != 10 {
		t.Errorf("there are %d keys", len(keys))
	}
	if (&session{}).packageVerdicts([]byte("one"), check.Options{Registry: check.Registry{}}, loaded) != nil {
		t.Error("what a registry has is kept")
	}
}
