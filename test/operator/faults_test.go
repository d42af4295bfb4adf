//go:build linux

package operator_test

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// faults is a way to the API server on which a share of requests and answers is lost, refused or late while it is on.
type faults struct {
	kubeconfig string
	on         atomic.Bool

	mu     sync.Mutex
	random *rand.Rand
	done   map[string]int // how often each kind of fault was done
}

// The kinds of faults, of a hundred requests each this many. What was cut was done, or not: who asked can't know.
var faultShares = []struct {
	name  string
	share int
}{{"429", 3}, {"500", 4}, {"503", 3}, {"409", 4}, {"cut before", 3}, {"cut after", 4}}

// newFaults opens the way; seed decides about what happens on it, so far as requests come in the same order.
func newFaults(t *testing.T, seed uint64) *faults {
	t.Helper()
	f := &faults{random: rand.New(rand.NewPCG(seed, 0)), done: map[string]int{}}
	target, err := url.Parse(world.Config().Host)
	must(t, err)
	transport, err := rest.TransportFor(world.Config())
	must(t, err)
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Query().Get("watch") == "true" {
				r.Body = &slowBody{ReadCloser: r.Body, faults: f, left: 1 + f.number(64<<10)}
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := f.choose(r)
		switch fault {
		case "":
			proxy.ServeHTTP(w, r)
		case "cut before":
			panic(http.ErrAbortHandler)
		case "cut after":
			answer := httptest.NewRecorder()
			proxy.ServeHTTP(answer, r)
			for name, values := range answer.Header() {
				w.Header()[name] = values
			}
			w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
			panic(http.ErrAbortHandler)
		default:
			refuse(w, fault)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	config := clientcmdapi.NewConfig()
	config.Clusters["faults"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["faults"] = &clientcmdapi.Context{Cluster: "faults"}
	config.CurrentContext = "faults"
	f.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, f.kubeconfig))
	return f
}

// choose is the fault that a request meets, "" for none.
func (f *faults) choose(r *http.Request) string {
	if !f.on.Load() || r.URL.Query().Get("watch") == "true" {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.random.IntN(100)
	for _, kind := range faultShares {
		if n -= kind.share; n >= 0 {
			continue
		}
		if kind.name == "409" && r.Method == http.MethodGet {
			return ""
		}
		f.done[kind.name]++
		return kind.name
	}
	return ""
}

func (f *faults) number(most int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(most)
}

func (f *faults) count(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done[name]++
}

// refuse answers as the API server does when it has too much to do, is ill, or finds the object changed.
func refuse(w http.ResponseWriter, code string) {
	status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Message: "a fault of the test"}
	switch code {
	case "429":
		status.Code, status.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
		w.Header().Set("Retry-After", "1")
	case "409":
		status.Code, status.Reason = http.StatusConflict, metav1.StatusReasonConflict
	case "503":
		status.Code, status.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	default:
		status.Code, status.Reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

// slowBody is the answer to a watch, which is late, and cut off after so many bytes, while faults are on.
type slowBody struct {
	io.ReadCloser
	faults *faults
	left   int
}

func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.faults.on.Load() {
		return n, err
	}
	time.Sleep(time.Duration(b.faults.number(int(150 * time.Millisecond))))
	b.faults.count("watch delayed")
	if b.left -= n; b.left < 0 {
		b.faults.count("watch cut")
		return max(0, n+b.left), errors.New("cut off by the test")
	}
	return n, err
}
