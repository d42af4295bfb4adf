package observe

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Metrics is what an operator's pods answer at /metrics.
type Metrics struct {
	Port     string              // where they were read, as https:8443; "" for nowhere
	Service  string              // that leads there, "" for none
	Open     string              // where they are for whoever asks, as Port; "" for nowhere
	Refused  string              // what one said who asks for a token to who has one and may read them, "" if none refused
	Families map[string][]string // the labels that the series of each metric have, sorted
	Stale    []string            // the metrics of which a series names an object that is gone, sorted
}

const (
	// metricsSize is how much is read of metrics.
	metricsSize = 8 << 20
	// metricsReader is the ServiceAccount that may read metrics, and nothing else, and what gives it that right.
	metricsReader, metricsReaderNamespace = "olmkit-metrics-reader", metav1.NamespaceDefault
	// MetricsPath is where metrics are, by the convention of Prometheus.
	MetricsPath = "/metrics"
)

// Metrics reads the metrics of r's operator at the ports that its pods declare and that Services lead to; gone are the names of objects that are gone. It makes a ServiceAccount for that, so it reads
// none on a cluster that is not the walk's own.
func (c *Cluster) Metrics(ctx context.Context, r *lifecycle.Release, gone []string) (Metrics, error) {
	read := Metrics{Families: map[string][]string{}}
	if !c.Provider.Disposable() || !c.OperatorRuns(r) {
		return read, nil
	}
	var pods corev1.PodList
	var services corev1.ServiceList
	for _, list := range []client.ObjectList{&pods, &services} {
		if err := c.Client.List(ctx, list, client.InNamespace(c.Place.Namespace)); err != nil {
			return read, fmt.Errorf("list what serves metrics in namespace %s: %w", c.Place.Namespace, err)
		}
	}
	api, err := connectProxy(c.Provider.Config())
	if err != nil {
		return read, err
	}
	s := scraper{config: c.Provider.Config(), client: c.Client, api: api, gone: gone}
	known := c.Watcher.OperatorPods()
	for i := range pods.Items {
		p := &pods.Items[i]
		if known[p.Name].Release != r.Name || p.DeletionTimestamp != nil || !podReady(p) {
			continue
		}
		ports := metricsPorts(p, services.Items)
		for _, port := range slices.Sorted(maps.Keys(ports)) {
			found, err := s.read(ctx, p, port, &read)
			if err != nil {
				return read, err
			}
			if found {
				read.Service = cmp.Or(read.Service, ports[port])
			}
		}
	}
	return read, ctx.Err()
}

// metricsPorts are the TCP ports at which others may find a pod, each with a Service that leads there, "" for none.
func metricsPorts(p *corev1.Pod, services []corev1.Service) map[int32]string {
	ports := map[int32]string{}
	named := map[string]int32{}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, port := range c.Ports {
			if isTCP(port.Protocol) {
				ports[port.ContainerPort], named[port.Name] = "", port.ContainerPort
			}
		}
	}
	for _, s := range services {
		if len(s.Spec.Selector) == 0 || !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels)) {
			continue
		}
		for _, port := range s.Spec.Ports {
			target := cmp.Or(port.TargetPort.IntVal, named[port.TargetPort.StrVal])
			if target == 0 && port.TargetPort.StrVal == "" {
				target = port.Port
			}
			if target != 0 && isTCP(port.Protocol) {
				ports[target] = cmp.Or(ports[target], s.Name)
			}
		}
	}
	return ports
}

// scraper reads metrics as Prometheus does: with a token, and, to see whether it needs one, without.
type scraper struct {
	config *rest.Config
	client client.Client
	api    proxy
	gone   []string
	token  string
}

// read adds to metrics what a port of a pod answers, and reports whether it has any. What does not answer has none.
func (s *scraper) read(ctx context.Context, p *corev1.Pod, port int32, metrics *Metrics) (bool, error) {
	for _, scheme := range []string{"https", "http"} {
		// The API server's proxy passes no token on.
		answer, status, err := s.api.get(ctx, metricsSize, p.Namespace, "pods", fmt.Sprintf("%s:%s:%d", scheme, p.Name, port), "proxy", MetricsPath)
		if err != nil {
			continue
		}
		open := status == http.StatusOK
		if status == http.StatusUnauthorized || status == http.StatusForbidden {
			if err := s.authenticate(ctx); err != nil {
				return false, err
			}
			if answer, status, err = s.authorized(ctx, p, scheme, port); err != nil {
				continue
			}
			if status != http.StatusOK {
				metrics.Refused = fmt.Sprintf("%d %s", status, http.StatusText(status))
				return false, nil
			}
		}
		families, stale, err := familiesOf(answer, s.gone)
		if status != http.StatusOK || err != nil || len(families) == 0 {
			continue
		}
		metrics.Port = fmt.Sprintf("%s:%d", scheme, port)
		if open {
			metrics.Open = metrics.Port
		}
		for name, labels := range families {
			metrics.Families[name] = sortedSet(append(labels, metrics.Families[name]...))
		}
		metrics.Stale = sortedSet(append(metrics.Stale, stale...))
		return true, nil
	}
	return false, ctx.Err()
}

// authorized is what a port answers to who has a token and may read metrics.
func (s *scraper) authorized(ctx context.Context, p *corev1.Pod, scheme string, port int32) (answer []byte, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return s.dial(p, port) },
		// Most sign their own certificate; the token is good for metrics alone, and the connection leads to the pod.
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		TLSHandshakeTimeout: reachTimeout, DisableKeepAlives: true,
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://%s:%d%s", scheme, p.Name, port, MetricsPath), nil)
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	return beginning(&http.Client{Transport: transport, CheckRedirect: s.api.http.CheckRedirect}, request, metricsSize)
}

// dial connects to a port of a pod as kubectl port-forward does.
func (s *scraper) dial(p *corev1.Pod, port int32) (net.Conn, error) {
	transport, upgrader, err := spdy.RoundTripperFor(s.config)
	if err != nil {
		return nil, err
	}
	url := s.api.in(p.Namespace, "pods", p.Name, "portforward")
	connection, _, err := spdy.NewDialer(upgrader, &http.Client{Transport: transport, Timeout: reachTimeout}, http.MethodPost, url).Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := connection.CreateStream(headers)
	if err == nil {
		err = failures.Close() // nothing is written to it
	}
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	near, far := net.Pipe()
	go func() {
		_, _ = io.Copy(far, data)
		_ = far.Close()
	}()
	go func() {
		_, _ = io.Copy(data, far)
		_ = connection.Close()
	}()
	return near, nil
}

// authenticate makes who may read metrics, unless it was made before, and gets a token for it.
func (s *scraper) authenticate(ctx context.Context) error {
	if s.token != "" {
		return nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metricsReaderNamespace, Name: metricsReader}}
	name := metav1.ObjectMeta{Name: metricsReader}
	for _, o := range []client.Object{
		account.DeepCopy(),
		&rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{MetricsPath}, Verbs: []string{"get"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsReader},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metricsReaderNamespace, Name: metricsReader}},
		},
	} {
		if err := s.client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make who reads metrics: %w", err)
		}
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(10 * time.Minute / time.Second))}}
	if err := s.client.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("get a token to read metrics: %w", err)
	}
	s.token = token.Status.Token
	return nil
}

// familiesOf reads the text format of Prometheus; stale are the metrics that have one of gone as the value of a label.
func familiesOf(text []byte, gone []string) (families map[string][]string, stale []string, err error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	read, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	families = map[string][]string{}
	for name, f := range read {
		var labels []string
		for _, series := range f.GetMetric() {
			for _, label := range series.GetLabel() {
				labels = append(labels, label.GetName())
				if slices.Contains(gone, label.GetValue()) {
					stale = append(stale, name)
				}
			}
		}
		families[name] = sortedSet(labels)
	}
	return families, stale, nil
}

func sortedSet(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}
