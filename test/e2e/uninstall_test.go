//go:build linux

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/test/support/trace"
)

// chainOf makes a catalog whose channel stable is versions, each replacing the one before, and returns the arguments that
// walk it. Manifests go through change on their way.
func chainOf(t *testing.T, change func(version, manifest string) string, versions ...string) []string {
	t.Helper()
	dir := t.TempDir()
	var entries, bundles []string
	args := []string{"upgrade", "test", filepath.Join(dir, "catalog"), "--package", "memcached-operator", "--edges", "chain"}
	for i, version := range versions {
		made := filepath.Join(dir, version)
		if err := os.CopyFS(made, os.DirFS(filepath.Join(root, "bundle", "memcached-operator", version))); err != nil {
			t.Fatal(err)
		}
		manifests, err := filepath.Glob(filepath.Join(made, "manifests", "*.yaml"))
		if err != nil || len(manifests) == 0 {
			t.Fatalf("%s has no manifests: %v", made, err)
		}
		for _, file := range manifests {
			if err := os.WriteFile(file, []byte(change(version, read(t, file))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		bundles = append(bundles, made)
		entry := "- name: memcached-operator.v" + version
		if i > 0 {
			entry += "\n  replaces: memcached-operator.v" + versions[i-1]
		}
		entries = append(entries, entry)
		args = append(args, "--image", fmt.Sprintf("ghcr.io/olmkit/memcached-operator:v%s=%s", version, filepath.Join(root, "bin", "memcached-operator", "v"+version, "manager")))
	}
	head := "schema: olm.package\nname: memcached-operator\ndefaultChannel: stable\n---\n" +
		"schema: olm.channel\npackage: memcached-operator\nname: stable\nentries:\n" + strings.Join(entries, "\n") + "\n---\n"
	rendered := must(t, append([]string{"catalog", "render", "-o", "yaml"}, bundles...)...)
	if err := os.Mkdir(filepath.Join(dir, "catalog"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "catalog", "catalog.yaml"), []byte(head+rendered.out), 0o600); err != nil {
		t.Fatal(err)
	}
	return args
}

// TestUninstallThatDoesNotEnd walks to a release whose definition waits for somebody who never comes: what was found until
// then has to be told all the same.
func TestUninstallThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	before := trace.New(t)
	asJSON := filepath.Join(t.TempDir(), "report.json")
	args := chainOf(t, func(version, manifest string) string {
		if version == "0.4.0" && strings.Contains(manifest, "\nkind: CustomResourceDefinition\n") {
			return strings.Replace(manifest, "\nmetadata:\n", "\nmetadata:\n  finalizers: [example.com/nobody]\n", 1)
		}
		return manifest
	}, "0.3.1", "0.4.0")
	r := run(t, []string{before.Env()}, append(args, "--timeout", "1m", "--report", "json="+asJSON)...)
	before.Check(t)
	if r.code != 3 || !strings.Contains(r.out, "U606") {
		t.Fatalf("exit code %d\n%s\n%s", r.code, r.errOut, r.out)
	}
	said := readReport(t, asJSON)
	if said.Result != "failed" || len(said.Hops) != 1 || said.Hops[0].Result != "passed" {
		t.Errorf("the report is %s: %+v", said.Result, said.Hops)
	}
	if !slices.ContainsFunc(said.Findings, func(f jsonFinding) bool {
		return f.Code == "U606" && f.Severity == "error" && f.Subject.Object == "CustomResourceDefinition/memcacheds.cache.example.com"
	}) {
		t.Errorf("nothing names what stays: %+v", said.Findings)
	}
}
