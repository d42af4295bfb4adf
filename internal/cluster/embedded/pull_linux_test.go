package embedded

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
	"github.com/olmkit/olmkit/internal/progress"
)

// publisher is a registry that holds an artifact, and spoils what spoil says.
type publisher struct {
	host, ref string // ref is by digest
	digest    string
	pulls     atomic.Int64
	spoil     atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

// quickly tries again without a wait worth noticing.
var quickly = image.Client{Pause: time.Millisecond}

// publish starts a registry with an artifact of components that are no programs, which say what they are.
func publish(t *testing.T, says string) *publisher {
	t.Helper()
	p := &publisher{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
			p.pulls.Add(1)
		}
		if spoil := p.spoil.Load(); spoil == nil || !(*spoil)(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	p.host = strings.TrimPrefix(server.URL, "http://")
	dir := filepath.Join(t.TempDir(), "components")
	fakeComponents(t, dir)
	for _, file := range olmComponents.files() {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(says), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := olmComponents.recordDigests(dir); err != nil {
		t.Fatal(err)
	}
	index, err := image.Folders([]image.Folder{{Dir: dir, Architecture: runtime.GOARCH, Key: olmComponents.key(runtime.GOARCH)}})
	if err != nil {
		t.Fatal(err)
	}
	if p.ref, err = quickly.Push(t.Context(), p.host+"/team/components:v1", index); err != nil {
		t.Fatal(err)
	}
	_, p.digest, _ = strings.Cut(p.ref, "@")
	p.pulls.Store(0)
	return p
}

func (p *publisher) fail(spoil func(http.ResponseWriter, *http.Request) bool) { p.spoil.Store(&spoil) }

// withoutGo leaves no program on the PATH.
func withoutGo(t *testing.T) {
	t.Helper()
	t.Setenv("PATH", t.TempDir())
}

// withFakeGo has a program on the PATH that builds whatever it is asked to in no time.
func withFakeGo(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	const fakeGo = `#!/bin/sh
[ "$1" = env ] && { echo go1.0; exit; }
while [ "$1" != -o ]; do shift; done
printf built >"$2"
`
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(fakeGo), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func holds(t *testing.T, dir, content string) {
	t.Helper()
	for _, file := range olmComponents.files() {
		if data, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(data) != content {
			t.Errorf("%s holds %q, %v; want %q", file, data, err, content)
		}
	}
}

// Components are pulled once, from wherever the digest in the program leads, and those that are damaged again.
func TestComponentsArePulled(t *testing.T) {
	withoutGo(t)
	for name, source := range map[string]func(*publisher) Source{
		"by digest":      func(p *publisher) Source { return Source{Reference: p.ref} },
		"by tag":         func(p *publisher) Source { return Source{Reference: p.host + "/team/components:v1"} },
		"of the release": func(p *publisher) Source { artifact = p.ref; return Source{} },
		"from a mirror": func(p *publisher) Source {
			artifact = "example.com/other@" + p.digest
			return Source{Reference: p.host + "/team/components"}
		},
		"by the variable": func(p *publisher) Source { t.Setenv(ComponentsVariable, p.ref); return Source{} },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() { artifact = ""; _ = os.Unsetenv(ComponentsVariable) }()
			p, cache := publish(t, "pulled"), t.TempDir()
			from := source(p)
			from.Images = quickly
			for range 2 {
				c, err := olmComponents.ensure(t.Context(), cache, from, nil)
				if err != nil {
					t.Fatalf("%v (%s)", err, hint.Of(err))
				}
				holds(t, c, "pulled")
			}
			if n := p.pulls.Load(); n != 2 { // the index and the image
				t.Errorf("%d manifests were pulled", n)
			}
			c, err := olmComponents.ensure(t.Context(), cache, from, nil)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // beyond what the kernel's clock tells apart
			if err := os.WriteFile(filepath.Join(c, olmComponents.files()[0]), []byte("damage"), 0o755); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			c, err = olmComponents.ensure(t.Context(), cache, from, progress.New(&said))
			if err != nil || !strings.Contains(said.String(), "is damaged") || !strings.Contains(said.String(), "pulling OLM") {
				t.Fatalf("%v\n%s", err, said.String())
			}
			holds(t, c, "pulled")
		})
	}
}

// An archive serves where there is no network.
func TestComponentsFromAnArchive(t *testing.T) {
	withoutGo(t)
	p, file := publish(t, "archived"), filepath.Join(t.TempDir(), "components.tar")
	index, err := quickly.Fetch(t.Context(), p.ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := quickly.Archive(t.Context(), file, "", index); err != nil {
		t.Fatal(err)
	}
	c, err := olmComponents.ensure(t.Context(), t.TempDir(), Source{Reference: file}, nil)
	if err != nil {
		t.Fatalf("%v (%s)", err, hint.Of(err))
	}
	holds(t, c, "archived")
}

func answering(path string, code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, path) {
			return false
		}
		w.WriteHeader(code)
		return true
	}
}

// lying answers requests for path with other bytes, of the same length.
func lying(p *publisher, path string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Lying") != "" || !strings.Contains(r.URL.Path, path) {
			return false
		}
		inner, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+p.host+r.URL.Path, nil)
		if err != nil {
			return false
		}
		inner.Header.Set("Lying", "1")
		answer, err := http.DefaultClient.Do(inner)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		data, _ := io.ReadAll(answer.Body)
		if len(data) > 0 {
			data[len(data)/2] ^= 1
		}
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		_, _ = w.Write(data)
		return true
	}
}

// What cannot be pulled, or is not what the digest means, is built, which is said with the reason; without Go it is an error that
// says what to do. Either way nothing of it is kept.
func TestComponentsThatCannotBePulled(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*publisher) func(http.ResponseWriter, *http.Request) bool
		says  string
	}{
		"not there":     {func(*publisher) func(http.ResponseWriter, *http.Request) bool { return answering("/manifests/", 404) }, "404"},
		"busy":          {func(*publisher) func(http.ResponseWriter, *http.Request) bool { return answering("/", 503) }, "503"},
		"no blobs":      {func(*publisher) func(http.ResponseWriter, *http.Request) bool { return answering("/blobs/", 404) }, "404"},
		"another index": {func(p *publisher) func(http.ResponseWriter, *http.Request) bool { return lying(p, "/manifests/") }, "does not match requested digest"},
		"standing still": {func(*publisher) func(http.ResponseWriter, *http.Request) bool {
			return func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
		}, "took longer than 200ms in all"},
		"other blobs": {func(p *publisher) func(http.ResponseWriter, *http.Request) bool { return lying(p, "/blobs/") }, "sha256"},
	} {
		t.Run(name, func(t *testing.T) {
			p, cache := publish(t, "pulled"), t.TempDir()
			p.fail(test.spoil(p))
			from := Source{Reference: p.ref, Images: quickly}
			if name == "standing still" {
				from.Images.Timeout = 200 * time.Millisecond
			}
			t.Run("without Go", func(t *testing.T) {
				withoutGo(t)
				_, err := olmComponents.ensure(t.Context(), cache, from, nil)
				if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "no program go") || !strings.Contains(hint.Of(err), "--components") {
					t.Errorf("%v (%s)", err, hint.Of(err))
				}
				if left, _ := filepath.Glob(filepath.Join(cache, "components", "*pulled-*[0-9a-f]")); len(left) > 0 {
					t.Errorf("it left %v", left)
				}
			})
			t.Run("with Go", func(t *testing.T) {
				withFakeGo(t)
				var said bytes.Buffer
				c, err := olmComponents.ensure(t.Context(), cache, from, progress.New(&said))
				if err != nil || !strings.Contains(said.String(), test.says) || !strings.Contains(said.String(), "built from source, which takes 1 to 3 min") {
					t.Fatalf("%v\n%s", err, said.String())
				}
				holds(t, c, "built")
			})
		})
	}
}

// Components of another version of olmkit are of no use, and what is asked for is said.
func TestComponentsOfAnotherVersion(t *testing.T) {
	withoutGo(t)
	p := publish(t, "pulled")
	other := *olmComponents
	other.module = []byte("-- go.mod --\nmodule other\n")
	_, err := other.ensure(t.Context(), t.TempDir(), Source{Reference: p.ref, Images: quickly}, nil)
	if err == nil || !strings.Contains(err.Error(), "none of its images is "+other.key(runtime.GOARCH)) {
		t.Errorf("got %v", err)
	}
}

// Built ones serve in their place, and are built where that is asked for.
func TestComponentsFromSource(t *testing.T) {
	withFakeGo(t)
	p, cache := publish(t, "pulled"), t.TempDir()
	for range 2 {
		c, err := olmComponents.ensure(t.Context(), cache, Source{Reference: p.ref, Images: quickly, Build: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, c, "built")
	}
	c, err := olmComponents.ensure(t.Context(), cache, Source{Reference: p.ref, Images: quickly}, nil)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, c, "built")
	if n := p.pulls.Load(); n != 0 {
		t.Errorf("%d manifests were pulled", n)
	}
}

const pullArgument = "olmkit-test-pull"

// A process that is killed while it pulls leaves nothing that the next one takes for components, and the next one pulls.
func TestKilledPull(t *testing.T) {
	p, cache := publish(t, strings.Repeat("pulled", 1<<18)), t.TempDir()
	begun := make(chan struct{}, 1)
	p.fail(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") || r.Method != http.MethodGet {
			return false
		}
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write(bytes.Repeat([]byte{0}, 1000))
		_ = http.NewResponseController(w).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
		return true
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, pullArgument, cache, p.ref)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	p.spoil.Store(nil)
	withoutGo(t)
	c, err := olmComponents.ensure(t.Context(), cache, Source{Reference: p.ref, Images: quickly}, nil)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, c, strings.Repeat("pulled", 1<<18))
	if left, _ := filepath.Glob(filepath.Join(cache, "components", "*.new")); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// pullAlone does what a process of its own does that TestKilledPull and TestPullToAFullDisk start: pullArgument CACHE REF.
func pullAlone(cache, ref string) {
	_, err := olmComponents.ensure(context.Background(), cache, Source{Reference: ref, Images: quickly}, nil)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\nfix: %s\n", err, hint.Of(err))
		os.Exit(1)
	}
	os.Exit(0)
}

// A disk that takes no more is no reason to build what would not fit either.
func TestPullToAFullDisk(t *testing.T) {
	withFakeGo(t)
	noise := make([]byte, 1<<18)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	p, cache := publish(t, string(noise)), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The user and mount namespaces are new, and the network's is not.
	script := `mount -t tmpfs -o size=256k none "$0" && "$@"; code=$?; find "$0" -type f -size +0 >&2; exit $code`
	out, err := exec.Command("unshare", "-rm", "sh", "-c", script, cache, self, pullArgument, cache, p.ref).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no space left on device") || !strings.HasSuffix(strings.TrimSpace(string(out)), "set OLMKIT_CACHE to a folder that has room") {
		t.Errorf("%v: %s", err, out)
	}
}
