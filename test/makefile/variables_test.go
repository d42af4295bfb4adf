//go:build linux

package makefile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/cluster/embedded"
)

var (
	root  = filepath.Join("..", "..")
	redis = filepath.Join(root, "examples", "redis-operator")
)

// apart is the environment for a make that knows nothing of the one that runs the tests, with more.
func apart(more ...string) []string {
	return append(append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL="), more...)
}

// makeIn runs make in dir.
func makeIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory"}, args...)...)
	cmd.Dir, cmd.Env = dir, apart("GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestBuildFlags: what make builds and the components that olmkit builds are built with the same flags.
func TestBuildFlags(t *testing.T) {
	t.Parallel()
	var want []string
	for _, flag := range embedded.CompilerFlags {
		if strings.Contains(flag, " ") {
			flag = "'" + flag + "'"
		}
		want = append(want, flag)
	}
	if got := strings.TrimSpace(makeIn(t, root, "-s", "build-flags")); got != strings.Join(want, " ") {
		t.Errorf("make has %s, embedded.CompilerFlags are %s", got, want)
	}
}

// TestVariables: IMG, IMAGE_TAG_BASE and VERSION mean to each target what they mean in operator-sdk's Makefiles.
// 'make debug' runs the operator in delve, built so that delve finds its sources.
func TestDebug(t *testing.T) {
	dir := t.TempDir()
	stub, notes := filepath.Join(dir, "dlv"), filepath.Join(dir, "notes")
	if err := os.WriteFile(stub, []byte("#!/bin/sh\necho \"GOFLAGS=$GOFLAGS dlv $*\" >"+notes+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "--old-file="+stub, "debug", "DELVE="+stub, "RUN_FLAGS=--watch-namespace=a", "DEBUG_FLAGS=--headless")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = apart()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make debug: %v\n%s", err, out)
	}
	got, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	if want := "GOFLAGS= dlv debug ./operator --output bin/manager-debug --headless -- --webhooks=false --watch-namespace=a\n"; string(got) != want {
		t.Errorf("it runs %q, want %q", got, want)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dir, target string
		set         []string
		want        string // of each line in which it is, what is around it does not matter
	}{
		"docker-build":             {root, "docker-build", []string{"IMG=a.example/m:1"}, "-t a.example/m:1 "},
		"docker-push":              {root, "docker-push", []string{"IMG=a.example/m:1"}, "docker push a.example/m:1\n"},
		"docker-push by base":      {root, "docker-push", []string{"IMAGE_TAG_BASE=a.example/m", "VERSION=7.0.0"}, "docker push a.example/m:v7.0.0\n"},
		"image-push":               {root, "image-push", []string{"IMG=a.example/m:1"}, " a.example/m:1 "},
		"deploy":                   {root, "deploy", []string{"IMG=a.example/m:1"}, "image: a.example/m:1|"},
		"build-installer":          {root, "build-installer", []string{"IMAGE_TAG_BASE=a.example/m"}, "image: a.example/m:v0.5.0|"},
		"bundle":                   {root, "bundle", []string{"IMG=a.example/m:1"}, "=a.example/m:1 --output-dir bundle/memcached-operator/0.5.0"},
		"bundles before":           {root, "bundle", []string{"IMAGE_TAG_BASE=a.example/m"}, "=a.example/m:v0.1.0 --output-dir bundle/memcached-operator/0.1.0"},
		"bundle of a version":      {root, "bundle", []string{"VERSION=0.5.1"}, ":v0.5.1 --output-dir bundle/memcached-operator/0.5.1"},
		"bundle-push":              {root, "bundle-push", []string{"BUNDLE_IMG=a.example/b:1"}, "/0.5.0 a.example/b:1 "},
		"bundle-push by base":      {root, "bundle-push", []string{"IMAGE_TAG_BASE=a.example/m"}, "/0.1.0 a.example/m-bundle:v0.1.0 "},
		"catalog-push":             {root, "catalog-push", []string{"CATALOG_IMG=a.example/c:1"}, "push catalog a.example/c:1"},
		"catalog":                  {root, "catalog", []string{"IMAGE_TAG_BASE=a.example/m"}, "--image a.example/m-catalog:latest"},
		"the walk":                 {root, "demo", []string{"IMG=a.example/m:1"}, "--image a.example/m:1=bin/memcached-operator/v0.5.0/manager"},
		"Redis, docker-build":      {redis, "docker-build", []string{"IMG=a.example/m:1"}, "-t a.example/m:1 "},
		"Redis, docker-push":       {redis, "docker-push", []string{"IMAGE_TAG_BASE=a.example/m", "VERSION=7.0.0"}, "docker push a.example/m:v7.0.0\n"},
		"Redis, bundle":            {redis, "bundle", []string{"IMG=a.example/m:1"}, "controller=a.example/m:1 --output-dir bundle/0.3.0"},
		"Redis, bundles before":    {redis, "bundle", []string{"IMAGE_TAG_BASE=a.example/m"}, "controller=a.example/m:v0.1.0 --output-dir bundle/0.1.0"},
		"Redis, bundle-push":       {redis, "bundle-push", []string{"IMAGE_TAG_BASE=a.example/m"}, "bundle/0.3.0 a.example/m-bundle:v0.3.0 "},
		"Redis, catalog by digest": {redis, "catalog", []string{"CATALOG_FLAGS=--by-reference a.example/b:v{version}"}, "catalog-template.yaml --by-reference a.example/b:v{version} --output-file"},
		"Redis, catalog-push":      {redis, "catalog-push", []string{"IMAGE_TAG_BASE=a.example/m"}, "push catalog a.example/m-catalog:latest"},
		"Redis, the walk":          {redis, "test-upgrade", []string{"IMG=a.example/m:1"}, "--image a.example/m:1=bin/v0.3.0/manager"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := makeIn(t, test.dir, append([]string{"--dry-run", "KUBECTL=/bin/true", test.target}, test.set...)...)
			if !strings.Contains(out, test.want) {
				t.Errorf("it does not run %q:\n%s", test.want, out)
			}
		})
	}
}

// TestRedisApart: what is said of the memcached operator's image is not said of the Redis operator's.
func TestRedisApart(t *testing.T) {
	t.Parallel()
	if out := makeIn(t, root, "redis-managers", "GO=true", "IMG=a.example/m:1", "VERSION=7.0.0"); !strings.Contains(out, "redis-operator/v0.3.0/manager") || strings.Contains(out, "v7.0.0") {
		t.Errorf("it runs\n%s", out)
	}
}

// TestInstaller: the file that 'make build-installer' writes names IMG, and no other image of the operator.
func TestInstaller(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kubectl, err := filepath.Abs(filepath.Join(root, "operator/config/manager/manager.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	stub := filepath.Join(dir, "kubectl")
	if err := os.WriteFile(stub, []byte("#!/bin/sh\n[ \"$1 $2\" = 'kustomize operator/config/default' ] && exec cat "+kubectl+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	makeIn(t, root, "build-installer", "KUBECTL="+stub, "IMG=a.example/m@sha256:1", "DIST="+filepath.Join(dir, "dist"))
	made, err := os.ReadFile(filepath.Join(dir, "dist", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if images := regexp.MustCompile(`(?m)^ *image: .*$`).FindAllString(string(made), -1); len(images) != 1 || strings.TrimSpace(images[0]) != "image: a.example/m@sha256:1" {
		t.Errorf("its images are %q", images)
	}
}

// TestCatalogPushIsNew: after a change of a manifest, 'make bundle catalog-push' pushes another catalog, which has it.
func TestCatalogPushIsNew(t *testing.T) {
	t.Parallel()
	host := newRegistry(t)
	for name, test := range map[string]struct {
		parts   []string
		manager string
		args    []string
	}{
		"the memcached operator": {[]string{"Makefile", "go.mod", "go.sum", "operator", "catalog", "bundle", "pkg"}, "operator/config/manager/manager.yaml", []string{"GO=true", "RELEASES=v0.2.0 v0.5.0 v0.6.0-rc.1"}},
		"the Redis operator":     {[]string{"Makefile", "config", "releases", "catalog-template.yaml"}, "config/manager/manager.yaml", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, p := root, project{t, t.TempDir()}
			if name == "the Redis operator" {
				from = redis
			}
			for _, part := range append(test.parts, "bin") {
				if err := copyInto(filepath.Join(p.dir, part), filepath.Join(from, part)); err != nil {
					t.Fatal(err)
				}
			}
			published := host + "/" + strings.ReplaceAll(strings.ToLower(name), " ", "-") + "-catalog:latest"
			push := append([]string{"bundle", "catalog-push", "OLMKIT=olmkit", "CATALOG_IMG=" + published}, test.args...)
			first := digest.FindString(makeIn(t, p.dir, push...))
			manager := filepath.Join(p.dir, test.manager)
			text, err := os.ReadFile(manager)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(text), "  - --leader-elect\n", "  - --leader-elect\n          - --changed\n", 1)
			if changed == string(text) {
				t.Fatalf("%s is not changed", manager)
			}
			write(t, manager, changed)
			second := digest.FindString(makeIn(t, p.dir, push...))
			if first == "" || second == "" || first == second {
				t.Errorf("%s is pushed, before %s", second, first)
			}
			if different := p.must("olmkit", "catalog", "diff", "catalog", published); different != "" {
				t.Errorf("published is another catalog: %s", different)
			}
		})
	}
}

// copyInto copies a file or a directory; of bin it makes an empty one.
func copyInto(to, from string) error {
	if filepath.Base(from) == "bin" {
		return os.Mkdir(to, 0o755)
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}
