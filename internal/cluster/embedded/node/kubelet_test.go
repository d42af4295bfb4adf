//go:build linux

package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	streaming "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/utils/ptr"
)

// serve serves handler as the node serves logs and commands, with handler in place of the node's own unless it is nil.
func serve(t *testing.T, n *Node, handler http.HandlerFunc) *url.URL {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config = n.kubeletServer()
	if handler != nil {
		server.Config.Handler = handler
	}
	server.Listener = watchedListener{server.Listener, netip.MustParseAddr("127.0.0.1")}
	server.StartTLS()
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A client at another address than the API server's is sent away before it says anything.
func TestOtherClients(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		if conn, err := (watchedListener{listener, netip.MustParseAddr("127.0.0.1")}).Accept(); err == nil {
			accepted <- conn
		}
	}()
	dial := func(from string) net.Conn {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	if _, err := dial("127.0.0.2").Read(make([]byte, 1)); err == nil {
		t.Error("somebody answers")
	}
	dial("127.0.0.1")
	(<-accepted).Close()
}

func insecureClient(t *testing.T) *http.Client {
	t.Helper()
	client, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func get(t *testing.T, u *url.URL, path string) (int, string) {
	t.Helper()
	response, err := insecureClient(t).Get(u.String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestServeLogs(t *testing.T) {
	n := testNode(t)
	p := testPod(t)
	p.key = "n/p"
	c := newContainer(p, &corev1.Container{Name: "c"}, false)
	p.containers = map[string]*container{"c": c}
	n.pods["n/p"] = p
	fmt.Fprint(c.log, "one\ntwo\nthree\n")
	u := serve(t, n, nil)
	for _, test := range []struct {
		path   string
		status int
		want   string
	}{
		{"n/p/c", 200, "one\ntwo\nthree\n"},
		{"n/p/c?tailLines=1", 200, "three\n"},
		{"n/p/c?tailLines=9223372036854775807&sinceSeconds=9223372036854775807", 200, "one\ntwo\nthree\n"},
		{"n/p/c?limitBytes=5", 200, "one\nt"},
		{"n/p/c?sinceTime=2100-01-01T00:00:00Z", 200, ""},
		{"n/p/c?tailLines=0", 200, ""},
		{"n/p/c?limitBytes=5&follow=true", 200, "one\nt"},
		{"n/p/c?previous=true", 404, "container c of pod n/p has not run before\n"},
		{"n/p/d", 404, "pod n/p has no container d\n"},
		{"n/q/c", 404, "pod n/q is not on this node\n"},
		{"n/p/c?tailLines=-1", 400, "tailLines is \"-1\": give a whole number, at least 0\n"},
		{"n/p/c?limitBytes=0&follow=x", 400, "follow is \"x\": give true or false\nlimitBytes is \"0\": give a whole number, at least 1\n"},
		{"n/p/c?sinceSeconds=1&sinceTime=2100-01-01T00:00:00Z", 400, "both sinceSeconds and sinceTime are set: give one of them\n"},
		{"n/p/c?sinceTime=today", 400, "sinceTime is \"today\": give a time such as 2006-01-02T15:04:05Z07:00\n"},
	} {
		if status, body := get(t, u, "/containerLogs/"+test.path); status != test.status || body != test.want {
			t.Errorf("%s: %d %q, want %d %q", test.path, status, body, test.status, test.want)
		}
	}
	response, err := insecureClient(t).Get(u.String() + "/containerLogs/n/p/c?tailLines=1&follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	followed := bufio.NewScanner(response.Body)
	for _, want := range []string{"three", "four"} {
		if !followed.Scan() || followed.Text() != want {
			t.Fatalf("the log that is followed has %q, %v, want %s", followed.Text(), followed.Err(), want)
		}
		fmt.Fprintln(c.log, "four")
		_ = c.log.Close()
	}
	for path, want := range map[string]int{"/pods": 404, "/attach/n/p/c": 501, "/portForward/n/q": 404, "/exec/n/q/c?command=x&output=1": 404, "/exec/n/p/c?command=x": 400} {
		if status, body := get(t, u, path); status != want {
			t.Errorf("%s: %d %q, want %d", path, status, body, want)
		}
	}
}

// executors are the two protocols by which the API server may pass on a command.
func executors(t *testing.T, u *url.URL) map[string]remotecommand.Executor {
	t.Helper()
	config := &rest.Config{Host: u.Host, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, u)
	if err != nil {
		t.Fatal(err)
	}
	websocket, err := remotecommand.NewWebSocketExecutorForProtocols(config, http.MethodGet, u.String(), streaming.StreamProtocolV4Name)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]remotecommand.Executor{"SPDY": spdy, "WebSocket": websocket}
}

func TestServeExec(t *testing.T) {
	ended := make(chan struct{}, 1)
	command := executor(func(ctx context.Context, command []string, in io.Reader, out, errOut io.Writer) (int, error) {
		switch command[0] {
		case "echo":
			_, err := io.CopyN(out, in, int64(len("a word")))
			fmt.Fprint(errOut, "an error")
			return 7, err
		case "wait":
			fmt.Fprint(out, "waiting")
			<-ctx.Done()
			ended <- struct{}{}
		}
		return 0, errors.New("it can't be run")
	})
	u := serve(t, testNode(t), func(w http.ResponseWriter, r *http.Request) {
		options, err := streaming.NewOptions(r)
		if err != nil {
			t.Error(err)
			return
		}
		streaming.ServeExec(w, r, command, "n/p", "", "c", r.URL.Query()["command"], options, time.Minute, time.Minute, streaming.SupportedStreamingProtocols)
	})
	u.RawQuery = "command=echo&input=1&output=1&error=1"
	for name, e := range executors(t, u) {
		var out, errOut strings.Builder
		err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("a word"), Stdout: &out, Stderr: &errOut})
		var exit exec.CodeExitError
		if !errors.As(err, &exit) || exit.Code != 7 || out.String() != "a word" || errOut.String() != "an error" {
			t.Errorf("%s: %v %q %q", name, err, out.String(), errOut.String())
		}
	}
	u.RawQuery = "command=none&output=1"
	for name, e := range executors(t, u) {
		if err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard}); err == nil || !strings.Contains(err.Error(), "it can't be run") {
			t.Errorf("%s: %v", name, err)
		}
	}
	u.RawQuery = "command=wait&output=1"
	for name, e := range executors(t, u) {
		ctx, leave := context.WithCancel(t.Context())
		out, in := io.Pipe()
		go func() { _ = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: in}) }()
		if _, err := io.ReadFull(out, make([]byte, len("waiting"))); err != nil {
			t.Fatal(err)
		}
		leave()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Errorf("%s: the command goes on though its client has left", name)
		}
	}
}

// TestRegister has the Node be new, known, and known with another status.
func TestRegister(t *testing.T) {
	n := testNode(t)
	nodes := n.config.Client.CoreV1().Nodes()
	for _, before := range []*corev1.Node{nil, {}, {Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}}}} {
		if before != nil {
			before.Name = "embedded"
			if _, err := nodes.Update(t.Context(), before, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.register(t.Context(), n.object()); err != nil {
			t.Fatal(err)
		}
		node, err := nodes.Get(t.Context(), "embedded", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(node.Status.Conditions) != 4 || node.Labels[corev1.LabelHostname] != "embedded" {
			t.Errorf("the Node is %+v", node)
		}
		for _, c := range node.Status.Conditions {
			if (c.Type == corev1.NodeReady) != (c.Status == corev1.ConditionTrue) {
				t.Errorf("its condition %s is %s", c.Type, c.Status)
			}
		}
	}
}

func TestRenewLease(t *testing.T) {
	n := testNode(t)
	n.config.Client = fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "embedded", UID: "u"}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		n.renewLease(ctx)
		close(done)
	}()
	waitFor(t, "the node has a Lease that the Node owns", func() bool {
		lease, err := n.config.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "embedded", metav1.GetOptions{})
		return err == nil && ptr.Deref(lease.Spec.LeaseDurationSeconds, 0) == leaseSeconds && lease.OwnerReferences[0].UID == "u"
	})
	cancel()
	<-done
}
