//go:build linux

package e2e_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The registry's only user, and the password's bcrypt hash.
const (
	registryUser     = "tea"
	registryPassword = "steep"
	registryHash     = "$2a$04$gZTNQ7iRhpLLNLgBU.2nRujf0xIZuKK0o/8a94x/zvIu8ERgSeTwK"
)

// startRegistry starts distribution's registry with TLS, by a certificate authority of its own, and a user. It returns the
// registry's host and the authority's file.
func startRegistry(t *testing.T) (host, caFile string) {
	t.Helper()
	dir := t.TempDir()
	caFile = filepath.Join(dir, "ca.pem")
	certFile, keyFile := filepath.Join(dir, "tls.pem"), filepath.Join(dir, "tls.key")
	writeCertificates(t, caFile, certFile, keyFile)
	users := filepath.Join(dir, "htpasswd")
	write(t, users, registryUser+":"+registryHash+"\n")
	host = runRegistry(t, filepath.Join(dir, "data"), fmt.Sprintf(", tls: {certificate: %q, key: %q}", certFile, keyFile), fmt.Sprintf("auth: {htpasswd: {realm: tea, path: %q}}", users))
	return host, caFile
}

// startPlainRegistry starts distribution's registry without TLS and for everybody, and returns its host.
func startPlainRegistry(t *testing.T) string {
	t.Helper()
	return runRegistry(t, t.TempDir(), "", "")
}

// runRegistry starts distribution's registry, which keeps its data in the folder data; http is more of the configuration's
// section of that name, and auth another section. A wrapper is a command that runs the one that follows it. It returns the
// registry's host.
func runRegistry(t *testing.T, data, http, auth string, wrapper ...string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.yml")
	write(t, config, fmt.Sprintf(`version: 0.1
log: {level: info}
storage: {filesystem: {rootdirectory: %q}}
http: {addr: "127.0.0.1:0", relativeurls: true%s}
%s
`, data, http, auth))

	words := slices.Concat(wrapper, []string{filepath.Join(root, "bin", "registry"), "serve", config})
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the registry: %v (build it with 'make bin/registry')", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	listening := regexp.MustCompile(`listening on (127\.0\.0\.1:\d+)`)
	var all strings.Builder
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return found[1]
		}
	}
	t.Fatalf("the registry did not start:\n%s", all.String())
	return ""
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeCertificates writes the certificate of a registry on the loopback interface and at addresses.
func writeCertificates(t *testing.T, caFile, certFile, keyFile string, addresses ...net.IP) {
	t.Helper()
	issue := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signer == nil {
			signer = key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	from, to := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tea authority"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, caKey := issue(ca, ca, nil)
	certDER, key := issue(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "registry"}, NotBefore: from, NotAfter: to,
		IPAddresses: append([]net.IP{net.IPv4(127, 0, 0, 1)}, addresses...), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, caKey)
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		caFile: {Type: "CERTIFICATE", Bytes: caDER}, certFile: {Type: "CERTIFICATE", Bytes: certDER}, keyFile: {Type: "EC PRIVATE KEY", Bytes: keyDER},
	} {
		write(t, file, string(pem.EncodeToMemory(block)))
	}
}

// loggedIn returns the environment of a user who is logged in at hosts.
func loggedIn(t *testing.T, hosts ...string) []string {
	t.Helper()
	dir := t.TempDir()
	token := base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + registryPassword))
	var auths []string
	for _, host := range hosts {
		auths = append(auths, fmt.Sprintf("%q: {\"auth\": %q}", host, token))
	}
	write(t, filepath.Join(dir, "config.json"), `{"auths": {`+strings.Join(auths, ", ")+`}}`)
	return []string{"DOCKER_CONFIG=" + dir, "HOME=" + dir, "XDG_RUNTIME_DIR=" + dir}
}

// faulty stands before the registry: plain HTTP in front, TLS behind. It counts the bytes that are sent to it and spoils the
// requests that the current fault says.
type faulty struct {
	host  string
	bytes atomic.Int64 // of blobs and manifests
	fault atomic.Pointer[spoiling]
}

// spoiling spoils the first times requests of method on a path that contains path.
type spoiling struct {
	method, path string
	times        atomic.Int64
	spoil        func(http.ResponseWriter, *http.Request) (passOn bool)
}

func startFaulty(t *testing.T, registry, caFile string) *faulty {
	t.Helper()
	authority, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: registry})
	forward.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	forward.ErrorLog = log.New(io.Discard, "", 0)
	f := &faulty{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.bytes.Add(max(r.ContentLength, 0))
		if now := f.fault.Load(); now != nil && r.Method == now.method && strings.Contains(r.URL.Path, now.path) && now.times.Add(-1) >= 0 {
			if !now.spoil(w, r) {
				return
			}
		}
		forward.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	f.host = strings.TrimPrefix(server.URL, "http://")
	return f
}

func refuseWith(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return false }
}

// garble passes a request's body on with its first byte changed.
func garble(_ http.ResponseWriter, r *http.Request) bool {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	data[0] ^= 1
	r.Body = io.NopCloser(bytes.NewReader(data))
	return true
}

func breakOff(_ http.ResponseWriter, r *http.Request) bool {
	_, _ = io.CopyN(io.Discard, r.Body, 500)
	panic(http.ErrAbortHandler)
}

const somePushed = "bundle/memcached-operator/0.5.0"

func TestPushToARealRegistry(t *testing.T) {
	host, caFile := startRegistry(t)
	env := loggedIn(t, host)
	reference := host + "/team/bundle:v0.5.0"

	for name, c := range map[string]struct {
		env  []string
		args []string
		says string
	}{
		"an unknown authority": {env, nil, "--ca-file"},
		"nobody logged in":     {loggedIn(t), []string{"--ca-file", caFile}, "docker login " + host},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, c.env, append([]string{"bundle", "push", somePushed, reference}, c.args...)...)
			if r.code != 1 || !strings.Contains(r.errOut, c.says) {
				t.Errorf("exit code %d\n%s", r.code, r.errOut)
			}
		})
	}

	first := run(t, env, "bundle", "push", somePushed, reference, "--ca-file", caFile)
	if first.code != 0 || !regexp.MustCompile(`^`+host+`/team/bundle@sha256:[0-9a-f]{64}\n$`).MatchString(first.out) {
		t.Fatalf("exit code %d\n%s%s", first.code, first.out, first.errOut)
	}
	pinned := strings.TrimSpace(first.out)
	if r := run(t, env, "bundle", "validate", pinned, "--ca-file", caFile, "--fail-on", "never"); r.code != 0 || !strings.Contains(r.out, "passed") {
		t.Errorf("validate: exit code %d\n%s%s", r.code, r.out, r.errOut)
	}
	rendered := run(t, env, "catalog", "render", pinned, "--ca-file", caFile)
	if rendered.code != 0 || !strings.Contains(rendered.out, `"image": "`+pinned+`"`) {
		t.Errorf("render: exit code %d\n%.500s%s", rendered.code, rendered.out, rendered.errOut)
	}

	catalogReference := host + "/team/catalog:latest"
	if r := run(t, env, "catalog", "push", "catalog", catalogReference, "--ca-file", caFile); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.errOut)
	}
	back := run(t, env, "catalog", "render", catalogReference, "--ca-file", caFile)
	if want := must(t, "catalog", "render", "catalog"); back.code != 0 || back.out != want.out {
		t.Errorf("the catalog that comes back is another: exit code %d\n%s", back.code, back.errOut)
	}
	missing := run(t, env, "catalog", "render", host+"/team/catalog:missing", "--ca-file", caFile)
	if missing.code != 1 || !strings.Contains(missing.errOut, "push the image first") {
		t.Errorf("a missing tag: exit code %d\n%s", missing.code, missing.errOut)
	}
}

func TestPushThroughFaults(t *testing.T) {
	registry, caFile := startRegistry(t)
	f := startFaulty(t, registry, caFile)
	env := loggedIn(t, f.host)
	// What the tag means, "" when it is not there.
	tagged := func(reference string) string {
		r := run(t, env, "catalog", "render", reference)
		if r.code != 0 {
			return ""
		}
		return r.out
	}
	for i, c := range []struct {
		name, method, path string
		times              int64
		spoil              func(http.ResponseWriter, *http.Request) bool
		err                string // "" for success in the end
	}{
		{"429 for a blob", http.MethodPatch, "/blobs/uploads/", 1, refuseWith(http.StatusTooManyRequests), ""},
		{"500 for a blob", http.MethodPatch, "/blobs/uploads/", 1, refuseWith(http.StatusInternalServerError), ""},
		{"503 for the manifest", http.MethodPut, "/manifests/", 1, refuseWith(http.StatusServiceUnavailable), ""},
		{"the connection cut in mid-blob", http.MethodPatch, "/blobs/uploads/", 2, breakOff, ""},
		{"a blob with another digest", http.MethodPatch, "/blobs/uploads/", 1 << 30, garble, "DIGEST_INVALID"},
		{"a manifest with another digest", http.MethodPut, "/manifests/", 1 << 30, garble, "MANIFEST_INVALID|DIGEST_INVALID|400"},
		{"no right to set the tag", http.MethodPut, "/manifests/v1", 1 << 30, refuseWith(http.StatusForbidden), "set the tag"},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A repository of its own, so that everything must be sent.
			reference := fmt.Sprintf("%s/team/bundle%d:v1", f.host, i)
			now := &spoiling{method: c.method, path: c.path, spoil: c.spoil}
			now.times.Store(c.times)
			f.fault.Store(now)
			r := run(t, env, "bundle", "push", somePushed, reference)
			f.fault.Store(nil)
			if c.err != "" {
				if r.code != 1 || !regexp.MustCompile(c.err).MatchString(r.errOut) || !strings.Contains(r.errOut, "fix: ") {
					t.Errorf("exit code %d\n%s", r.code, r.errOut)
				}
				if tagged(reference) != "" {
					t.Error("the push failed, and yet the tag is there")
				}
				r = run(t, env, "bundle", "push", somePushed, reference)
			}
			if r.code != 0 {
				t.Fatalf("exit code %d\n%s", r.code, r.errOut)
			}
			if tagged(reference) == "" {
				t.Error("what was pushed cannot be read")
			}
			if f.bytes.Swap(0) == 0 {
				t.Error("no bytes were counted")
			}
			if r := run(t, env, "bundle", "push", somePushed, reference); r.code != 0 || f.bytes.Load() != 0 {
				t.Errorf("pushed again: exit code %d, %d bytes sent\n%s", r.code, f.bytes.Load(), r.errOut)
			}
		})
	}
}
