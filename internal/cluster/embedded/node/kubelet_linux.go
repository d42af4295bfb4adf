package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// What the kubelet gives a client to open the streams of a command, and how long it lets them idle.
const (
	streamCreationTimeout = 30 * time.Second
	streamIdleTimeout     = 4 * time.Hour
)

// serveKubelet serves logs and commands until ctx ends.
func (n *Node) serveKubelet(ctx context.Context, group *errgroup.Group) error {
	listener, err := net.Listen("tcp", netip.AddrPortFrom(n.config.Network.HostAddress(), KubeletPort).String())
	if err != nil {
		return fmt.Errorf("serve logs and commands: %w", err)
	}
	server := n.kubeletServer()
	group.Go(func() error {
		if err := server.ServeTLS(watchedListener{listener, n.config.Network.HostAddress()}, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	return nil
}

// kubeletServer serves what the API server asks a node for on behalf of kubectl.
func (n *Node) kubeletServer() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.ofContainer(serveLogs))
	mux.HandleFunc("GET /exec/{namespace}/{pod}/{container}", n.ofContainer(serveExec))
	mux.HandleFunc("POST /exec/{namespace}/{pod}/{container}", n.ofContainer(serveExec))
	mux.HandleFunc("GET /portForward/{namespace}/{pod}", orError(n.servePortForward))
	mux.HandleFunc("POST /portForward/{namespace}/{pod}", orError(n.servePortForward))
	mux.HandleFunc("/attach/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this node serves logs, exec and port-forward only", http.StatusNotImplemented)
	})
	return &http.Server{Handler: mux, TLSConfig: n.config.KubeletTLS, ReadHeaderTimeout: 10 * time.Second, ConnContext: whileConnected}
}

// statusError is an error with the HTTP status that a client is given for it.
type statusError struct {
	error
	status int
}

func notFound(format string, args ...any) error {
	return statusError{fmt.Errorf(format, args...), http.StatusNotFound}
}

// ofContainer serves requests of which the path names a container.
func (n *Node) ofContainer(serve func(http.ResponseWriter, *http.Request, *container) error) http.HandlerFunc {
	return orError(func(w http.ResponseWriter, r *http.Request) error {
		c, err := n.requested(r)
		if err == nil {
			err = serve(w, r, c)
		}
		return err
	})
}

// orError answers requests that cannot be served with the error.
func orError(serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := serve(w, r)
		if err == nil {
			return
		}
		status := http.StatusInternalServerError
		if known := (statusError{}); errors.As(err, &known) {
			status = known.status
		}
		http.Error(w, err.Error(), status)
	}
}

// requested returns the container that the path of a request names.
func (n *Node) requested(r *http.Request) (*container, error) {
	p, err := n.requestedPod(r)
	if err != nil {
		return nil, err
	}
	c, ok := p.containers[r.PathValue("container")]
	if !ok {
		return nil, notFound("pod %s has no container %s", p.key, r.PathValue("container"))
	}
	return c, nil
}

// requestedPod returns the pod that the path of a request names.
func (n *Node) requestedPod(r *http.Request) (*pod, error) {
	key := r.PathValue("namespace") + "/" + r.PathValue("pod")
	p := n.find(key)
	if p == nil {
		return nil, notFound("pod %s is not on this node", key)
	}
	return p, nil
}

func serveLogs(w http.ResponseWriter, r *http.Request, c *container) error {
	query, err := parseLogQuery(r.URL.Query())
	if err != nil {
		return err
	}
	c.pod.mu.Lock()
	log := c.log
	if query.previous {
		log = c.previousLog
	}
	c.pod.mu.Unlock()
	if log == nil {
		return notFound("container %s of pod %s has not run before", c.spec.Name, c.pod.key)
	}
	w.Header().Set("Content-Type", "text/plain")
	_ = log.copy(r.Context(), &logWriter{w, query.follow, query.limit}, query.logOptions) // it fails if the client has left or has enough
	return nil
}

// logQuery is what a client asks for of a container's logs, as corev1.PodLogOptions has it.
type logQuery struct {
	logOptions
	previous bool
	limit    *int64 // of bytes
}

func parseLogQuery(values url.Values) (logQuery, error) {
	var errs []error
	number := func(name string, least int64) *int64 {
		text := values.Get(name)
		if text == "" {
			return nil
		}
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil || value < least {
			errs = append(errs, fmt.Errorf("%s is %q: give a whole number, at least %d", name, text, least))
		}
		return &value
	}
	flag := func(name string) bool {
		text := values.Get(name)
		value, err := strconv.ParseBool(text)
		if text != "" && err != nil {
			errs = append(errs, fmt.Errorf("%s is %q: give true or false", name, text))
		}
		return value
	}
	query := logQuery{
		logOptions: logOptions{tail: number("tailLines", 0), follow: flag("follow"), timestamps: flag("timestamps")},
		previous:   flag("previous"),
		limit:      number("limitBytes", 1),
	}
	seconds, since := number("sinceSeconds", 1), values.Get("sinceTime")
	switch {
	case seconds != nil && since != "":
		errs = append(errs, errors.New("both sinceSeconds and sinceTime are set: give one of them"))
	case seconds != nil:
		query.since = time.Unix(time.Now().Unix()-*seconds, 0)
	case since != "":
		var err error
		if query.since, err = time.Parse(time.RFC3339, since); err != nil {
			errs = append(errs, fmt.Errorf("sinceTime is %q: give a time such as %s", since, time.RFC3339))
		}
	}
	if len(errs) > 0 {
		return logQuery{}, statusError{errors.Join(errs...), http.StatusBadRequest}
	}
	return query, nil
}

// logWriter writes a log to a client: at once if it follows the log, and no more than limit bytes.
type logWriter struct {
	w      http.ResponseWriter
	follow bool
	limit  *int64
}

func (l *logWriter) Write(p []byte) (int, error) {
	rest := p
	if l.limit != nil {
		rest = p[:min(int64(len(p)), *l.limit)]
		*l.limit -= int64(len(rest))
	}
	written, err := l.w.Write(rest)
	if err == nil && l.follow {
		err = http.NewResponseController(l.w).Flush()
	}
	if err == nil && len(rest) < len(p) {
		err = io.ErrShortWrite
	}
	return written, err
}

func serveExec(w http.ResponseWriter, r *http.Request, c *container) error {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		return statusError{err, http.StatusBadRequest}
	}
	remotecommand.ServeExec(w, r, executor(c.exec), c.pod.key, "", c.spec.Name, r.URL.Query()["command"], options,
		streamIdleTimeout, streamCreationTimeout, remotecommand.SupportedStreamingProtocols)
	return nil
}

// executor runs a client's command and returns its exit code. There are no terminals, so nothing is resized.
type executor func(ctx context.Context, command []string, in io.Reader, out, errOut io.Writer) (int, error)

func (e executor) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader, out, errOut io.WriteCloser,
	tty bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	if tty { // a terminal has one stream for both
		errOut = out
	}
	code, err := e(ctx, command, in, out, errOut)
	if err == nil && code != 0 {
		err = exitError(code)
	}
	return err
}

// exitError is a command's exit code, in the shape in which the streaming protocol passes it on.
type exitError int

func (e exitError) String() string  { return e.Error() }
func (e exitError) Error() string   { return "command terminated with exit code " + strconv.Itoa(int(e)) }
func (e exitError) ExitStatus() int { return int(e) }
func (e exitError) Exited() bool    { return true }

// watchedListener accepts connections that tell when their clients have left. net/http stops to look once a handler has taken the
// connection for itself, as that of a command does; the command is to end with its client. Only the API server, which is at the host's address, is a client: pods could have as many connections as
// the host has files.
type watchedListener struct {
	net.Listener
	client netip.Addr
}

func (l watchedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if from, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err != nil || from.Addr().Unmap() != l.client {
			conn.Close()
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		return &watchedConn{conn, ctx, cancel}, nil
	}
}

// watchedConn is a connection whose context ends when it can't be read any more.
type watchedConn struct {
	net.Conn
	ctx    context.Context
	cancel context.CancelFunc
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.cancel()
	}
	return n, err
}

func (c *watchedConn) Close() error {
	c.cancel()
	return c.Conn.Close()
}

// whileConnected returns a context of requests on a connection, which ends with the connection.
func whileConnected(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	watched, ok := conn.(*watchedConn)
	if !ok {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(watched.ctx, cancel)
	return ctx
}
