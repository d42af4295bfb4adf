package existing

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/catalog/registry"
	"github.com/olmkit/olmkit/internal/hint"
)

const tea = `{"schema":"olm.package","name":"tea","defaultChannel":"stable"}
{"schema":"olm.channel","package":"tea","name":"stable","entries":[{"name":"tea.v1"},{"name":"tea.v2","replaces":"tea.v1"}]}
{"schema":"olm.bundle","package":"tea","name":"tea.v1","image":"example.com/tea:v1","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"tea","name":"tea.v2","image":"example.com/tea:v2","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"2.0.0"}}]}
`

// podsOnly is an API server with the pods that serve a catalog at address, and with a Service of them. Who may not forward ports is
// told so.
type podsOnly struct {
	t         *testing.T
	address   string
	forwards  bool
	mu        sync.Mutex
	forwarded []string // the ports of the pod
}

func (p *podsOnly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/olm/"); {
	case path == "services/tea":
		s := corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"olm.catalogSource": "tea"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("grpc")}}}}
		s.APIVersion, s.Kind, s.Name, s.Namespace = "v1", "Service", "tea", "olm"
		p.answer(w, http.StatusOK, s)
	case path == "pods":
		all := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for i, ready := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: fmt.Sprintf("tea-%d", i)}}
			pod.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "grpc", ContainerPort: 50051}}}}
			pod.Status.PodIP, pod.Status.Conditions = "127.0.0.9", []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
			all.Items = append(all.Items, pod)
		}
		if s := r.URL.Query().Get("labelSelector"); s != "" && s != "olm.catalogSource=tea" {
			all.Items = nil
		}
		p.answer(w, http.StatusOK, all)
	case path == "pods/tea-1/portforward" && !p.forwards:
		p.answer(w, http.StatusForbidden, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "you may not forward ports"})
	case path == "pods/tea-1/portforward" && r.Method == http.MethodPost:
		p.forward(w, r)
	default: // also a WebSocket, which older API servers do not have here
		http.NotFound(w, r)
	}
}

func (p *podsOnly) answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		p.t.Error(err)
	}
}

// forward leads each data stream to the address.
func (p *podsOnly) forward(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		p.t.Error(err)
		return
	}
	streams := make(chan httpstream.Stream, 10)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	})
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	for {
		select {
		case <-conn.CloseChan():
			return
		case stream := <-streams:
			if stream.Headers().Get(corev1.StreamType) != corev1.StreamTypeData {
				_ = stream.Close()
				continue
			}
			p.mu.Lock()
			p.forwarded = append(p.forwarded, stream.Headers().Get(corev1.PortHeader))
			p.mu.Unlock()
			to, err := net.Dial("tcp", p.address)
			if err != nil {
				p.t.Error(err)
				return
			}
			go func() { _, _ = io.Copy(to, stream); _ = to.Close() }()
			go func() { _, _ = io.Copy(stream, to); _ = stream.Close() }()
		}
	}
}

// TestServedCatalog: a catalog is read at its address, or from its pod where that cannot be reached. What cannot be read is told with
// the rights that it takes, and what does without them.
func TestServedCatalog(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	loaded := catalog.Parse("tea.json", []byte(tea))
	go func() { _ = registry.Serve(t.Context(), listener, loaded) }()
	for name, test := range map[string]struct {
		address string // of the CatalogSource
		denied  bool
		ports   string // that were forwarded
		err     string
	}{
		"at its address":               {address: listener.Addr().String(), denied: true},
		"of OLM's pod":                 {ports: "[50051]"},
		"by the pod's address":         {address: "127.0.0.9:7", ports: "[7]"},
		"by the Service":               {address: "tea.olm.svc:80", ports: "[50051]"},
		"nobody may forward ports":     {denied: true, err: "you may not forward ports"},
		"a Service that is not there":  {address: "coffee.olm.svc:80", err: "coffee.olm.svc:80"},
		"an address that nobody has":   {address: "127.0.0.8:7", err: "no pod of namespace olm that serves it is ready"},
		"an address that is not valid": {address: "tea", err: "missing port"},
	} {
		t.Run(name, func(t *testing.T) {
			api := &podsOnly{t: t, address: listener.Addr().String(), forwards: !test.denied}
			server := httptest.NewServer(api)
			config := &rest.Config{Host: server.URL}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "tea"}, Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: test.address}}
			read, err := (&Cluster{client: client, config: config}).ServedCatalog(t.Context(), source, "tea")
			server.Close()
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || !strings.Contains(err.Error(), "CatalogSource olm/tea") || !strings.Contains(hint.Of(err), "--catalog") || !strings.Contains(hint.Of(err), "pods/portforward") {
					t.Errorf("%v (%s)", err, hint.Of(err))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p := read.Find("tea"); p == nil || len(p.Bundles) != 2 || p.Channel("stable").Entry("tea.v2").Replaces != "tea.v1" {
				t.Errorf("it reads %+v", p)
			}
			api.mu.Lock()
			defer api.mu.Unlock()
			if got := fmt.Sprint(api.forwarded); test.ports != "" && got != test.ports {
				t.Errorf("the ports %s were forwarded, want %s", got, test.ports)
			}
		})
	}
}
