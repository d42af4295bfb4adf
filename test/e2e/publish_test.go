//go:build linux

package e2e_test

import (
	"cmp"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/olmkit/olmkit/test/support/trace"
)

// publish pushes the memcached operator's bundles with make, and a catalog that names their images, and returns the registry's
// host and the catalog's reference.
func publish(t *testing.T) (host, reference string) {
	t.Helper()
	host = startPlainRegistry(t)
	bundles := host + "/team/memcached-operator-bundle"
	cmd := exec.CommandContext(t.Context(), "make", "bundle-build", "bundle-push", "catalog-push", "BUNDLE_IMAGE="+bundles, "CATALOG_IMG="+host+"/team/own-catalog:latest", "PUSH_FLAGS=--plain-http="+host)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make catalog-push: %v\n%s", err, out)
	}
	if got, want := must(t, "catalog", "render", host+"/team/own-catalog:latest").out, must(t, "catalog", "render", "catalog").out; got != want {
		t.Error("the catalog that make pushed is another")
	}
	template, err := os.ReadFile(filepath.Join(root, "catalog", "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := filepath.Glob(filepath.Join(root, "bundle", "memcached-operator", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var images []string
	for _, dir := range dirs {
		images = append(images, bundles+":v"+filepath.Base(dir))
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "template.yaml"), regexp.MustCompile(`(?m)^bundles: .*$`).ReplaceAllLiteralString(string(template), "bundles: ["+strings.Join(images, ", ")+"]"))
	must(t, "catalog", "build", filepath.Join(dir, "template.yaml"), "--output-file", filepath.Join(dir, "catalog", "catalog.yaml"))
	reference = host + "/team/catalog:latest"
	must(t, "catalog", "push", filepath.Join(dir, "catalog"), reference)
	return host, reference
}

// extract pulls an image and returns the folder that has its file system, and its configuration.
func extract(t *testing.T, reference string) (string, *v1.ConfigFile) {
	t.Helper()
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref, remote.WithContext(t.Context()), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "tar", "xf", "-", "-C", dir, "--no-same-owner")
	files := mutate.Extract(img)
	defer files.Close()
	cmd.Stdin = files
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("extract %s: %v\n%s", reference, err, out)
	}
	return dir, config
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// served starts a program that serves a catalog on port, and returns all that it lists.
func served(t *testing.T, port string, words ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	connection, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	client := api.NewRegistryClient(connection)
	var listed []string
	eventually(t, words[0]+" serves", func() error {
		select {
		case err := <-ended:
			t.Fatalf("%v ended: %v\n%s", words, err, said.String())
		default:
		}
		var err error
		listed, err = list(t.Context(), client)
		return err
	})
	if err := cmd.Cancel(); err != nil {
		t.Fatal(err)
	}
	<-ended
	return listed
}

// list returns what a registry serves: packages with their channels and heads, and the channels' bundles with their edges.
func list(ctx context.Context, client api.RegistryClient) ([]string, error) {
	var all []string
	packages, err := client.ListPackages(ctx, &api.ListPackageRequest{})
	for err == nil {
		var p *api.PackageName
		if p, err = packages.Recv(); err != nil {
			break
		}
		whole, err := client.GetPackage(ctx, &api.GetPackageRequest{Name: p.GetName()})
		if err != nil {
			return nil, err
		}
		slices.SortFunc(whole.Channels, func(a, b *api.Channel) int { return cmp.Compare(a.GetName(), b.GetName()) })
		all = append(all, fmt.Sprintf("%s %s %v", whole.GetName(), whole.GetDefaultChannelName(), whole.GetChannels()))
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	bundles, err := client.ListBundles(ctx, &api.ListBundlesRequest{})
	for err == nil {
		var b *api.Bundle
		if b, err = bundles.Recv(); err != nil {
			break
		}
		all = append(all, fmt.Sprintf("%s %s %s %s %s %v %s %d", b.GetPackageName(), b.GetChannelName(), b.GetCsvName(), b.GetBundlePath(), b.GetReplaces(), b.GetSkips(), b.GetSkipRange(), len(b.GetObject())))
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(all)
	return all, nil
}

// TestPublishedIsServedAndInstalled takes a catalog with make from the repository to a registry, from there to opm, which
// serves it, and to OLM, which installs and upgrades from it.
func TestPublishedIsServedAndInstalled(t *testing.T) {
	t.Parallel()
	host, reference := publish(t)

	port := freePort(t)
	ours := served(t, port, olmkit, "catalog", "serve", reference, "--address", "127.0.0.1:"+port)
	if len(ours) < 3 || !strings.Contains(strings.Join(ours, "\n"), host+"/team/memcached-operator-bundle:v0.5.0") {
		t.Fatalf("olmkit serves %q", ours)
	}

	t.Run("opm serves what the image holds", func(t *testing.T) {
		dir, _ := extract(t, reference)
		port := freePort(t)
		theirs := served(t, port, filepath.Join(root, "bin", "opm"), "serve", filepath.Join(dir, "configs"), "--port", port, "--cache-dir", t.TempDir(),
			"--cache-enforce-integrity=false", "--pprof-addr", "", "--termination-log", os.DevNull)
		if !slices.Equal(ours, theirs) {
			t.Errorf("opm serves\n%q\nolmkit\n%q", theirs, ours)
		}
	})

	t.Run("the image on a base serves itself", func(t *testing.T) {
		// One base for two platforms, of which this test runs one.
		other := filepath.Join(t.TempDir(), "opm")
		data, err := os.ReadFile(filepath.Join(root, "bin", "opm"))
		if err != nil {
			t.Fatal(err)
		}
		data[18] = map[string]byte{"amd64": byte(elf.EM_AARCH64), "arm64": byte(elf.EM_X86_64)}[runtime.GOARCH] // the header's machine
		write(t, other, string(data))
		must(t, "image", "push", "--program", filepath.Join(root, "bin", "opm"), "--program", other, "--entrypoint", "/bin/opm", host+"/base/opm:v1")
		dir, _ := extract(t, reference)
		must(t, "catalog", "push", filepath.Join(dir, "configs"), host+"/team/serving:latest", "--base", host+"/base/opm:v1")
		files, config := extract(t, host+"/team/serving:latest")
		port := freePort(t)
		words := slices.Concat([]string{"unshare", "-r", "chroot", files}, config.Config.Entrypoint, config.Config.Cmd,
			[]string{"--port", port, "--pprof-addr", "", "--termination-log", "/termination-log"})
		if theirs := served(t, port, words...); !slices.Equal(ours, theirs) {
			t.Errorf("the image serves\n%q\nolmkit\n%q", theirs, ours)
		}
	})

	// What catalogs are published as: without the manifests, which the bundles' images have; from images, or by reference to them.
	migrated := filepath.Join(t.TempDir(), "catalog")
	must(t, "catalog", "render", reference, "-o", "yaml", "--migrate-level", "bundle-object-to-csv-metadata", "--output-file", filepath.Join(migrated, "catalog.yaml"))
	must(t, "catalog", "push", migrated, host+"/team/migrated:latest")
	referring := filepath.Join(t.TempDir(), "catalog.yaml")
	must(t, "catalog", "build", "catalog/template.yaml", "--by-reference", host+"/team/memcached-operator-bundle:v{version}", "--output-file", referring)
	if text := read(t, referring); strings.Count(text, "image: "+host+"/team/memcached-operator-bundle@sha256:") < 2 || strings.Contains(text, "olm.bundle.object") {
		t.Errorf("by reference the catalog is\n%.2000s", text)
	}

	t.Run("it is judged alike without manifests", func(t *testing.T) {
		codes := func(args ...string) []string {
			var r struct{ Findings []jsonFinding }
			said := run(t, nil, append([]string{"catalog", "validate", "--all", "-o", "json", "--skip", "CAT"}, args...)...)
			if err := json.Unmarshal([]byte(said.out), &r); err != nil {
				t.Fatalf("%v: %s", err, said.errOut)
			}
			var codes []string
			for _, f := range r.Findings {
				codes = append(codes, f.Code+" "+f.Message)
			}
			slices.Sort(codes) // places differ
			return codes
		}
		whole, bare, pulled := codes(reference), codes(host+"/team/migrated:latest"), codes(host+"/team/migrated:latest", "--pull")
		if !slices.Equal(whole, pulled) {
			t.Errorf("with the manifests inline:\n%s\npulled:\n%s", strings.Join(whole, "\n"), strings.Join(pulled, "\n"))
		}
		if slices.Equal(bare, pulled) {
			t.Errorf("the manifests make no difference: %q", bare)
		}
	})

	t.Run("OLM installs and upgrades from it", func(t *testing.T) {
		before := trace.New(t)
		args := hopArgs()
		args[2] = referring
		said := run(t, []string{before.Env()}, append(args, "--plain-http="+host)...)
		if said.code != 0 || !strings.Contains(said.out, "memcached-operator.v0.3.1 → memcached-operator.v0.4.0  replaces passed") {
			t.Errorf("exit code %d\n%s%s", said.code, said.out, said.errOut)
		}
		before.Check(t)
	})
}
