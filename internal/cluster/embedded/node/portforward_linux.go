package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
	"k8s.io/cri-streaming/pkg/streaming/portforward"

	"github.com/olmkit/olmkit/internal/cluster/embedded/sandbox"
)

// forwardTimeout is how long a connection to a pod's port may take, which is on the same machine.
const forwardTimeout = 10 * time.Second

// servePortForward connects a client with ports of a pod.
func (n *Node) servePortForward(w http.ResponseWriter, r *http.Request) error {
	p, err := n.requestedPod(r)
	if err != nil {
		return err
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
func (e *endpoint) dial(ctx context.Context, port int32) (conn net.Conn, err error) {
	handle, err := e.duplicate()
	if err != nil {
		return nil, err
	}
	defer func() { _ = handle.Close() }()
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	err = sandbox.InNetwork(handle, func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
		return err
	})
	return conn, err
}

// duplicate returns a handle of the pod's network namespace that stays open when the pod ends.
func (e *endpoint) duplicate() (netns.NsHandle, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return netns.None(), errors.New("the pod has ended")
	}
	fd, err := unix.FcntlInt(uintptr(e.handle), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return netns.None(), fmt.Errorf("keep the pod's network namespace: %w", err)
	}
	return netns.NsHandle(fd), nil
}
