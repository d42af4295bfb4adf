package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/olmkit/olmkit/internal/compare"
)

// reachTimeout is how long a server has to refuse a connection, and reaching how many are asked at the same time.
const (
	reachTimeout = 2 * time.Second
	reaching     = 8
)

// ServicePort is a port of a Service, which is named as findings do.
type ServicePort struct {
	Service string
	Port    int32
}

// Reached tells at which TCP ports of the Services among operands something takes connections. The API server's proxy
// connects to what a Service's endpoints are. What it says to the server need not be what that expects: any answer, and none, is one of
// something that took the connection.
func (c *Cluster) Reached(ctx context.Context, operands map[string]Operand) (map[ServicePort]bool, error) {
	api, err := connectProxy(c.Provider.Config())
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	reached := map[ServicePort]bool{}
	var group errgroup.Group
	group.SetLimit(reaching)
	for _, o := range operands {
		for _, port := range o.tcpPorts() {
			group.Go(func() error {
				said, _, err := api.get(ctx, answerSize, o.Namespace, "services", fmt.Sprintf("%s:%d", o.Name, port), "proxy/")
				mu.Lock()
				defer mu.Unlock()
				reached[ServicePort{o.String(), port}] = errors.Is(err, context.DeadlineExceeded) || err == nil && !notReached(said)
				return nil
			})
		}
	}
	_ = group.Wait()
	return reached, ctx.Err()
}

// WithOwnServices are operands and the Services with a selector in the operator's namespace, as of its metrics, on a cluster that is the walk's
// own: nobody else has any there.
func (c *Cluster) WithOwnServices(ctx context.Context, operands map[string]Operand) (map[string]Operand, error) {
	if !c.Provider.Disposable() {
		return operands, nil
	}
	services, err := c.Dynamic.Resource(OperandResource(KindService)).Namespace(c.Place.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Services of the operator's namespace: %w", err)
	}
	all := maps.Clone(operands)
	for _, s := range services.Items {
		o := Operand{Kind: KindService, Namespace: s.GetNamespace(), Name: s.GetName(), Content: compare.Content(s.Object)}
		if _, known := all[o.String()]; !known && s.GetDeletionTimestamp() == nil && !slices.ContainsFunc(s.GetOwnerReferences(), madeByPod) {
			all[o.String()] = o
		}
	}
	return all, nil
}

// madeByPod reports whether an owner is what operators name that make a Service of their own for themselves, which a newer version may leave.
func madeByPod(owner metav1.OwnerReference) bool {
	return slices.Contains([]string{"Deployment", "ReplicaSet", "Pod", "ConfigMap"}, owner.Kind)
}

// answerSize is how much is read of an answer.
const answerSize = 4 << 10

// proxy is the API server, which connects to pods and Services.
type proxy struct {
	base *url.URL
	http *http.Client
}

func connectProxy(config *rest.Config) (proxy, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return proxy{}, fmt.Errorf("connect to the API server: %w", err)
	}
	authorized, err := rest.HTTPClientFor(config)
	if err != nil {
		return proxy{}, fmt.Errorf("connect to the API server: %w", err)
	}
	// Where a server sends its clients, nobody goes with the administrator's credentials.
	return proxy{base, &http.Client{Transport: authorized.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// in is the address of something in a namespace.
func (p proxy) in(namespace string, path ...string) *url.URL {
	return p.base.JoinPath("api/v1/namespaces", namespace).JoinPath(path...)
}

// get returns the first size bytes of the answer at a path in a namespace, and its status.
func (p proxy) get(ctx context.Context, size int64, namespace string, path ...string) (answer []byte, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.in(namespace, path...).String(), nil)
	if err != nil {
		return nil, 0, err
	}
	return beginning(p.http, request, size)
}

// postSize is how much is read of the answer to what is posted.
const postSize = 64 << 20

// Post posts a JSON document by the API server's proxy to a path of a Service, which is named as the proxy does (https:NAME:PORT), and returns the answer. One that is not of the status 200
// is an error.
func Post(ctx context.Context, config *rest.Config, namespace, service, path string, document []byte) ([]byte, error) {
	api, err := connectProxy(config)
	if err != nil {
		return nil, err
	}
	at := api.in(namespace, "services", service, "proxy", path)
	if strings.ContainsAny(namespace+service, "/%?#") || !strings.Contains(at.Path, "/namespaces/"+namespace+"/services/"+service+"/proxy/") {
		return nil, fmt.Errorf("%s of Service %s/%s is not below it", path, namespace, service) // who names it chooses what the API server is asked for
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, status, err := beginning(api.http, request, postSize)
	if err != nil || status == http.StatusOK {
		return answer, err
	}
	var said metav1.Status
	if json.Unmarshal(answer, &said) == nil && said.Message != "" {
		return nil, errors.New(said.Message)
	}
	return nil, fmt.Errorf("it answers %d %s: %.200s", status, http.StatusText(status), answer)
}

// beginning returns the first size bytes of the answer to request, and its status.
func beginning(client *http.Client, request *http.Request, size int64) (answer []byte, status int, err error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	answer, _ = io.ReadAll(io.LimitReader(response.Body, size))
	return answer, response.StatusCode, nil
}

// tcpPorts are the ports of a Service that has endpoints by a selector.
func (o Operand) tcpPorts() []int32 {
	var s corev1.Service
	if o.Kind != KindService || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Content, &s) != nil || len(s.Spec.Selector) == 0 {
		return nil
	}
	var ports []int32
	for _, p := range s.Spec.Ports {
		if isTCP(p.Protocol) {
			ports = append(ports, p.Port)
		}
	}
	return ports
}

// isTCP reports whether a port of the protocol is one of TCP, which is the default.
func isTCP(protocol corev1.Protocol) bool { return protocol == "" || protocol == corev1.ProtocolTCP }

// notReached reports whether the API server says that there was no connection, or that nobody may ask for one (k8s.io/apimachinery v0.36.3
// pkg/util/proxy, k8s.io/kubernetes v1.36.3 pkg/registry/core/service).
func notReached(said []byte) bool {
	var status metav1.Status
	if json.Unmarshal(said, &status) != nil || status.Kind != "Status" {
		return false // it is the server's own
	}
	return slices.ContainsFunc([]string{"connection refused", "no endpoints available", "no route to host", "forbidden"}, func(none string) bool {
		return strings.Contains(status.Message, none)
	})
}
