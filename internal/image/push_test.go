package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/hint"
)

// published is the newest bundle of the repository's own operator, and catalogDir its catalog.
const (
	published  = "../../bundle/memcached-operator/0.5.0"
	catalogDir = "../../catalog/memcached-operator"
)

// quick tries again without a wait worth noticing.
var quick = Client{Pause: time.Millisecond}

// startRegistry starts a registry and returns its host.
func startRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// proxy stands before a registry, counts what it is sent, and spoils what spoil says.
type proxy struct {
	host  string
	bytes atomic.Int64 // of blobs and manifests
	puts  atomic.Int64 // of manifests
}

// startProxy starts a proxy to the registry at host. spoil answers a request itself and returns true, or leaves it alone.
func startProxy(t *testing.T, host string, spoil func(http.ResponseWriter, *http.Request) bool) *proxy {
	t.Helper()
	p := &proxy{}
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: host})
	forward.ErrorLog = log.New(io.Discard, "", 0)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
			p.puts.Add(1)
		}
		p.bytes.Add(max(r.ContentLength, 0))
		if spoil == nil || !spoil(w, r) {
			r.Host = "" // so that upload locations name the proxy's target relative to it
			forward.ServeHTTP(w, r)
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	p.host = strings.TrimPrefix(server.URL, "http://")
	return p
}

func bundleImage(t *testing.T) Artifact {
	t.Helper()
	made, err := Bundle(published)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestBundle(t *testing.T) {
	made := bundleImage(t)
	again := bundleImage(t)
	first, _ := made.RawManifest()
	second, _ := again.RawManifest()
	if !bytes.Equal(first, second) {
		t.Error("the same bundle made two different images")
	}
	img, ok := made.(v1.Image)
	if !ok {
		t.Fatalf("it is a %T", made)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{
		bundle.AnnotationMediaType:      "registry+v1",
		bundle.AnnotationManifests:      "manifests/",
		bundle.AnnotationMetadata:       "metadata/",
		bundle.AnnotationPackage:        "memcached-operator",
		bundle.AnnotationChannels:       "stable,candidate",
		bundle.AnnotationDefaultChannel: "stable",
	} {
		if got := config.Config.Labels[label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
}

func TestBundleDoesNotDependOnTimesAndModes(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(published)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "metadata", "annotations.yaml")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifests", ".swp"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Bundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := got.Digest()
	b, _ := bundleImage(t).Digest()
	if a != b {
		t.Errorf("digest %s, want %s", a, b)
	}
}

func TestBundleRefuses(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"no ClusterServiceVersion": func(dir string) error {
			return os.Remove(filepath.Join(dir, "manifests", "memcached-operator.clusterserviceversion.yaml"))
		},
		"no package": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "metadata", "annotations.yaml"), nil, 0o644)
		},
		"a link out of the bundle": func(dir string) error {
			return os.Symlink("/etc/hostname", filepath.Join(dir, "manifests", "hostname"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(published)); err != nil {
				t.Fatal(err)
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := Bundle(dir); err == nil {
				t.Error("it was packed")
			}
		})
	}
}

func TestPushTwiceSendsNothing(t *testing.T) {
	p := startProxy(t, startRegistry(t), nil)
	made := bundleImage(t)
	reference := p.host + "/team/bundle:v1"
	pinned, err := quick.Push(t.Context(), reference, made)
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := made.Digest()
	if want := p.host + "/team/bundle@" + digest.String(); pinned != want {
		t.Errorf("pushed %s, want %s", pinned, want)
	}
	if p.bytes.Load() == 0 || p.puts.Load() != 2 {
		t.Errorf("the first push sent %d bytes and %d manifests", p.bytes.Load(), p.puts.Load())
	}
	p.bytes.Store(0)
	p.puts.Store(0)
	if _, err := quick.Push(t.Context(), reference, made); err != nil {
		t.Fatal(err)
	}
	if p.bytes.Load() != 0 || p.puts.Load() != 0 {
		t.Errorf("the second push sent %d bytes and %d manifests", p.bytes.Load(), p.puts.Load())
	}
	if _, err := quick.Push(t.Context(), p.host+"/team/bundle:v2", made); err != nil {
		t.Fatal(err)
	}
	if p.puts.Load() != 1 {
		t.Errorf("another tag took %d manifests", p.puts.Load())
	}
}

// once returns a spoiler that spoils the first n requests that match.
func once(n int64, matches func(*http.Request) bool, spoil func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) bool {
	var done atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !matches(r) || done.Add(1) > n {
			return false
		}
		spoil(w, r)
		return true
	}
}

func answer(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// cut reads a little of the request and breaks the connection.
func cut(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.CopyN(io.Discard, r.Body, 100)
	panic(http.ErrAbortHandler)
}

func TestPushWithFaults(t *testing.T) {
	upload := func(r *http.Request) bool { return r.Method == http.MethodPatch }
	every := func(*http.Request) bool { return true }
	manifest := func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/sha256:")
	}
	tag := func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/manifests/v1")
	}
	readBack := func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/sha256:")
	}
	for name, test := range map[string]struct {
		times   int64
		matches func(*http.Request) bool
		spoil   func(http.ResponseWriter, *http.Request)
		err     string // "" for success in the end
	}{
		"429 three times":                  {3, upload, answer(http.StatusTooManyRequests), ""},
		"429 for ever":                     {1 << 30, upload, answer(http.StatusTooManyRequests), "429"},
		"500 at the first requests":        {2, every, answer(http.StatusInternalServerError), ""},
		"503 for a manifest":               {2, manifest, answer(http.StatusServiceUnavailable), ""},
		"500 for ever":                     {1 << 30, manifest, answer(http.StatusInternalServerError), "500"},
		"the connection cut in mid-blob":   {3, upload, cut, ""},
		"the connection cut for ever":      {1 << 30, upload, cut, "EOF"},
		"the connection cut at the tag":    {2, tag, cut, ""},
		"no right to push":                 {1 << 30, upload, answer(http.StatusForbidden), "403"},
		"no right to set the tag":          {1 << 30, tag, answer(http.StatusForbidden), "set the tag"},
		"a manifest that comes back wrong": {1 << 30, readBack, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }, "read back what was pushed"},
		"a blob the registry garbles": {1 << 30, upload, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"errors":[{"code":"DIGEST_INVALID","message":"provided digest did not match uploaded content"}]}`)
		}, "DIGEST_INVALID"},
	} {
		t.Run(name, func(t *testing.T) {
			host := startRegistry(t)
			before, err := random.Image(64, 1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := quick.Push(t.Context(), host+"/team/bundle:v1", before); err != nil {
				t.Fatal(err)
			}
			old, _ := before.Digest()
			made := bundleImage(t)
			digest, _ := made.Digest()
			p := startProxy(t, host, once(test.times, test.matches, test.spoil))
			_, err = quick.Push(t.Context(), p.host+"/team/bundle:v1", made)
			want := digest
			if test.err != "" {
				want = old
				if err == nil || !strings.Contains(err.Error(), test.err) || hint.Of(err) == "" {
					t.Errorf("got %v, want an error with %q and a fix", err, test.err)
				}
			} else if err != nil {
				t.Errorf("the push failed: %v", err)
			}
			pinned, err := Client{}.Pinned(t.Context(), host+"/team/bundle:v1")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(pinned, want.String()) {
				t.Errorf("the tag means %s, want %s", pinned, want)
			}
		})
	}
}

func TestPushRefusesDigests(t *testing.T) {
	made := bundleImage(t)
	digest, _ := made.Digest()
	if _, err := quick.Push(t.Context(), "registry.example.com/a@"+digest.String(), made); err == nil || hint.Of(err) == "" {
		t.Errorf("got %v, want an error with a fix", err)
	}
}

func TestPushInterrupted(t *testing.T) {
	host := startRegistry(t)
	ctx, stop := context.WithCancel(t.Context())
	p := startProxy(t, host, func(http.ResponseWriter, *http.Request) bool { stop(); return false })
	if _, err := quick.Push(ctx, p.host+"/team/bundle:v1", bundleImage(t)); err == nil {
		t.Error("the push went on")
	}
}

func TestCatalog(t *testing.T) {
	host := startRegistry(t)
	fsys := os.DirFS(catalogDir)
	made, err := Catalog(fsys, []string{"catalog.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	reference := host + "/team/catalog:latest"
	if _, err := quick.Push(t.Context(), reference, made); err != nil {
		t.Fatal(err)
	}
	content, err := quick.Unpack(t.Context(), reference)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if content.Bundle || content.Name != reference+"/configs" || content.Reference != reference {
		t.Errorf("got %+v", content)
	}
	sameFile(t, content, "catalog.yaml", filepath.Join(catalogDir, "catalog.yaml"))
}

func sameFile(t *testing.T, content *Content, name, file string) {
	t.Helper()
	f, err := content.FS.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what was packed", name)
	}
}

// opm is an image as that of opm is: an entry point, a command and a layer.
func opm(t *testing.T, arch string) v1.Image {
	t.Helper()
	img, err := random.Image(128, 1)
	if err != nil {
		t.Fatal(err)
	}
	found, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := found.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config.Entrypoint, config.Config.Cmd = []string{"/bin/opm"}, []string{"help"}
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestCatalogOnABaseOfSeveralPlatforms(t *testing.T) {
	host := startRegistry(t)
	index := mutate.IndexMediaType(empty.Index, types.DockerManifestList)
	for _, arch := range []string{"amd64", "arm64"} {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: opm(t, arch), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	attestation, err := random.Image(16, 1)
	if err != nil {
		t.Fatal(err)
	}
	index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: attestation, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"}}})
	if _, err := quick.Push(t.Context(), host+"/base/opm:v1", index); err != nil {
		t.Fatal(err)
	}
	base, err := quick.Fetch(t.Context(), host+"/base/opm:v1")
	if err != nil {
		t.Fatal(err)
	}
	made, err := Catalog(os.DirFS(catalogDir), []string{"catalog.yaml"}, base)
	if err != nil {
		t.Fatal(err)
	}
	reference := host + "/team/catalog:latest"
	if _, err := quick.Push(t.Context(), reference, made); err != nil {
		t.Fatal(err)
	}
	back, err := quick.Fetch(t.Context(), reference)
	if err != nil {
		t.Fatal(err)
	}
	pushed, ok := back.(v1.ImageIndex)
	if !ok {
		t.Fatalf("it is a %T", back)
	}
	manifest, err := pushed.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, child := range manifest.Manifests {
		platforms = append(platforms, child.Platform.String())
		img, err := pushed.Image(child.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(config.Config.Cmd, " "); !strings.HasPrefix(got, "serve /configs ") {
			t.Errorf("the command for %s is %q", child.Platform, got)
		}
	}
	if got := strings.Join(platforms, " "); got != "linux/amd64 linux/arm64" {
		t.Errorf("platforms %s", got)
	}
	content, err := quick.Unpack(t.Context(), reference)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	sameFile(t, content, "catalog.yaml", filepath.Join(catalogDir, "catalog.yaml"))
}

func TestUnpackFromARegistryThatBreaksOff(t *testing.T) {
	host := startRegistry(t)
	if _, err := quick.Push(t.Context(), host+"/team/bundle:v1", bundleImage(t)); err != nil {
		t.Fatal(err)
	}
	blob := func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/")
	}
	short := func(w http.ResponseWriter, r *http.Request) {
		answer, err := http.Get("http://" + host + r.URL.Path)
		if err != nil {
			panic(err)
		}
		defer answer.Body.Close()
		w.Header().Set("Content-Length", answer.Header.Get("Content-Length"))
		_, _ = io.CopyN(w, answer.Body, 50)
		panic(http.ErrAbortHandler)
	}
	for name, times := range map[string]int64{"a few times": 2, "for ever": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, host, once(times, blob, short))
			content, err := quick.Unpack(t.Context(), p.host+"/team/bundle:v1")
			if times > 2 {
				if err == nil {
					t.Error("it was unpacked")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer content.Close()
			sameFile(t, content, "metadata/annotations.yaml", filepath.Join(published, "metadata", "annotations.yaml"))
		})
	}
}
