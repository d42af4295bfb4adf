package existing

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/catalog/registry"
	"github.com/olmkit/olmkit/internal/hint"
)

// catalogSourceLabel is on the pods that OLM makes for a CatalogSource (operator-lifecycle-manager v0.46.0,
// pkg/controller/registry/reconciler/reconciler.go).
const catalogSourceLabel = "olm.catalogSource"

// ServedCatalog reads one package from the registry that serves source: at its address where that can be reached from here, else
// from its pod, through the API server.
func (c *Cluster) ServedCatalog(ctx context.Context, source *v1alpha1.CatalogSource, pkg string) (*catalog.Catalog, error) {
	var direct error
	if source.Spec.Address != "" {
		var read *catalog.Catalog
		if read, direct = registry.Read(ctx, source.Spec.Address, pkg); direct == nil || ctx.Err() != nil {
			return read, direct
		}
	}
	read, err := c.forwardedCatalog(ctx, source, pkg)
	if err != nil {
		if direct != nil {
			err = fmt.Errorf("%w; through the API server: %w", direct, err)
		}
		return nil, hint.With(fmt.Errorf("read CatalogSource %s/%s on the cluster: %w", source.Namespace, source.Name, err),
			"name its content with --catalog, or let the account get services, list pods, and get and create pods/portforward in namespace %s", source.Namespace)
	}
	return read, nil
}

// forwardedCatalog reads a package from the pod that serves source, through a port of this machine.
func (c *Cluster) forwardedCatalog(ctx context.Context, source *v1alpha1.CatalogSource, pkg string) (*catalog.Catalog, error) {
	pod, to, err := c.registryPod(ctx, source)
	if err != nil {
		return nil, err
	}
	address, stop, err := c.forward(ctx, pod, to)
	if err != nil {
		return nil, fmt.Errorf("forward a port to pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	defer stop()
	read, err := registry.Read(ctx, address, pkg)
	if err != nil {
		return nil, fmt.Errorf("at port %d of pod %s/%s: %w", to, pod.Namespace, pod.Name, err)
	}
	return read, nil
}

// registryPod finds a pod that serves source, and the port.
func (c *Cluster) registryPod(ctx context.Context, source *v1alpha1.CatalogSource) (*corev1.Pod, int, error) {
	if source.Spec.Address == "" {
		pod, err := c.podOf(ctx, source.Namespace, labels.Set{catalogSourceLabel: source.Name}.String(), "")
		return pod, port, err
	}
	host, number, err := net.SplitHostPort(source.Spec.Address)
	if err != nil {
		return nil, 0, fmt.Errorf("spec.address %q: %w", source.Spec.Address, err)
	}
	to, err := strconv.Atoi(number)
	if err != nil {
		return nil, 0, fmt.Errorf("spec.address %q: %w", source.Spec.Address, err)
	}
	if net.ParseIP(host) != nil {
		pod, err := c.podOf(ctx, source.Namespace, "", host)
		return pod, to, err
	}
	name, rest, _ := strings.Cut(host, ".")
	namespace, _, _ := strings.Cut(rest, ".")
	service, err := c.client.CoreV1().Services(cmp.Or(namespace, source.Namespace)).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, 0, fmt.Errorf("get the Service that spec.address %q names: %w", source.Spec.Address, err)
	}
	if len(service.Spec.Selector) == 0 {
		return nil, 0, fmt.Errorf("service %s/%s, which spec.address names, selects no pods", service.Namespace, service.Name)
	}
	pod, err := c.podOf(ctx, service.Namespace, labels.Set(service.Spec.Selector).String(), "")
	if err != nil {
		return nil, 0, err
	}
	return pod, targetPort(service, pod, to), nil
}

// podOf returns a pod that is ready, of those in namespace that selector selects, with the given address unless that is "".
func (c *Cluster) podOf(ctx context.Context, namespace, selector, ip string) (*corev1.Pod, error) {
	pods, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the pods in namespace %s: %w", namespace, err)
	}
	ready := func(p corev1.Pod) bool {
		return (ip == "" || p.Status.PodIP == ip) && p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	}
	i := slices.IndexFunc(pods.Items, ready)
	if i < 0 {
		return nil, fmt.Errorf("no pod of namespace %s that serves it is ready", namespace)
	}
	return &pods.Items[i], nil
}

// targetPort is the port of pod to which service leads its own.
func targetPort(service *corev1.Service, pod *corev1.Pod, from int) int {
	for _, p := range service.Spec.Ports {
		switch {
		case int(p.Port) != from:
		case p.TargetPort.Type == intstr.String:
			for _, container := range pod.Spec.Containers {
				for _, at := range container.Ports {
					if at.Name == p.TargetPort.StrVal {
						return int(at.ContainerPort)
					}
				}
			}
		case p.TargetPort.IntVal != 0:
			return int(p.TargetPort.IntVal)
		}
	}
	return from
}

// forward returns an address of this machine that leads to a port of pod until stop is called, as 'kubectl port-forward' does.
func (c *Cluster) forward(ctx context.Context, pod *corev1.Pod, to int) (address string, stop func(), err error) {
	url := c.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return "", nil, err
	}
	websocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, c.config)
	if err != nil {
		return "", nil, err
	}
	dialer := portforward.NewFallbackDialerForStreaming(websocket, spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url), func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	end, ready, failed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", to)}, end, ready, io.Discard, io.Discard)
	if err != nil {
		return "", nil, err
	}
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return "", nil, err
	case <-ctx.Done():
		close(end)
		return "", nil, ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(end)
		return "", nil, err
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), func() { close(end); <-failed }, nil
}
