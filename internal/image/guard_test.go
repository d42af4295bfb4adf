package image

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/klauspost/compress/zstd"

	"github.com/olmkit/olmkit/internal/hint"
)

// refusedBy fails the test unless err says what and has a fix that says how.
func refusedBy(t *testing.T, err error, what, how string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(hint.Of(err), how) {
		t.Errorf("got %v with the fix %q, want %q with %q", err, hint.Of(err), what, how)
	}
}

func startServer(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections) // before: what never ends would
	return strings.TrimPrefix(server.URL, "http://")
}

func TestRedirects(t *testing.T) {
	for name, only := range map[string]string{"everywhere": "", "of manifests": "/manifests/", "of tokens": "/token"} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			host := startServer(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, only) {
					asked.Add(1)
					http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
				} else if only == "/token" {
					w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="s"`)
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			_, err := quick.Fetch(t.Context(), host+"/team/bundle:v1")
			if err == nil || !strings.Contains(err.Error(), "redirect") || hint.Of(err) == "" {
				t.Errorf("got %v (%s)", err, hint.Of(err))
			}
			if n := asked.Load(); n > 2*(maxRedirects+1) {
				t.Errorf("it was asked %d times", n)
			}
			if err := quick.CheckPush(t.Context(), host+"/team/bundle:v1"); err == nil {
				t.Error("a push can go there")
			}
		})
	}
}

// elsewhere answers each request as handle does, whatever its host.
type elsewhere struct{ handle http.HandlerFunc }

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	e.handle(w, r)
	return w.Result(), nil
}

// TestNearby: a public registry leads to no address of this machine or its network, and none leads to link-local ones.
func TestNearby(t *testing.T) {
	t.Parallel()
	const metadata = "metadata.example.com:80"
	for _, test := range []struct {
		first, then string // addresses of registry.example.com and of metadata
		refused     bool
	}{
		{"93.184.216.34", "93.184.216.35", false},
		{"93.184.216.34", "127.0.0.1", true},
		{"93.184.216.34", "10.0.0.1", true},
		{"93.184.216.34", "192.168.1.1", true},
		{"93.184.216.34", "169.254.169.254", true},
		{"93.184.216.34", "::1", true},
		{"93.184.216.34", "::ffff:127.0.0.1", true},
		{"93.184.216.34", "fd00:ec2::254", true},
		{"93.184.216.34", "0.0.0.0", true},
		{"10.0.0.1", "10.0.0.2", false},
		{"10.0.0.1", "127.0.0.1", false}, // a registry, or a proxy, of one's own
		{"127.0.0.1", "169.254.169.254", true},
		{"127.0.0.1", "fe80::1", true},
	} {
		near := &nearby{}
		if err := near.check("registry.example.com:443", &net.TCPAddr{IP: net.ParseIP(test.first)}); err != nil {
			t.Errorf("%s: %v", test.first, err)
		}
		err := near.check(metadata, &net.TCPAddr{IP: net.ParseIP(test.then)})
		if (err != nil) != test.refused || test.refused && hint.Of(err) == "" {
			t.Errorf("%s to %s: %v", test.first, test.then, err)
		}
		if err := near.check("registry.example.com:443", &net.TCPAddr{IP: net.ParseIP(test.first)}); err != nil {
			t.Errorf("%s again: %v", test.first, err)
		}
	}
}

// TestCredentialsStay: a registry that sends requests elsewhere gets its own credentials there from nobody.
func TestCredentialsStay(t *testing.T) {
	var asked atomic.Int32
	other := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), "c2VjcmV0") || name == "Authorization" {
				t.Errorf("%s %s: %v", name, values, r.URL)
			}
		}
		w.WriteHeader(http.StatusNotFound)
	})
	other = strings.Replace(other, "127.0.0.1", "localhost", 1)
	var with atomic.Int32
	host := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") == "":
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			w.WriteHeader(http.StatusUnauthorized)
		case strings.Contains(r.URL.Path, "/manifests/"):
			with.Add(1)
			http.Redirect(w, r, "http://"+other+r.URL.Path, http.StatusTemporaryRedirect)
		}
	})
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"auths":{"`+host+`":{"auth":"dXNlcjpjMlZqY21WMA=="}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := quick.Fetch(t.Context(), host+"/team/bundle:v1"); err == nil {
		t.Error("no error")
	}
	if with.Load() == 0 || asked.Load() == 0 {
		t.Errorf("asked %d times with credentials, %d times elsewhere", with.Load(), asked.Load())
	}
}

// A registry on a private address is not spoken to without TLS, unless it is named; and is told no credentials then.
func TestClearText(t *testing.T) {
	for _, test := range []struct {
		host        string
		plain       []string
		credentials bool
		told, what  string // the credentials, or the error
	}{
		{host: "10.1.2.3:5000", what: "does not speak to 10.1.2.3 without TLS"},
		{host: "registry.local", what: "does not speak to registry.local without TLS"},
		{host: "10.1.2.3:5000", plain: []string{"10.1.2.3:5000"}},
		{host: "10.1.2.3:5000", plain: []string{AnyHost}, credentials: true, what: "10.1.2.3 asks for credentials"},
		{host: "localhost:5000", credentials: true, told: "Basic c2VjcmV0"},
		{host: "127.0.0.1:5000", credentials: true, told: "Basic c2VjcmV0"},
	} {
		t.Run(fmt.Sprint(test.host, test.plain, test.credentials), func(t *testing.T) {
			var told []string
			c := Client{PlainHTTP: test.plain}
			found := &atomic.Bool{}
			found.Store(test.credentials)
			g := &guard{plain: c.plain, credentials: found, until: time.Now().Add(time.Minute), stall: time.Minute, inner: elsewhere{func(w http.ResponseWriter, r *http.Request) {
				told = append(told, r.Header.Get("Authorization"))
				if test.credentials && r.Header.Get("Authorization") == "" {
					w.WriteHeader(http.StatusUnauthorized)
				}
			}}}
			r := httptest.NewRequest(http.MethodGet, "http://"+test.host+"/v2/", nil)
			if test.credentials {
				r.Header.Set("Authorization", "Basic c2VjcmV0")
			}
			ask := func() error {
				answer, err := g.RoundTrip(r)
				if err != nil {
					return err
				}
				return answer.Body.Close()
			}
			if err := ask(); test.what != "" {
				refusedBy(t, err, test.what, "--plain-http")
			} else if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(told, ","); got != test.told {
				t.Errorf("it was told %q, want %q", got, test.told)
			}
			if test.credentials && test.what != "" {
				r.Method = http.MethodPost
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				asked := len(told)
				refusedBy(t, ask(), test.what, "--plain-http")
				if len(told) != asked {
					t.Error("a refresh token was sent")
				}
			}
		})
	}
	ref, err := name.ParseReference("10.1.2.3:5000/a:b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (keychain{&atomic.Bool{}}).Resolve(ref.Context()); err != nil {
		t.Error(err)
	}
}

func TestKeychainNotesCredentials(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("DOCKER_CONFIG", dir)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"auths": {"10.1.2.3": {"auth": "dTpw"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{"10.1.2.3": true, "10.1.2.4": false} {
		registry, err := name.NewRegistry(host)
		if err != nil {
			t.Fatal(err)
		}
		found := &atomic.Bool{}
		got, err := keychain{found}.Resolve(registry)
		if err != nil || (got != authn.Anonymous) != want || found.Load() != want {
			t.Errorf("%s: %v, noted %v (%v)", host, got, found.Load(), err)
		}
	}
}

// A registry that answers, but never gets done, is given up.
func TestSlowRegistry(t *testing.T) {
	drip := func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(w, " "); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	slow := quick
	slow.stall = 100 * time.Millisecond
	_, err := slow.Fetch(t.Context(), startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/manifests/") {
			drip(w, r)
		}
	})+"/team/bundle:v1")
	refusedBy(t, err, "it answers at less than 1024 bytes a second", "try again when")
	late := quick
	late.Timeout = 100 * time.Millisecond
	for name, handle := range map[string]http.HandlerFunc{"in an answer": drip, "before it": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }} {
		t.Run(name, func(t *testing.T) {
			_, err := late.Fetch(t.Context(), startServer(t, handle)+"/team/bundle:v1")
			refusedBy(t, err, "it took longer than 100ms in all", "--registry-timeout")
		})
	}
}

// What is squeezed on its way is no reason to hold more of it than what came.
func TestCompressedAnswer(t *testing.T) {
	host := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		squeezed := gzip.NewWriter(w)
		_, _ = io.CopyN(squeezed, zeros{}, 20<<20)
		_ = squeezed.Close()
	})
	if _, err := quick.Fetch(t.Context(), host+"/team/bundle:v1"); err == nil || strings.Contains(err.Error(), "exceeds") {
		t.Errorf("got %v, want an error of what came", err)
	}
}

// A frame of a few bytes cannot have gigabytes held for it.
func TestZstdWindow(t *testing.T) {
	frame := append(append([]byte{}, zstdMagic...), 0x00, 0xa8, 0, 0, 0) // a window of 2 GiB
	if _, err := inflate(io.NopCloser(bytes.NewReader(frame))); err == nil {
		r, _ := inflate(io.NopCloser(bytes.NewReader(frame)))
		if _, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), "window") {
			t.Errorf("got %v", err)
		}
	}
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "plain")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := inflate(io.NopCloser(&packed))
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); err != nil || string(data) != "plain" || r.Close() != nil {
		t.Errorf("got %q, %v", data, err)
	}
}

func TestNamesAreBounded(t *testing.T) {
	u, err := newUnpacker(limits{entries: 1 << 20, files: 1 << 20, read: 1 << 30, kept: 1 << 20, names: 1 << 16}, true, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(u.dir)
	var files []entry
	for i := range 200 {
		files = append(files, entry{name: strings.Repeat("a", 500) + fmt.Sprint(i)})
	}
	if err := u.add(t.Context(), bytes.NewReader(tarOf(t, files...))); err == nil || !strings.Contains(err.Error(), "names of its files") {
		t.Errorf("got %v", err)
	}
}

func TestCheckPush(t *testing.T) {
	host := startRegistry(t)
	if err := quick.CheckPush(t.Context(), host+"/team/bundle:v1"); err != nil {
		t.Error(err)
	}
	denying := startProxy(t, host, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusForbidden)
		}
		return r.Method == http.MethodPost
	})
	refusedBy(t, quick.CheckPush(t.Context(), denying.host+"/team/bundle:v1"), "ask whether it can be pushed", "docker login")
	if err := quick.CheckPush(t.Context(), host+"/team/bundle@sha256:"+strings.Repeat("0", 64)); !IsWrongReference(err) {
		t.Errorf("a digest: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	refusedBy(t, quick.CheckPush(t.Context(), listener.Addr().String()+"/team/bundle:v1"), "refused", "can be reached")
}
