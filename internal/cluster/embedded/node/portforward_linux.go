package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/vishvananda/netns"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// forwardTimeout is how long a connection to a pod's port may take, which is on the same machine.
const forwardTimeout = 10 * time.Second

// servePortForward connects a client with ports of a pod.
func (n *Node) servePortForward(w http.ResponseWriter, r *http.Request) error {
	p := n.find(r.PathValue("namespace") + "/" + r.PathValue("pod"))
	if p == nil {
		return notFound("pod %s/%s is not on this node", r.PathValue("namespace"), r.PathValue("pod"))
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		return statusError{err, http.StatusBadRequest}
	}
	portforward.ServePortForward(w, r, p, p.key, "", options, streamIdleTimeout, streamCreationTimeout, portforward.SupportedProtocols)
	return nil
}

// lastWords is how long a server may say something once its client is through.
const lastWords = 10 * time.Second

// PortForward copies between a client's stream and a port of the pod, until the server ends, or its client and it has had its last words.
func (p *pod) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	p.mu.Lock()
	started := p.status.PodIP != ""
	p.mu.Unlock()
	if !started || p.idle {
		return fmt.Errorf("nothing runs in pod %s", p.key)
	}
	conn, err := p.endpoint.dial(ctx, port)
	if err != nil {
		return fmt.Errorf("pod %s: %w", p.key, err)
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(lastWords))
	}()
	_, err = io.Copy(stream, conn)
	return err
}

// dial connects to a port of the pod from inside of it, where servers that listen on the loopback interface alone are reached, too.
func (e *endpoint) dial(ctx context.Context, port int32) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	dialled := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread, which is in the pod's namespace, ends with the goroutine
		if err := e.enter(); err != nil {
			dialled <- result{nil, err}
			return
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
		dialled <- result{conn, err}
	}()
	r := <-dialled
	return r.conn, r.err
}

// enter takes the calling thread into the pod's network namespace.
func (e *endpoint) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fmt.Errorf("the pod has ended")
	}
	if err := netns.Set(e.handle); err != nil {
		return fmt.Errorf("enter the pod's network namespace: %w", err)
	}
	return nil
}
