package image

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/olmkit/olmkit/internal/hint"
)

// waits records how long a Client was asked to wait, and does not.
type waits struct {
	mu  sync.Mutex
	all []time.Duration
}

func (w *waits) wait(_ context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, d)
	return nil
}

func TestPushWaitsAsLongAsAsked(t *testing.T) {
	for name, test := range map[string]struct {
		header func() string
		code   int
		waits  bool
		err    string
	}{
		"seconds":            {func() string { return "30" }, http.StatusTooManyRequests, true, ""},
		"a date":             {func() string { return time.Now().Add(50 * time.Second).UTC().Format(http.TimeFormat) }, http.StatusServiceUnavailable, true, ""},
		"a date gone by":     {func() string { return time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat) }, http.StatusTooManyRequests, false, ""},
		"nothing said":       {func() string { return "" }, http.StatusTooManyRequests, false, ""},
		"nonsense":           {func() string { return "soon" }, http.StatusTooManyRequests, false, ""},
		"longer than we do":  {func() string { return "21600" }, http.StatusTooManyRequests, false, "asks to be left alone for 6h0m0s"},
		"longer than time":   {func() string { return "99999999999999999999" }, http.StatusTooManyRequests, false, ""},
		"another error code": {func() string { return "30" }, http.StatusInternalServerError, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			busy := func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", test.header())
				w.WriteHeader(test.code)
			}
			p := startProxy(t, startRegistry(t), once(1, func(r *http.Request) bool { return r.Method == http.MethodPatch }, busy))
			w := &waits{}
			_, err := Client{Pause: time.Millisecond, wait: w.wait}.Push(t.Context(), p.host+"/team/bundle:v1", bundleImage(t))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || hint.Of(err) == "" {
					t.Errorf("got %v, want an error with %q and a fix", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (len(w.all) > 0) != test.waits {
				t.Errorf("waited %v", w.all)
			}
			for _, d := range w.all {
				if d > longestWait {
					t.Errorf("waited %v", d)
				}
			}
		})
	}
}

// A registry that stops in the middle of an answer, or never begins one, is given up and asked again.
func TestARegistryThatStandsStill(t *testing.T) {
	layers, err := bundleImage(t).(v1.Image).Layers()
	if err != nil {
		t.Fatal(err)
	}
	first, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	for name, answered := range map[string]int64{"before it answers": 0, "in a layer": 100} {
		t.Run(name, func(t *testing.T) {
			host := startRegistry(t)
			if _, err := quick.Push(t.Context(), host+"/team/bundle:v1", bundleImage(t)); err != nil {
				t.Fatal(err)
			}
			var stopped atomic.Int32
			forever := make(chan struct{})
			p := startProxy(t, host, func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/blobs/"+first.String()) || stopped.Add(1) > 3 {
					return false
				}
				if answered > 0 {
					blob, err := http.Get("http://" + host + r.URL.Path)
					if err != nil {
						t.Error(err)
						return true
					}
					defer blob.Body.Close()
					w.Header().Set("Content-Length", blob.Header.Get("Content-Length"))
					_, _ = io.CopyN(w, blob.Body, answered)
					_ = http.NewResponseController(w).Flush()
				}
				<-forever
				return true
			})
			t.Cleanup(func() { close(forever) })
			client := quick
			client.stall = 50 * time.Millisecond
			content, err := client.Unpack(t.Context(), p.host+"/team/bundle:v1")
			if err != nil {
				t.Fatal(err)
			}
			if err := content.Close(); err != nil || stopped.Load() <= 3 {
				t.Errorf("it stood still %d times; %v", stopped.Load(), err)
			}
		})
	}
	t.Run("for ever", func(t *testing.T) {
		forever := make(chan struct{})
		p := startProxy(t, startRegistry(t), func(http.ResponseWriter, *http.Request) bool { <-forever; return true })
		t.Cleanup(func() { close(forever) })
		client := quick
		client.stall = 20 * time.Millisecond
		_, err := client.Unpack(t.Context(), p.host+"/team/bundle:v1")
		if err == nil || !strings.Contains(hint.Of(err), "stopped answering") {
			t.Errorf("got %v, fix %q", err, hint.Of(err))
		}
	})
}

// A registry may take longer to store a blob than to begin an answer.
func TestSlowToStore(t *testing.T) {
	var tries atomic.Int32
	p := startProxy(t, startRegistry(t), func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/uploads/") {
			tries.Add(1)
			time.Sleep(1500 * time.Millisecond)
		}
		return false
	})
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	client := quick
	client.stall = time.Second
	if _, err := client.Push(t.Context(), p.host+"/team/bundle:v1", img); err != nil || tries.Load() != 2 {
		t.Errorf("%v; %d blobs were stored", err, tries.Load())
	}
}

func TestSleepEndsWithTheContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := sleep(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

// startTLS starts a proxy with TLS to the registry at host, and returns its host and the file of its authority.
func startTLS(t *testing.T, host string) (string, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: host}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(server.URL, "https://"), file
}

// TestAuthoritiesByHost trusts an authority for one registry, and not for another.
func TestAuthoritiesByHost(t *testing.T) {
	host, file := startTLS(t, startRegistry(t))
	other := "127.0.0.1:1"
	for name, test := range map[string]struct {
		authorities []Authority
		trusted     bool
	}{
		"none":                   {nil, false},
		"for all":                {[]Authority{{File: file}}, true},
		"for this host":          {[]Authority{{Host: host, File: file}}, true},
		"for the host's name":    {[]Authority{{Host: "127.0.0.1", File: file}}, true},
		"for another":            {[]Authority{{Host: other, File: file}}, false},
		"for all, and another's": {[]Authority{{File: file}, {Host: other, File: file}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := quick
			c.Authorities = test.authorities
			_, err := c.Push(t.Context(), host+"/team/bundle:v1", bundleImage(t))
			if (err == nil) != test.trusted {
				t.Errorf("got %v", err)
			}
			if !test.trusted && !strings.Contains(hint.Of(err), "--ca-file") {
				t.Errorf("the fix is %q", hint.Of(err))
			}
		})
	}
	for _, file := range []string{"missing", published + "/metadata/annotations.yaml"} {
		c := quick
		c.Authorities = []Authority{{File: file}}
		if _, err := c.Pinned(t.Context(), host+"/team/bundle:v1"); err == nil || hint.Of(err) == "" {
			t.Errorf("%s: got %v, want an error with a fix", file, err)
		}
	}
}

func TestPlainHTTPByHost(t *testing.T) {
	for name, test := range map[string]struct {
		hosts []string
		plain bool
	}{
		"none":              {nil, false},
		"all":               {[]string{AnyHost}, true},
		"the host":          {[]string{"other", "registry.example.com"}, true},
		"the host and port": {[]string{"registry.example.com:5000"}, true},
		"another port":      {[]string{"registry.example.com:5001"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ref, err := Client{PlainHTTP: test.hosts}.parse("registry.example.com:5000/a:b")
			if err != nil {
				t.Fatal(err)
			}
			if got := ref.Context().Scheme() == "http"; got != test.plain {
				t.Errorf("scheme %s", ref.Context().Scheme())
			}
		})
	}
}

func TestPushSeesATagThatMeansAnother(t *testing.T) {
	p := startProxy(t, startRegistry(t), func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/manifests/v1") {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write([]byte(`{"schemaVersion":2}`))
		return true
	})
	_, err := quick.Push(t.Context(), p.host+"/team/bundle:v1", bundleImage(t))
	if err == nil || !strings.Contains(err.Error(), "and yet it means") || hint.Of(err) == "" {
		t.Errorf("got %v", err)
	}
}

func TestCredentials(t *testing.T) {
	host := startRegistry(t)
	for name, config := range map[string]string{
		"no such helper": `{"credsStore": "missing"}`,
		"no JSON":        `{"auths": `,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("HOME", dir)
			t.Setenv("DOCKER_CONFIG", dir)
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := quick.Push(t.Context(), host+"/team/bundle:v1", bundleImage(t))
			if err == nil || !strings.Contains(err.Error(), "get the credentials for "+host) || !strings.Contains(hint.Of(err), "docker login "+host) {
				t.Errorf("got %v; %s", err, hint.Of(err))
			}
		})
	}
}

// TestPushAgainSendsWhatIsMissing breaks a push at its largest blob, and counts what the next one sends.
func TestPushAgainSendsWhatIsMissing(t *testing.T) {
	made := bundleImage(t)
	manifest, err := made.(v1.Image).Manifest()
	if err != nil {
		t.Fatal(err)
	}
	blobs := slices.Concat(manifest.Layers, []v1.Descriptor{manifest.Config})
	var largest int64
	for _, b := range blobs {
		largest = max(largest, b.Size)
	}
	host := startRegistry(t)
	breaking := startProxy(t, host, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || r.ContentLength != largest {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	if _, err := quick.Push(t.Context(), breaking.host+"/team/bundle:v1", made); err == nil {
		t.Fatal("the push went through")
	}
	if n := breaking.puts.Load(); n != 0 {
		t.Errorf("%d manifests were sent before all blobs were there", n)
	}
	var missing int64
	for _, b := range blobs {
		answer, err := http.Head("http://" + host + "/v2/team/bundle/blobs/" + b.Digest.String())
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusNotFound {
			missing += b.Size
		}
	}
	var sent atomic.Int64
	counting := startProxy(t, host, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			sent.Add(r.ContentLength)
		}
		return false
	})
	if _, err := quick.Push(t.Context(), counting.host+"/team/bundle:v1", made); err != nil {
		t.Fatal(err)
	}
	if sent.Load() > missing || sent.Load() < largest {
		t.Errorf("%d bytes were sent, where %d were missing", sent.Load(), missing)
	}
}
