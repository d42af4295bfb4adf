package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/catalog/registry"
	"github.com/olmkit/olmkit/internal/cluster/certificates"
	"github.com/olmkit/olmkit/internal/cluster/embedded/node"
	"github.com/olmkit/olmkit/internal/cluster/embedded/relay"
	"github.com/olmkit/olmkit/internal/cluster/embedded/sandbox"
	"github.com/olmkit/olmkit/internal/cluster/embedded/services"
)

// hostArgument makes this program the host of a cluster.
const hostArgument = "olmkit-cluster-host"

// Main does the work of a process inside of a cluster and ends it, if that is what this process was started for. A
// program that starts embedded clusters calls it first thing.
func Main() {
	sandbox.Main()
	if len(os.Args) == 2 && os.Args[1] == hostArgument {
		if err := runHost(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// host is the process that holds a cluster together, inside of its namespaces.
type host struct {
	config hostConfig
	images *node.Images
	plane  *plane
	node   *node.Node
	net    *node.Network

	ready chan struct{} // closed when the cluster is up or failed
	down  context.CancelFunc

	mu       sync.Mutex
	state    state
	catalogs map[string]context.CancelFunc

	faultyConverters map[string]string // URLs by mode

	registry     func() (http.Handler, error) // starts it when first called
	certificates issuing
	imageDelay   atomic.Int64 // of what the registry answers pods
}

func runHost() error {
	h := &host{images: node.NewImages(), ready: make(chan struct{}), catalogs: map[string]context.CancelFunc{}, faultyConverters: map[string]string{}}
	h.registry = sync.OnceValues(h.startRegistry)
	if err := json.NewDecoder(os.Stdin).Decode(&h.config); err != nil {
		return fmt.Errorf("read the cluster's configuration: %w", err)
	}
	unix.CloseOnExec(lockFD)
	if err := raiseLimits(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, h.down = context.WithCancel(ctx)
	defer h.down()

	control, err := fileListener(controlListenerFD)
	if err != nil {
		return err
	}
	api, err := fileListener(apiListenerFD)
	if err != nil {
		return err
	}
	h.certificates.start = func() (stop context.CancelFunc, err error) {
		ctx, stop := context.WithCancel(ctx)
		return stop, certificates.Provide(ctx, h.plane.config(), h.plane.authority)
	}
	server := &http.Server{Handler: h.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(control) }()

	err = h.bringUp(ctx, api)
	h.mu.Lock()
	if err != nil {
		h.state.Error = err.Error()
	}
	h.state.Ready = err == nil
	h.mu.Unlock()
	close(h.ready)
	if err != nil {
		select { // whoever started the cluster asks for the reason, and then ends it
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
		return err
	}
	<-ctx.Done()
	return nil // with this process all others end, and with them the state, which is in memory
}

func fileListener(fd int) (net.Listener, error) {
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	return net.FileListener(f)
}

func (h *host) bringUp(ctx context.Context, api net.Listener) error {
	dir := filepath.Join(h.config.Dir, "state")
	volumes, err := mountState(dir)
	if err != nil {
		return err
	}
	if err := sandbox.Seal(dir); err != nil {
		return err
	}
	for ref, source := range h.config.Images {
		if err := h.images.Load(ref, source); err != nil {
			return err
		}
	}
	if h.net, err = node.NewNetwork(netip.MustParsePrefix(podRange)); err != nil {
		return err
	}
	outside, _, err := net.SplitHostPort(h.config.Server)
	if err != nil {
		return err
	}
	if h.plane, err = startPlane(ctx, h.config, dir, h.net.HostAddress(), []string{outside}); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(h.plane.config())
	if err != nil {
		return err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.state.Kubernetes, h.state.Users = version.GitVersion, node.Users()
	h.mu.Unlock()
	if err := h.serveServices(ctx, client); err != nil {
		return err
	}
	if err := h.startNode(ctx, client, version.GitVersion, volumes); err != nil {
		return err
	}
	if err := clientcmd.WriteToFile(h.plane.kubeconfig(h.config.Server, h.plane.adminToken), kubeconfigPath(h.config.Dir)); err != nil {
		return err
	}
	go relay.Serve(api, nil, func(net.Addr) (string, error) { return h.plane.server(), nil })
	return nil
}

// serveServices gives Services their addresses and names.
func (h *host) serveServices(ctx context.Context, client kubernetes.Interface) error {
	if err := h.net.Own(netip.MustParsePrefix(serviceRange)); err != nil {
		return err
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("read how many files may be open: %w", err)
	}
	return services.Start(ctx, services.Config{
		Client: client, DNS: netip.MustParseAddr(dnsAddress), Pods: netip.MustParsePrefix(podRange), Idle: h.net.Idle, Files: int(files.Cur), // of openFiles at most
	})
}

// startNode starts the node of a cluster with this version of Kubernetes, which keeps persistent volumes at volumes, and waits until it takes pods.
func (h *host) startNode(ctx context.Context, client kubernetes.Interface, version, volumes string) error {
	serving, err := kubeletTLS(h.plane.authority, h.net.HostAddress().String())
	if err != nil {
		return err
	}
	h.node = node.New(node.Config{
		Name: "embedded", Version: version, Client: client, Network: h.net, Images: h.images, Dir: h.plane.dir, Volumes: volumes,
		APIHost: h.net.HostAddress().String(), APIPort: apiPort, DNS: netip.MustParseAddr(dnsAddress), Users: node.Users(), KubeletTLS: serving,
	})
	up, failed := make(chan struct{}), make(chan error, 1)
	go func() { failed <- h.node.Run(ctx, func() { close(up) }) }()
	select {
	case <-up:
		return nil
	case err := <-failed:
		return fmt.Errorf("start the node: %w", err)
	case <-time.After(time.Minute):
		return errors.New("the node did not register within a minute")
	}
}

// mountState mounts the file system of the cluster's state at dir, and below it one for what pods have and one for persistent volumes, whose path it
// returns. Who fills theirs finds it full, and leaves etcd its room and the machine its memory.
func mountState(dir string) (string, error) {
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return "", fmt.Errorf("mount the cluster's state: %w", err)
	}
	for name, size := range map[string]string{node.PodsDir: "50%", "volumes": "25%"} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			return "", err
		}
		if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size="+size); err != nil {
			return "", fmt.Errorf("mount the file system of %s: %w", name, err)
		}
	}
	return filepath.Join(dir, "volumes"), nil
}

// handler answers the control socket.
func (h *host) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			answer, err := f(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			_ = json.NewEncoder(w).Encode(answer)
		})
	}
	handle("GET /state", h.answerState)
	handle("PUT /images", func(r *http.Request) (any, error) {
		var request imageRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			return nil, err
		}
		return nil, h.images.Load(request.Ref, request.Source)
	})
	handle("PUT /catalogs/{name}", func(r *http.Request) (any, error) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		address, err := h.serveCatalog(r.PathValue("name"), data)
		return addressAnswer{address}, err
	})
	handle("GET /pods/{namespace}/{pod}/used", func(r *http.Request) (any, error) {
		return h.node.Used(r.PathValue("namespace") + "/" + r.PathValue("pod"))
	})
	handle("GET /stored", func(r *http.Request) (any, error) {
		value, err := stored(r.Context(), r.FormValue("key"))
		return json.RawMessage(value), err
	})
	handle("POST /faultyConverters/{mode}", func(r *http.Request) (any, error) {
		url, err := h.faultyConverter(r.PathValue("mode"))
		return faultyConverterAnswer{url, h.plane.authority.PEM}, err
	})
	handle("POST /components/{name}/kill", func(r *http.Request) (any, error) {
		if r.PathValue("name") == nodeComponent {
			return nil, h.node.KillContainers()
		}
		c := h.plane.component(r.PathValue("name"))
		if c == nil {
			return nil, fmt.Errorf("there is no component %q", r.PathValue("name"))
		}
		return nil, c.kill(r.Context())
	})
	handle("POST /down", func(*http.Request) (any, error) {
		h.down()
		return nil, nil
	})
	h.standIn(mux, handle)
	mux.HandleFunc("GET /audit", h.writeAudit)
	mux.HandleFunc("GET /logs", h.writeLogs)
	return mux
}

// standIn answers for what OLM v1 needs and the cluster has no programs for: a registry, cert-manager.
func (h *host) standIn(mux *http.ServeMux, handle func(pattern string, f func(*http.Request) (any, error))) {
	handle("POST /registry/delay/{by}", func(r *http.Request) (any, error) {
		by, err := time.ParseDuration(r.PathValue("by"))
		h.imageDelay.Store(int64(by))
		return nil, err
	})
	handle("POST /certificates", func(*http.Request) (any, error) { return nil, h.certificates.provide() })
	handle("DELETE /certificates", func(*http.Request) (any, error) {
		h.certificates.end()
		return nil, nil
	})
	mux.HandleFunc("/v2/", func(w http.ResponseWriter, r *http.Request) {
		handler, err := h.registry()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// issuing issues certificates between provide and end.
type issuing struct {
	start func() (stop context.CancelFunc, err error)

	mu   sync.Mutex
	stop context.CancelFunc // nil while none are issued
}

// provide begins, unless it has.
func (c *issuing) provide() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		return nil
	}
	stop, err := c.start()
	if err != nil {
		stop()
		return err
	}
	c.stop = stop
	return nil
}

// end ends what provide began.
func (c *issuing) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
}

// answerState answers with the cluster's state, when it is ready if that is asked for.
func (h *host) answerState(r *http.Request) (any, error) {
	if r.FormValue("wait") != "" {
		select {
		case <-h.ready:
		case <-r.Context().Done():
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.state
	s.Simulated = h.images.Simulated()
	return s, nil
}

func (h *host) writeAudit(w http.ResponseWriter, r *http.Request) {
	since, err := time.Parse(time.RFC3339Nano, r.FormValue("since"))
	if err == nil {
		err = h.plane.writeAudit(w, since)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// writeLogs writes the logs of the component that is asked for, or of all.
func (h *host) writeLogs(w http.ResponseWriter, r *http.Request) {
	only := r.FormValue("component")
	if h.plane != nil {
		for _, c := range h.plane.components {
			if only == "" || only == c.name {
				_ = c.log.writeTo(w, c.name)
			}
		}
	}
	if h.node != nil {
		_ = h.node.WriteLogs(r.Context(), w, only)
	}
}

// catalogLinger is how long a catalog that was replaced is still served, so that OLM's connection to it ends after it has
// turned to the new one.
const catalogLinger = 30 * time.Second

// serveCatalog serves the file-based catalog data at an address of its own.
func (h *host) serveCatalog(name string, data []byte) (string, error) {
	c := catalog.Parse(name, data)
	if err := c.Err(); err != nil {
		return "", fmt.Errorf("read catalog %s: %w", name, err)
	}
	listener, err := net.Listen("tcp", netip.AddrPortFrom(h.net.HostAddress(), 0).String())
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = registry.Serve(ctx, limited(listener), c) }()
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.catalogs[name]; old != nil {
		time.AfterFunc(catalogLinger, old)
	}
	h.catalogs[name] = cancel
	return listener.Addr().String(), nil
}
