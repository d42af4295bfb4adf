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
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
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
	go func() { _ = server.ServeTLS(listener, "", "") }()
	return nil
}

// exposeService passes what reaches the host's address at the returned port on to a pod of a Service, since there are no
// addresses of Services. The address stays the same for as long as the cluster is.
func (h *host) exposeService(namespace, service, port string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := namespace + "/" + service + "/" + port
	if address := h.exposed[key]; address != "" {
		return address, nil
	}
	client, err := kubernetes.NewForConfig(h.plane.config())
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", netip.AddrPortFrom(h.net.HostAddress(), 0).String())
	if err != nil {
		return "", err
	}
	go forward(listener, func() (string, error) { return endpointOf(client, namespace, service, port) })
	h.exposed[key] = listener.Addr().String()
	return h.exposed[key], nil
}

// endpointOf returns the address of a ready pod of a Service.
func endpointOf(client kubernetes.Interface, namespace, service, port string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	slices, err := client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{discoveryv1.LabelServiceName: service}.String(),
	})
	if err != nil {
		return "", err
	}
	for _, s := range slices.Items {
		for _, p := range s.Ports {
			for _, e := range s.Endpoints {
				if p.Name != nil && *p.Name == port && p.Port != nil && e.Conditions.Ready != nil && *e.Conditions.Ready {
					return net.JoinHostPort(e.Addresses[0], fmt.Sprint(*p.Port)), nil
				}
			}
		}
	}
	return "", fmt.Errorf("service %s/%s has no pod that is ready", namespace, service)
}
