package kind

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/olmkit/olmkit/internal/catalog"
	catalogregistry "github.com/olmkit/olmkit/internal/catalog/registry"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
)

// mirrorFile makes containerd ask olmkit's registry first, whatever registry an image's name begins with: so a reference
// means on the nodes what it means to the walk. What olmkit does not have comes from where it always does.
const mirrorFile = "/etc/containerd/certs.d/_default/hosts.toml"

// mirror serves images to the nodes, under the names of any registry, from this process: nothing has to be pulled or
// pushed to run it, and it ends with the walk. It listens on the address by which the node reaches the machine.
type mirror struct {
	address string // host:port
	server  *http.Server
	secure  *http.Server // what pods pull from by its address; nil until something was pushed for them
	node    node
	held    http.Handler

	mu    sync.Mutex
	names map[string]bool // repositories that were pushed, with the registry's name before
}

// startMirror serves to node, and tells its containerd.
func startMirror(ctx context.Context, node node) (*mirror, error) {
	var route bytes.Buffer
	if err := node.run(ctx, nil, &route, "ip", "-4", "route", "show", "default"); err != nil {
		return nil, fmt.Errorf("ask the node for its way out: %w", err)
	}
	words := strings.Fields(route.String())
	at := slices.Index(words, "via") + 1
	if at <= 0 || at >= len(words) {
		return nil, fmt.Errorf("the node has no way to this machine: %q", strings.TrimSpace(route.String()))
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(words[at], "0"))
	if err != nil {
		return nil, hint.With(fmt.Errorf("serve images to the node: %w", err),
			"run the container engine on this machine itself, not in a virtual machine: the node reaches olmkit at its gateway")
	}
	m := newMirror(node, listener)
	hosts := fmt.Sprintf("[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", "http://"+m.address)
	if err := node.writeFile(ctx, mirrorFile, hosts); err != nil {
		m.close()
		return nil, fmt.Errorf("tell the node where images are: %w", err)
	}
	if err := node.run(ctx, nil, nil, "curl", "--silent", "--show-error", "--fail", "--max-time", "10", "http://"+m.address+"/v2/"); err != nil {
		m.close()
		return nil, hint.With(fmt.Errorf("the node does not reach this machine at %s: %w", m.address, err),
			"let the firewall pass what comes from the container engine's networks")
	}
	return m, nil
}

// newMirror serves on listener.
func newMirror(node node, listener net.Listener) *mirror {
	m := &mirror{
		address: listener.Addr().String(), node: node, names: map[string]bool{},
		held: registry.New(registry.Logger(log.New(io.Discard, "", 0))),
	}
	m.server = &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = m.server.Serve(listener) }()
	return m
}

func (m *mirror) close() {
	_ = m.server.Close()
	if m.secure != nil {
		_ = m.secure.Close()
	}
}

// serve answers the node's pods with the content of loaded, at the returned address, until stop is called.
func (m *mirror) serve(loaded *catalog.Catalog) (address string, stop func(), err error) {
	host, _, err := net.SplitHostPort(m.address)
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = catalogregistry.Serve(ctx, listener, loaded)
	}()
	return listener.Addr().String(), func() { cancel(); <-ended }, nil
}

// push makes ref mean what, and returns it by its digest. Without a registry's name it is one of Docker Hub's, as containerd has it.
func (m *mirror) push(ctx context.Context, ref string, what image.Artifact) (string, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", fmt.Errorf("%q: %w", ref, err)
	}
	tagged, ok := reference.TagNameOnly(named).(reference.NamedTagged)
	if _, digested := named.(reference.Digested); digested || !ok {
		return "", hint.With(fmt.Errorf("%s has a digest, so the nodes take nothing else for it", ref),
			"name the image by a tag in the bundle that is tested, or use an embedded cluster")
	}
	host, repository := reference.Domain(named), reference.Path(named)
	here := pathOf(host) + "/" + repository
	pinned, err := image.Client{PlainHTTP: []string{m.address}}.Push(ctx, m.address+"/"+here+":"+tagged.Tag(), what)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	m.names[here] = true
	m.mu.Unlock()
	_, digest, _ := strings.Cut(pinned, "@")
	return host + "/" + repository + "@" + digest, nil
}

// pathOf is a registry's name as the first part of a repository's.
func pathOf(host string) string { return strings.ReplaceAll(host, ":", "_") }

// ServeHTTP answers containerd, which says in ns which registry it means, and those who push.
func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host := r.URL.Query().Get("ns")
	if host == "" {
		m.held.ServeHTTP(w, r)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	parts := strings.Split(path, "/")
	if len(parts) < 3 {
		http.NotFound(w, r)
		return
	}
	repository := strings.Join(parts[:len(parts)-2], "/")
	m.mu.Lock()
	held := m.names[pathOf(host)+"/"+repository]
	m.mu.Unlock()
	if held {
		r.URL.Path = "/v2/" + pathOf(host) + "/" + path
		m.held.ServeHTTP(w, r)
		return
	}
	m.fromNode(w, r, host+"/"+repository, parts[len(parts)-1])
}

// fromNode answers with what the node's own store has: an image that was loaded there also satisfies those who insist on
// pulling, as OLM does for images without a digest.
func (m *mirror) fromNode(w http.ResponseWriter, r *http.Request, repository, what string) {
	digest := what
	if !strings.HasPrefix(digest, "sha256:") {
		if digest = m.digestOf(r.Context(), repository+":"+what); digest == "" {
			http.NotFound(w, r)
			return
		}
	}
	var content bytes.Buffer
	if err := m.node.run(r.Context(), nil, &content, "ctr", "--namespace", "k8s.io", "content", "get", digest); err != nil ||
		fmt.Sprintf("sha256:%x", sha256.Sum256(content.Bytes())) != digest {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mediaType(content.Bytes()))
	w.Header().Set("Content-Length", strconv.Itoa(content.Len()))
	w.Header().Set("Docker-Content-Digest", digest)
	if r.Method != http.MethodHead {
		_, _ = content.WriteTo(w)
	}
}

// digestOf returns what a reference means in the node's store, or "".
func (m *mirror) digestOf(ctx context.Context, reference string) string {
	var list bytes.Buffer
	if err := m.node.run(ctx, nil, &list, "ctr", "--namespace", "k8s.io", "images", "list", "name=="+reference); err != nil {
		return ""
	}
	for line := range strings.Lines(list.String()) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == reference { // REF TYPE DIGEST
			return fields[2]
		}
	}
	return ""
}

// mediaType is what a manifest says that it is; other content needs no type.
func mediaType(content []byte) string {
	var manifest struct {
		MediaType string `json:"mediaType"`
	}
	if json.Unmarshal(content, &manifest) == nil && manifest.MediaType != "" {
		return manifest.MediaType
	}
	return "application/octet-stream"
}
