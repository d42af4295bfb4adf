package observe

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/olmkit/olmkit/internal/cluster"
)

// answering is a cluster whose API server is at a URL.
type answering struct {
	cluster.Cluster
	url string
}

func (a answering) Config() *rest.Config { return &rest.Config{Host: a.url, BearerToken: "secret"} }

// A port is reached unless the API server itself says that nobody is there. Where a server sends its clients, nobody goes.
func TestReached(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("somebody went where a server sends its clients") }))
	defer elsewhere.Close()
	status := func(message string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":"ServiceUnavailable","code":503}`, message)
	}
	answers := map[string]func(http.ResponseWriter){
		"80": func(w http.ResponseWriter) { fmt.Fprint(w, "hello") },
		"81": func(w http.ResponseWriter) {
			http.Error(w, status(`error trying to reach service: dial tcp 10.0.0.1:81: connect: connection refused`), http.StatusServiceUnavailable)
		},
		"82": func(w http.ResponseWriter) {
			http.Error(w, status(`no endpoints available for service "a"`), http.StatusServiceUnavailable)
		},
		"83": func(w http.ResponseWriter) {
			http.Error(w, status(`error trying to reach service: net/http: HTTP/1.x transport connection broken: malformed HTTP response "-ERR"`), http.StatusServiceUnavailable)
		},
		"84": func(w http.ResponseWriter) {
			http.Error(w, "connection refused by policy", http.StatusServiceUnavailable)
		}, // the server's own
		"85": func(w http.ResponseWriter) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusFound)
		},
		"86": func(w http.ResponseWriter) { // it never ends
			for range 1 << 20 {
				if _, err := fmt.Fprint(w, strings.Repeat("x", 1<<10)); err != nil {
					return
				}
			}
		},
		"87": func(w http.ResponseWriter) {
			http.Error(w, status(`services "a:87" is forbidden: no right to proxy`), http.StatusForbidden)
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		port := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/n/services/a:"), "/proxy/")
		if answers[port] == nil || r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
			return
		}
		answers[port](w)
	}))
	defer server.Close()
	var ports []any
	for port := range int64(8) {
		ports = append(ports, map[string]any{"port": 80 + port})
	}
	service := func(name string, spec map[string]any) Operand {
		return Operand{Kind: KindService, Namespace: "n", Name: name, Content: map[string]any{"spec": spec}}
	}
	operands := map[string]Operand{
		"Service/n/a": service("a", map[string]any{"selector": map[string]any{"app": "a"}, "ports": append(ports, map[string]any{"port": int64(53), "protocol": "UDP"})}),
		"Service/n/b": service("b", map[string]any{"ports": ports}), // whoever makes its endpoints
		"Pod/n/a":     {Kind: "Pod"},
	}
	got, err := (&Cluster{Provider: answering{url: server.URL}}).Reached(t.Context(), operands)
	want := map[ServicePort]bool{}
	for port := range int32(8) {
		want[ServicePort{"Service/n/a", 80 + port}] = !slices.Contains([]int32{81, 82, 87}, 80+port)
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v\n%v\n%v", err, got, want)
	}
}

// What is posted goes nowhere else, whatever the server answers, and no answer is read to an end that never comes.
func TestPost(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for", r.URL) }))
	defer other.Close()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string // of the error; "" for none
	}{
		"an answer": {func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }, ""},
		"a redirection": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "it answers 307"},
		"the API server's": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"kind":"Status","message":"no endpoints available"}`))
		}, "no endpoints available"},
	} {
		server := httptest.NewServer(c.answer)
		said, err := Post(t.Context(), &rest.Config{Host: server.URL, BearerToken: "secret"}, "n", "https:s:443", "/convert", []byte("document"))
		if c.want == "" && (err != nil || string(said) != "document") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %q, %v", name, said, err)
		}
		server.Close()
	}
}

// Who names the Service does not choose what else the API server is asked for.
func TestPostElsewhere(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for", r.URL) }))
	defer server.Close()
	for _, of := range [][3]string{{"n", "https:/../../../kube-system/services/https:other:443/proxy/admin:443", "/convert"}, {"n/../m", "https:s:443", "/"}, {"n", "https:s:443", "/../../../../nodes"}, {"n", "https:s%2F..:443", "/"}} {
		if _, err := Post(t.Context(), &rest.Config{Host: server.URL}, of[0], of[1], of[2], nil); err == nil {
			t.Errorf("%q is posted", of)
		}
	}
}
