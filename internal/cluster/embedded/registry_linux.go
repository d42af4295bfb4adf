package embedded

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/net/netutil"
)

// registryPort is where pods find the cluster's registry, at the address of the host.
const registryPort = 5000

// PushImage keeps image in the cluster's own registry and returns the reference, by digest, by which pods pull it. The registry
// has TLS with a certificate of the cluster's authority, and holds what it has in memory.
func (c *Cluster) PushImage(ctx context.Context, repository string, image v1.Image) (string, error) {
	digest, err := image.Digest()
	if err != nil {
		return "", err
	}
	at := netip.AddrPortFrom(netip.MustParsePrefix(podRange).Addr().Next(), registryPort)
	ref, err := name.NewDigest(fmt.Sprintf("%s/%s@%s", at, repository, digest), name.Insecure) // the control socket has no TLS
	if err != nil {
		return "", err
	}
	if err := remote.Write(ref, image, remote.WithTransport(c.client.http.Transport), remote.WithContext(ctx)); err != nil {
		return "", fmt.Errorf("push %s to the cluster's registry: %w", ref, err)
	}
	return ref.String(), nil
}

// startRegistry serves a registry for images to the pods, which can only pull. Who pushes does so by the returned handler.
func (h *host) startRegistry() (http.Handler, error) {
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	listener, err := net.Listen("tcp", netip.AddrPortFrom(h.net.HostAddress(), registryPort).String())
	if err != nil {
		return nil, fmt.Errorf("serve images: %w", err)
	}
	return handler, h.serveTLS(listener, "registry", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "this registry is pulled from only", http.StatusMethodNotAllowed)
			return
		}
		select {
		case <-time.After(time.Duration(h.imageDelay.Load())):
			handler.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
}

// serveTLS serves handler at listener with a certificate for the host's address.
func (h *host) serveTLS(listener net.Listener, name string, handler http.Handler) error {
	config, err := h.plane.authority.ServerTLS(name, h.net.HostAddress().String())
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, TLSConfig: config}
	go func() { _ = server.ServeTLS(limited(listener), "", "") }()
	return nil
}

// mostClients is how many connections pods have at most to something that the host serves: they could have as many as it has files.
const mostClients = 500

func limited(listener net.Listener) net.Listener { return netutil.LimitListener(listener, mostClients) }
