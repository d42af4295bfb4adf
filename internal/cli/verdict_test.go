package cli

import (
	"bytes"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/check"
)

// validateCatalog returns what 'catalog validate -o json' prints.
func validateCatalog(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	code := Run(t.Context(), Streams{Out: &out, Err: &errOut}, slices.Concat([]string{"catalog", "validate", "-q", "-o", "json", "--fail-on", "never"}, args))
	if code != exitPassed {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	return out.String()
}

// entries returns the files of the cache of verdicts.
func entries(t *testing.T, folder string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(folder, "verdicts"), func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// catalogCopy returns a copy of this repository's catalog.
func catalogCopy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../catalog/memcached-operator")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A verdict that was kept is the one that judging again would give, and no other question gets it.
func TestKeptVerdict(t *testing.T) {
	folder, dir := t.TempDir(), catalogCopy(t)
	t.Setenv("OLMKIT_CACHE", "off")
	want, all, only := validateCatalog(t, dir), validateCatalog(t, dir, "--all"), validateCatalog(t, dir, "--only", "EDG", "--all")
	t.Setenv("OLMKIT_CACHE", folder)
	for _, when := range []string{"cold", "warm"} {
		if got := validateCatalog(t, dir); got != want {
			t.Errorf("%s, the verdict is another one", when)
		}
		if validateCatalog(t, dir, "--all") != all || validateCatalog(t, dir, "--only", "EDG", "--all") != only {
			t.Errorf("%s, the verdict with other flags is another one", when)
		}
	}
	kept := entries(t, folder)
	if len(kept) != 2 { // --all has the same
		t.Fatalf("%d verdicts are kept", len(kept))
	}
	for _, file := range kept {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, damaged := range [][]byte{nil, data[:len(data)/2], bytes.Replace(data, []byte("EDG"), []byte("CRD"), 1)} {
			if err := os.WriteFile(file, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if validateCatalog(t, dir) != want || validateCatalog(t, dir, "--only", "EDG", "--all") != only {
				t.Errorf("a damaged entry makes another verdict")
			}
		}
	}
}

// What is kept is used: with another verdict in its place, that is the one.
func TestKeptVerdictIsUsed(t *testing.T) {
	folder, dir := t.TempDir(), catalogCopy(t)
	t.Setenv("OLMKIT_CACHE", folder)
	validateCatalog(t, dir)
	kept := entries(t, folder)
	if len(kept) != 1 {
		t.Fatalf("%d verdicts are kept", len(kept))
	}
	var key cache.Key
	if _, err := hex.Decode(key[:], []byte(filepath.Base(filepath.Dir(kept[0]))+filepath.Base(kept[0]))); err != nil {
		t.Fatal(err)
	}
	cache.New(filepath.Join(folder, "verdicts")).Put(key, cache.Part{Data: []byte(`{"Findings": [{"code": "XYZ001", "severity": "error", "message": "planted"}]}`)})
	if got := validateCatalog(t, dir); !strings.Contains(got, "planted") {
		t.Errorf("the kept verdict is not used: %s", got)
	}
}

// A change of the catalog is seen, also one that leaves size and date as they were.
func TestKeptVerdictOfChangedCatalog(t *testing.T) {
	t.Setenv("OLMKIT_CACHE", t.TempDir())
	dir := catalogCopy(t)
	before := validateCatalog(t, dir)
	file := filepath.Join(dir, "catalog.yaml")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Replace(data, []byte("replaces: memcached-operator.v0.4.0"), []byte("replaces: memcached-operator.v0.4.9"), 1)
	if bytes.Equal(changed, data) || os.WriteFile(file, changed, 0o600) != nil || os.Chtimes(file, info.ModTime(), info.ModTime()) != nil {
		t.Fatal("the catalog is not changed")
	}
	if validateCatalog(t, dir) == before {
		t.Error("the verdict on the changed catalog is the old one")
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if validateCatalog(t, dir) != before {
		t.Error("the verdict on the old catalog is another one now")
	}
}

// Another program, flag, place or catalog to compare with is another question; what a registry or a template decides is not kept.
func TestVerdictKeys(t *testing.T) {
	t.Setenv("OLMKIT_CACHE", t.TempDir())
	s, dir := &session{}, catalogCopy(t)
	ask := func(program string, options check.Options, drawn bool, against string, refs ...string) *verdicts {
		return s.verdicts(t.Context(), []byte(program), options, drawn, against, refs)
	}
	keys := map[[32]byte]bool{}
	for _, v := range []*verdicts{
		ask("one", check.Options{}, false, "", dir), ask("two", check.Options{}, false, "", dir),
		ask("one", check.Options{Only: []string{"CRD"}}, false, "", dir), ask("one", check.Options{Skip: []string{"CRD"}}, false, "", dir),
		ask("one", check.Options{Packages: []string{"x"}}, false, "", dir), ask("one", check.Options{}, true, "", dir),
		ask("one", check.Options{}, false, dir, dir), ask("one", check.Options{}, false, "", dir, dir), ask("one", check.Options{}, false, "", catalogCopy(t)),
	} {
		if v == nil {
			t.Fatal("a verdict is not kept")
		}
		keys[v.key] = true
	}
	if len(keys) != 9 {
		t.Errorf("9 questions have %d keys", len(keys))
	}
	if ask("", check.Options{Registry: check.Registry{}}, false, "", dir) != nil || ask("one", check.Options{}, false, "", "-") != nil || ask("one", check.Options{}, false, "", "../../bundle/memcached-operator/0.1.0") != nil {
		t.Error("a verdict is kept that files alone do not decide")
	}
	if len(programDigest()) < 32 {
		t.Error("this program has no digest")
	}
}

// TestPublishedVerdicts holds what is kept of published catalogs to what judging them gives.
func TestPublishedVerdicts(t *testing.T) {
	root := os.Getenv("OLMKIT_DATA")
	if root == "" {
		t.Skip("OLMKIT_DATA names no folder of published bundles")
	}
	catalogs, err := filepath.Glob(filepath.Join(root, "catalogs", "*"))
	if err != nil || len(catalogs) == 0 {
		t.Fatal("no catalogs", err)
	}
	folder := t.TempDir()
	for _, dir := range catalogs {
		t.Setenv("OLMKIT_CACHE", "off")
		want := validateCatalog(t, dir, "--all")
		t.Setenv("OLMKIT_CACHE", folder)
		for _, verdict := range []string{"new", "kept"} {
			if validateCatalog(t, dir, "--all") != want {
				t.Errorf("%s: the %s verdict is another one", filepath.Base(dir), verdict)
			}
		}
	}
	if n := len(entries(t, folder)); n != len(catalogs) {
		t.Errorf("of %d catalogs %d verdicts are kept", len(catalogs), n)
	}
}
