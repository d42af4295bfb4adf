//go:build linux

package operator_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	images "github.com/olmkit/olmkit/internal/image"
)

// 'make image' makes the same bytes in another folder, the operator runs from them, and 'make image-push' takes them to a
// registry. In short it is for one platform.
func TestImage(t *testing.T) {
	archs := "amd64 arm64"
	if testing.Short() {
		archs = "amd64"
	}
	build := func(dir string, args ...string) string {
		return lastLine(runMake(t, dir, append(args, "IMAGE_ARCHS="+archs)...))
	}
	copied := t.TempDir()
	copyTree(t, copied)
	archive := filepath.Join("bin", "image", "memcached-operator-"+release+".tar")
	digest := build(root, "image")
	if again := build(copied, "image"); again != digest {
		t.Errorf("%s, and in another folder %s", digest, again)
	}
	first, err := os.ReadFile(filepath.Join(root, archive))
	must(t, err)
	second, err := os.ReadFile(filepath.Join(copied, archive))
	must(t, err)
	if !bytes.Equal(first, second) {
		t.Error("the archives differ")
	}

	unpacked := filepath.Join(t.TempDir(), "root")
	must(t, images.Client{}.Root(t.Context(), filepath.Join(root, archive), unpacked))
	must(t, world.LoadImage(t.Context(), image, unpacked))
	t.Cleanup(func() { must(t, world.LoadImage(context.Background(), image, program)) })
	ns := namespace(t)
	deploy(t)
	s := sample(t, ns, "v1")
	must(t, admin.Create(t.Context(), s))
	available(t, ns, s.GetName())

	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/memcached-operator"
	if pushed := build(root, "image-push", "IMAGE_TAG_BASE="+repository); pushed != repository+"@"+digest {
		t.Errorf("pushed %s, built %s", pushed, digest)
	}
	ref, err := name.ParseReference(repository + ":" + release)
	must(t, err)
	platforms, labels := pushedImage(t, ref)
	if got := strings.Join(platforms, " "); got != archs || labels["org.opencontainers.image.version"] != release {
		t.Errorf("platforms %s, labels %v", got, labels)
	}
}

// pushedImage returns the architectures and what is said of an index, or of the one image that ref names.
func pushedImage(t *testing.T, ref name.Reference) (archs []string, labels map[string]string) {
	t.Helper()
	pushed, err := remote.Get(ref)
	must(t, err)
	if pushed.MediaType.IsIndex() {
		index, err := pushed.ImageIndex()
		must(t, err)
		manifest, err := index.IndexManifest()
		must(t, err)
		for _, m := range manifest.Manifests {
			archs = append(archs, m.Platform.Architecture)
		}
		return archs, manifest.Annotations
	}
	one, err := pushed.Image()
	must(t, err)
	config, err := one.ConfigFile()
	must(t, err)
	return []string{config.Architecture}, config.Config.Labels
}

// copyTree copies the repository to dir, without what is made in it.
func copyTree(t *testing.T, dir string) {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	files, err := list.Output()
	must(t, err)
	for file := range strings.SplitSeq(strings.TrimRight(string(files), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not yet from the index
		}
		must(t, err)
		info, err := os.Stat(filepath.Join(root, file))
		must(t, err)
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, file), data, info.Mode()))
	}
}

func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
