//go:build linux

package makefile_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/olmkit/olmkit/internal/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"olmkit": func() {
			os.Exit(cli.Run(context.Background(), cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Args[1:]))
		},
	})
}

// kubebuilders is a Makefile as kubebuilder writes it, of which only what packaging touches is left.
const kubebuilders = `# Image URL to use all building/pushing image targets
IMG ?= controller:latest

.PHONY: all
all: build

.PHONY: manifests
manifests:
	@echo manifests are made

.PHONY: build
build:
	@echo this is the default

.PHONY: docker-build
docker-build:
	@echo docker build -t ${IMG}
`

// project is a kubebuilder project to package: the Redis operator without its packaging.
type project struct {
	t   *testing.T
	dir string
}

func newProject(t *testing.T) project {
	t.Helper()
	dir, from := t.TempDir(), filepath.Join("..", "..", "examples", "redis-operator")
	for _, part := range []string{"api", "cmd", "config", "internal"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(from, part))); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"PROJECT", "go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, file), string(data))
	}
	if err := os.RemoveAll(filepath.Join(dir, "config", "manifests")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "Makefile"), kubebuilders)
	return project{t, dir}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a command line in the project, and returns what it prints.
func (p project) run(args ...string) (stdout, stderr string, err error) {
	cmd := exec.CommandContext(p.t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = p.dir, apart("GOWORK=off", "GOFLAGS=")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

func (p project) must(args ...string) string {
	p.t.Helper()
	out, errOut, err := p.run(args...)
	if err != nil {
		p.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, errOut)
	}
	return out
}

// files are the project's files by their paths.
func (p project) files() map[string]string {
	p.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, p.dir+"/")] = string(data)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

var digest = regexp.MustCompile(`-catalog@sha256:[0-9a-f]+`)

func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// TestInit packages a kubebuilder project: init, bundle, catalog, push, a change, a push again, and a catalog by reference.
func TestInit(t *testing.T) {
	t.Parallel()
	p, host := newProject(t), newRegistry(t)
	base := host + "/team/redis-operator"
	before := p.files()
	told := p.must("olmkit", "init", "--display-name", "Redis: the operator", "--maintainer", "Jo Doe <jo@example.com>", "--image-tag-base", base)
	after := p.files()
	for path := range after {
		if _, there := before[path]; !there && !strings.Contains(told, "written     "+path+"\n") {
			t.Errorf("it does not say that it wrote %s:\n%s", path, told)
		}
	}
	for path, text := range before {
		if path == "Makefile" {
			continue
		}
		if after[path] != text {
			t.Errorf("it changed %s", path)
		}
	}
	if !strings.HasSuffix(after["Makefile"], kubebuilders) || !strings.Contains(told, "changed     Makefile") {
		t.Errorf("the Makefile is\n%s", after["Makefile"])
	}
	if again := p.must("olmkit", "init", "--image-tag-base", base, "--display-name", "Redis: the operator", "--maintainer", "Jo Doe <jo@example.com>"); strings.Count(again, "up to date") != 7 {
		t.Errorf("again it says\n%s", again)
	}
	if out := p.must("make"); out != "this is the default\n" {
		t.Errorf("make alone runs another target: %s", out)
	}
	if out := p.must("make", "docker-build"); out != "docker build -t "+base+":v0.1.0\n" {
		t.Errorf("docker-build names another image: %s", out)
	}

	published := base + "-catalog:latest"
	first := digest.FindString(p.must("make", "bundle", "catalog-push"))
	if changed := p.must("olmkit", "catalog", "diff", "catalog", published); changed != "" {
		t.Errorf("published is another catalog: %s", changed)
	}
	if csv := p.files()["bundle/0.1.0/manifests/redis-operator.clusterserviceversion.yaml"]; !strings.Contains(csv, base+":v0.1.0") || !strings.Contains(csv, "Redis: the operator") || !strings.Contains(csv, "jo@example.com") {
		t.Errorf("the bundle's CSV is\n%s", csv)
	}
	// A manifest changes: the catalog that is pushed then has the change.
	manager := filepath.Join(p.dir, "config", "manager", "manager.yaml")
	write(t, manager, strings.Replace(p.files()["config/manager/manager.yaml"], "- --leader-elect\n", "- --leader-elect\n          - --changed\n", 1))
	if second := digest.FindString(p.must("make", "bundle", "catalog-push")); first == "" || second == "" || first == second {
		t.Errorf("after a change of a manifest the catalog %s is pushed, before %s", second, first)
	}
	if changed := p.must("olmkit", "catalog", "diff", "catalog", published); changed != "" {
		t.Errorf("after a change, published is another catalog: %s", changed)
	}

	// A release that no channel has is refused; then it is one.
	if _, errOut, err := p.run("make", "catalog-push", "VERSION=0.2.0"); err == nil || !strings.Contains(errOut, "catalog-template.yaml has 0.2.0 in no channel: add it") {
		t.Errorf("make catalog-push VERSION=0.2.0: %v\n%s", err, errOut)
	}
	template := filepath.Join(p.dir, "catalog-template.yaml")
	write(t, template, strings.Replace(p.files()["catalog-template.yaml"], "[0.1.0]", "[0.1.0, 0.2.0]", 1))
	p.must("make", "bundle-push")
	p.must("make", "bundle-build", "bundle-push", "catalog-push", "VERSION=0.2.0", "CATALOG_FLAGS=--by-reference "+base+"-bundle:v{version}")
	text := p.files()["catalog/redis-operator/catalog.yaml"]
	if strings.Count(text, "image: "+base+"-bundle@sha256:") < 2 || strings.Contains(text, "olm.bundle.object") {
		t.Errorf("by reference the catalog is\n%.2000s", text)
	}
	if out := p.must("olmkit", "upgrade", "plan"); !strings.Contains(out, "redis-operator.v0.1.0 → redis-operator.v0.2.0") {
		t.Errorf("the plan is\n%s", out)
	}
	if out := p.must("olmkit", "catalog", "validate", "--pull"); !strings.Contains(out, "passed") {
		t.Errorf("what it refers to is not valid:\n%s", out)
	}
}

// TestInitKeeps: init leaves alone what the user has, and says so; outside of a project of kubebuilder's it refuses.
func TestInitKeeps(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	write(t, filepath.Join(p.dir, "olmkit.yaml"), "package: mine\n")
	write(t, filepath.Join(p.dir, "Makefile"), kubebuilders+"-include other.mk olmkit.mk\n")
	told := p.must("olmkit", "init")
	if !strings.Contains(told, "kept        olmkit.yaml") || !strings.Contains(told, "up to date  Makefile") || p.files()["olmkit.yaml"] != "package: mine\n" {
		t.Errorf("it says\n%s", told)
	}
	for _, wrong := range [][2]string{{"--version=v1", "without a v"}, {"--image-tag-base=a:1", "no image without a tag"}, {"--maintainer=Jo", "no name with an address"}, {"--package=A", "--package"}, {"--channel=a b", "--channel"}} {
		_, errOut, err := p.run("olmkit", "init", wrong[0])
		if err == nil || !strings.Contains(errOut, wrong[1]) {
			t.Errorf("%s: %v\n%s", wrong[0], err, errOut)
		}
	}
	bare := project{t, t.TempDir()}
	if _, errOut, err := bare.run("olmkit", "init"); err == nil || !strings.Contains(errOut, "there is no file PROJECT here") || len(bare.files()) > 0 {
		t.Errorf("outside of a project: %v\n%s", err, errOut)
	}
}
