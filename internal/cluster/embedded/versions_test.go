package embedded

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/txtar"

	"github.com/olmkit/olmkit/internal/hint"
)

func TestKubernetesRelease(t *testing.T) {
	for name, want := range map[string]string{
		"": KubernetesVersion, "1.33": "v1.33.13", "v1.33": "v1.33.13", "1.33.13": "v1.33.13", "v1.33.13": "v1.33.13", KubernetesVersion: KubernetesVersion,
	} {
		if got, err := KubernetesRelease(name); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"1.29": "choose one of 1.30, 1.31,", "1.33.2": "of Kubernetes 1.33 there is v1.33.13: write 1.33", "1": "choose one of", "newest": "choose one of", "1.3": "choose one of",
	} {
		if got, err := KubernetesRelease(name); err == nil || !strings.Contains(hint.Of(err), want) {
			t.Errorf("%q: %q, %v (%s)", name, got, err, hint.Of(err))
		}
	}
}

func TestOLMRelease(t *testing.T) {
	for name, want := range map[string]string{
		"": OLMVersion, "0.38": "v0.38.0", "v0.38": "v0.38.0", "0.38.0": "v0.38.0", "v0.38.0": "v0.38.0", OLMVersion: OLMVersion,
	} {
		if got, err := OLMRelease(name); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"0.1": "choose one of 0.", "0.38.1": "of OLM 0.38 there is v0.38.0: write 0.38", "v1": "choose one of", "newest": "choose one of",
	} {
		if got, err := OLMRelease(name); err == nil || !strings.Contains(hint.Of(err), want) {
			t.Errorf("%q: %q, %v (%s)", name, got, err, hint.Of(err))
		}
	}
}

// TestKubernetesModules holds the module of each release to what it is called, and to tools/cluster: the same program, with the same
// etcd.
func TestKubernetesModules(t *testing.T) {
	releases, minors := KubernetesReleases(), KubernetesMinors()
	if !slices.IsSortedFunc(releases, semver.Compare) || len(slices.Compact(slices.Clone(minors))) != len(minors) {
		t.Errorf("%v are not one of each minor, from the oldest on", releases)
	}
	_, own := parseModule(t, KubernetesVersion)
	for _, release := range otherReleases {
		files, m := parseModule(t, release)
		if len(files) != 3 || len(files["go.sum"]) == 0 || !strings.Contains(files["main.go"], "package main") {
			t.Errorf("%s: its files are not go.mod, go.sum and main.go", release)
		}
		library := "v0" + strings.TrimPrefix(release, "v1")
		for path, version := range m {
			switch {
			case path == "k8s.io/kubernetes" && version != release, path == "k8s.io/component-base" && version != library:
				t.Errorf("%s: requires %s %s", release, path, version)
			case !strings.HasPrefix(path, "k8s.io/") && version != own[path]:
				t.Errorf("%s: requires %s %s, and tools/cluster %q: run 'make kubernetes-modules'", release, path, version, own[path])
			}
		}
		if len(m) != len(own) {
			t.Errorf("%s: requires %d modules itself, want %d", release, len(m), len(own))
		}
	}
}

// parseModule returns the files of the module that builds release, and what it requires itself.
func parseModule(t *testing.T, release string) (files, required map[string]string) {
	t.Helper()
	files, required = map[string]string{}, map[string]string{}
	for _, f := range txtar.Parse(kubernetesModule(release)).Files {
		files[f.Name] = string(f.Data)
	}
	m, err := modfile.Parse("go.mod", []byte(files["go.mod"]), nil)
	if err != nil {
		t.Fatal(err)
	}
	library := "v0" + strings.TrimPrefix(release, "v1")
	for _, r := range m.Require {
		if !r.Indirect {
			required[r.Mod.Path] = r.Mod.Version
		}
	}
	for _, r := range m.Replace {
		if r.New.Version != library {
			t.Errorf("%s: replaces %s by %s %s", release, r.Old.Path, r.New.Path, r.New.Version)
		}
	}
	return files, required
}

// ownVersions are, for each module that builds something, those of which it has another version than olmkit: of OLM's release in OLM's own
// programs, and such of which little or nothing is compiled twice.
var ownVersions = map[string][]string{
	"cluster": {"github.com/operator-framework/operator-registry", "k8s.io/kube-aggregator"},
	"kind/kubernetes": {
		"github.com/containers/ocicrypt", "github.com/docker/cli", "github.com/docker/docker-credential-helpers", "github.com/docker/go-connections",
		"github.com/klauspost/compress", "github.com/moby/moby/client", "github.com/moby/sys/user", "github.com/operator-framework/operator-registry",
		"github.com/stretchr/testify", "go.podman.io/common", "go.podman.io/image/v5", "go.podman.io/storage", "google.golang.org/genproto",
		"k8s.io/kube-aggregator",
	},
}

// TestSharedVersions holds the modules that build what a walk and its tests need to the versions of olmkit's own: what they have in
// common is compiled once then, half of a first build.
func TestSharedVersions(t *testing.T) {
	const root = "../../.."
	own := versionsIn(t, filepath.Join(root, "go.mod"))
	for _, module := range []string{"cluster", "codegen", "kind/kubernetes", "kubectl", "opm", "registry"} {
		shared := 0
		for path, version := range versionsIn(t, filepath.Join(root, "tools", module, "go.mod")) {
			if own[path] == "" || slices.Contains(ownVersions[module], path) {
				continue
			}
			if shared++; version != own[path] {
				t.Errorf("tools/%s has %s %s, and olmkit %s: run 'go get %[2]s@%[4]s' in tools/%[1]s, and 'make generate'", module, path, version, own[path])
			}
		}
		for _, path := range ownVersions[module] {
			if own[path] == "" {
				t.Errorf("%s is no module of olmkit's", path)
			}
		}
		if shared < 30 {
			t.Errorf("tools/%s shares only %d modules", module, shared)
		}
	}
}

// versionsIn are the modules that a go.mod requires or replaces, with their versions.
func versionsIn(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := modfile.Parse(file, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range m.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range m.Replace {
		if versions[r.Old.Path] != "" {
			versions[r.Old.Path] = r.New.Version
		}
	}
	return versions
}
