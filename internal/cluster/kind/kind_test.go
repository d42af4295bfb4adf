package kind

import (
	"archive/tar"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/catalog/registry"
	"github.com/olmkit/olmkit/internal/cluster/certificates"
	"github.com/olmkit/olmkit/internal/hint"
)

// answer is what the mirror says to containerd that asks for path of the registry host.
func answer(t *testing.T, m *mirror, host, path string) (int, http.Header) {
	t.Helper()
	response, err := http.Get(fmt.Sprintf("http://%s/v2/%s?ns=%s", m.address, path, host))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Header
}

// localMirror serves no node, but this machine.
func localMirror(t *testing.T) *mirror {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := newMirror(node{}, listener)
	t.Cleanup(m.close)
	return m
}

func TestMirrorServesUnderAnyRegistrysName(t *testing.T) {
	t.Parallel()
	m := localMirror(t)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "manager"), []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	artifact, err := pack(folder, "/manager")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := artifact.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for ref, host := range map[string]string{
		"ghcr.io/team/operator:v1": "ghcr.io", "registry.example.com:5000/team/operator:v1": "registry.example.com:5000", "team/operator:v1": "docker.io",
	} {
		pinned, err := m.push(t.Context(), ref, artifact)
		if want := host + "/team/operator@" + digest.String(); err != nil || pinned != want {
			t.Fatalf("pushed as %s, %v, want %s", pinned, err, want)
		}
		for _, reference := range []string{"v1", digest.String()} {
			if code, header := answer(t, m, host, "team/operator/manifests/"+reference); code != http.StatusOK || header.Get("Docker-Content-Digest") != digest.String() {
				t.Errorf("%s/team/operator %s: %d, %v", host, reference, code, header)
			}
		}
		if code, _ := answer(t, m, host, "team/operator/manifests/v2"); code != http.StatusNotFound {
			t.Errorf("a tag that was not pushed to %s: %d", host, code)
		}
	}
	if _, err := m.push(t.Context(), "controller", artifact); err != nil {
		t.Fatal(err)
	}
	if code, _ := answer(t, m, "docker.io", "library/controller/manifests/latest"); code != http.StatusOK {
		t.Errorf("controller: %d", code)
	}
	for ref, says := range map[string]string{"ghcr.io/team/operator@" + digest.String(): "has a digest", "ghcr.io/Team/operator": "must be lowercase"} {
		if _, err := m.push(t.Context(), ref, artifact); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

// TestMirrorServesPods pulls by address, with TLS and the authority's trust, what was pushed for pods.
func TestMirrorServesPods(t *testing.T) {
	t.Parallel()
	m := localMirror(t)
	authority, err := certificates.NewAuthority("tea")
	if err != nil {
		t.Fatal(err)
	}
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(authority.Certificate)
	pods := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}
	for range 2 { // the second time from the registry that is there
		pinned, err := m.pushForPods(t.Context(), authority, "tea", img)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := name.NewDigest(pinned)
		if err != nil {
			t.Fatal(err)
		}
		if ref.DigestStr() != digest.String() {
			t.Errorf("%s is not %s", pinned, digest)
		}
		url := "https://" + ref.RegistryStr() + "/v2/" + ref.RepositoryStr() + "/manifests/" + ref.DigestStr()
		response, err := (&http.Client{Transport: pods}).Get(url)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", url, response.Status)
		}
	}
}

// TestMirrorServesCatalogs reads a catalog at the address that OLM is told, until it is no longer served.
func TestMirrorServesCatalogs(t *testing.T) {
	t.Parallel()
	m := localMirror(t)
	loaded := catalog.Parse("tea", []byte(`{"schema":"olm.package","name":"tea","defaultChannel":"green"}
{"schema":"olm.channel","package":"tea","name":"green","entries":[{"name":"tea.v1.0.0"}]}
{"schema":"olm.bundle","package":"tea","name":"tea.v1.0.0","image":"example.com/tea:v1","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"1.0.0"}}]}`))
	if err := loaded.Err(); err != nil {
		t.Fatal(err)
	}
	address, stop, err := m.serve(loaded)
	if err != nil {
		t.Fatal(err)
	}
	read, err := registry.Read(t.Context(), address, "tea")
	if err != nil || len(read.Packages) != 1 || len(read.Packages[0].Bundles) != 1 {
		t.Errorf("read from %s: %v, %v", address, read, err)
	}
	stop()
	if connection, err := net.Dial("tcp", address); err == nil {
		connection.Close()
		t.Errorf("%s answers after it was stopped", address)
	}
}

func TestPackFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(folder, "etc"), 0o755), os.WriteFile(filepath.Join(folder, "etc/word"), []byte("tea"), 0o640)); err != nil {
		t.Fatal(err)
	}
	artifact, err := pack(folder, "/bin/run")
	if err != nil {
		t.Fatal(err)
	}
	img, ok := artifact.(v1.Image)
	if !ok {
		t.Fatalf("a %T", artifact)
	}
	config, err := img.ConfigFile()
	if err != nil || config.OS != "linux" || config.Config.User != user || fmt.Sprint(config.Config.Entrypoint) != "[/bin/run]" {
		t.Errorf("configuration %+v, %v", config, err)
	}
	content := mutate.Extract(img)
	defer content.Close()
	found := ""
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "etc/word" && h.FileInfo().Mode() == fs.FileMode(0o640) {
			data, _ := io.ReadAll(r)
			found = string(data)
		}
	}
	if found != "tea" {
		t.Errorf("etc/word holds %q", found)
	}
}

func TestEntrypoint(t *testing.T) {
	t.Parallel()
	for want, command := range map[string][]string{
		"/manager":           {"/manager", "--flag"},
		"/usr/bin/operator":  {"/usr//bin/operator"},
		"/bin/manager":       {"manager"},
		"/memcached-manager": nil,
	} {
		if got := entrypoint(command, "bin/memcached-manager"); got != want {
			t.Errorf("command %v: %s, want %s", command, got, want)
		}
	}
}

func TestBundlesGetTheirImages(t *testing.T) {
	t.Parallel()
	fbc := `{"schema":"olm.package","name":"tea","defaultChannel":"stable"}
{"schema":"olm.channel","package":"tea","name":"tea.v1","entries":[{"name":"tea.v1"}]}
{"schema":"olm.bundle","package":"tea","name":"tea.v1","image":"","properties":[{"type":"big","value":12345678901234567890}]}
`
	content, err := catalog.WithImages([]byte(fbc), map[string]string{"tea/tea.v1": "olmkit.internal/bundle/tea@sha256:1"})
	if err != nil {
		t.Fatal(err)
	}
	c := catalog.Parse("test", content)
	b := c.Find("tea").Bundle("tea.v1")
	if b.Image != "olmkit.internal/bundle/tea@sha256:1" || string(b.Properties[0].Value) != "12345678901234567890" {
		t.Errorf("the bundle is %+v", b)
	}
	if n := strings.Count(string(content), "sha256:1"); n != 1 {
		t.Errorf("%d documents have an image:\n%s", n, content)
	}
	for line := range strings.Lines(string(content)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"docker: pull access denied":                    "--node-image",
		"listen tcp4: bind: address already in use":     "another --port",
		"unable to apply caps: operation not permitted": "privileged",
		"kubeadm init: exit status 1":                   "example.com/node:v1 is a node image",
	} {
		if got := hint.Of(advise(errors.New(said), "example.com/node:v1")); !strings.Contains(got, want) {
			t.Errorf("%q: advised %q, want %q in it", said, got, want)
		}
	}
}
