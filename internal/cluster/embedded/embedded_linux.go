package embedded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded/sandbox"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/progress"
)

// Cluster is a running embedded cluster.
type Cluster struct {
	name   string
	dir    string
	keep   bool
	config *rest.Config
	state  state
	client *client
	host   *sandbox.Cmd // of a cluster that this process started and does not keep
	ended  chan error
}

var _ cluster.Cluster = (*Cluster)(nil)

func clustersDir(cache string) string { return filepath.Join(cache, "clusters") }

// Build pulls or builds those parts unless the cache has them, and returns the folder of each: of each Kubernetes,
// of each OLM v0, of OLM v1, of kind.
func Build(ctx context.Context, parts Parts, p *progress.Printer) ([]string, error) {
	var dirs []string
	for _, set := range parts.sets() {
		dir, err := obtain(ctx, set, parts.From, p)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// sets are what builds the parts.
func (parts Parts) sets() []*componentSet {
	var sets []*componentSet
	for _, release := range parts.Kubernetes {
		sets = append(sets, kubernetesComponents(release))
	}
	for _, release := range parts.OLMv0 {
		sets = append(sets, olmComponentsOf(release))
	}
	if parts.OLMv1 {
		sets = append(sets, olmV1Components)
	}
	if parts.Kind {
		sets = append(sets, kindComponents)
	}
	return sets
}

// obtain pulls or builds set unless the cache has it, and returns its folder.
func obtain(ctx context.Context, set *componentSet, from Source, p *progress.Printer) (string, error) {
	if !set.anywhere {
		if err := checkLimits(unix.Getrlimit); err != nil {
			return "", err
		}
	}
	return set.get(ctx, from, p)
}

// Start pulls or builds what is missing, brings a cluster up and waits until it is ready.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	parts := Parts{Kubernetes: []string{cmp.Or(options.Kubernetes, KubernetesVersion)}, From: options.Components}
	if options.OLM != "" {
		parts.OLMv0 = []string{options.OLM}
	}
	built, err := Build(ctx, parts, options.Progress)
	if err != nil {
		return nil, err
	}
	cache, err := cache.Folder()
	if err != nil {
		return nil, err
	}
	if options.Name == "" {
		options.Name = "t-" + newToken()[:10]
	} else if err := cluster.CheckName(options.Name); err != nil {
		return nil, err
	}
	step := options.Progress.Start("embedded cluster: etcd, API server, controllers, node")
	c, err := launch(ctx, cache, built, options)
	return c, step.End(advise(err, cache))
}

// launch starts a cluster of what was built: a control plane, and OLM v0 if it is wanted.
func launch(ctx context.Context, cache string, built []string, options Options) (_ *Cluster, err error) {
	dir, lock, err := claim(ctx, cache, options.Name)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	c := &Cluster{name: options.Name, dir: dir, keep: options.Keep, client: newClient(dir), ended: make(chan error, 1)}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	api, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", options.Port))
	if err != nil {
		return nil, hint.With(fmt.Errorf("listen for the API server's clients: %w", err), "choose another --port, or 0 for any free one")
	}
	defer api.Close()
	control, err := openSocket(dir, func(path string) (*net.UnixListener, error) {
		return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	})
	if err != nil {
		return nil, fmt.Errorf("listen on the control socket: %w", err)
	}
	control.SetUnlinkOnClose(false)
	defer control.Close()
	files := make([]*os.File, 0, 3)
	for _, listener := range []interface{ File() (*os.File, error) }{api.(*net.TCPListener), control} {
		f, err := listener.File()
		if err != nil {
			return nil, err
		}
		defer f.Close()
		files = append(files, f)
	}
	config, err := json.Marshal(hostConfig{
		Programs: built[0], Dir: dir, Server: api.Addr().String(),
		Images: olmImages(options.OLM, built[1:]...), Audit: options.Audit, Admission: options.Admission,
	})
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "host.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.host = sandbox.Command(context.WithoutCancel(ctx), sandbox.Options{Network: true, Detach: options.Keep}, "/proc/self/exe", hostArgument)
	c.host.Stdin, c.host.Stdout, c.host.Stderr = bytes.NewReader(config), log, log
	c.host.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "GORACE=" + os.Getenv("GORACE")} // the last one for 'make build-race'
	c.host.ExtraFiles = append(c.host.ExtraFiles, append(files, lock)...)
	if err := c.host.Start(); err != nil {
		return nil, fmt.Errorf("start the cluster: %w", err)
	}
	go func() { c.ended <- c.host.Wait() }()
	if err := c.connect(ctx); err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

// claim makes the cluster's directory and locks it for as long as the returned file is open in any process. Directories
// whose clusters have ended without a word are removed on the way.
func claim(ctx context.Context, cache, name string) (string, *os.File, error) {
	clusters := clustersDir(cache)
	if err := os.MkdirAll(clusters, 0o700); err != nil {
		return "", nil, err
	}
	unlock, err := lockFile(ctx, filepath.Join(cache, "clusters.lock"))
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	entries, err := os.ReadDir(clusters)
	if err != nil {
		return "", nil, err
	}
	for _, e := range entries {
		if dir := filepath.Join(clusters, e.Name()); !alive(dir) {
			if err := os.RemoveAll(dir); err != nil {
				return "", nil, fmt.Errorf("remove what an ended cluster left: %w", err)
			}
		}
	}
	dir := filepath.Join(clusters, name)
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return "", nil, hint.With(fmt.Errorf("there is a cluster %q already", name), "end it with 'olmkit cluster down --name %s', or choose another --name", name)
	} else if err != nil {
		return "", nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o700); err != nil {
		return "", nil, err
	}
	lock, err := lockDir(dir)
	return dir, lock, err
}

// lockDir makes the lock of the cluster in dir. Under its name it is locked from the first moment on.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	lock, err := os.OpenFile(path+".new", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = os.Rename(lock.Name(), path)
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// alive tells whether a process holds the lock of the cluster in dir. Several may ask at once: they share the lock.
func alive(dir string) bool {
	lock, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return false
	}
	defer lock.Close()
	return errors.Is(unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// contained returns a command that ends with this process, and all it started with it.
func contained(ctx context.Context, name string, args ...string) *sandbox.Cmd {
	return sandbox.Command(ctx, sandbox.Options{}, name, args...)
}

// command returns a command that ends with ctx, and what starts it: it also ends with this process where namespaces can be had for that.
func (s *componentSet) command(ctx context.Context, name string, args ...string) (*exec.Cmd, process) {
	if s.anywhere {
		c := grouped(ctx, name, args...)
		return c, c
	}
	c := contained(ctx, name, args...)
	return c.Cmd, c
}

// Open returns the kept cluster called name.
func Open(ctx context.Context, name string) (*Cluster, error) {
	cache, err := cache.Folder()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(clustersDir(cache), name)
	if cluster.CheckName(name) != nil || !alive(dir) {
		return nil, hint.With(fmt.Errorf("there is no cluster %q", name), "start it with 'olmkit cluster up --name %s'", name)
	}
	c := &Cluster{name: name, dir: dir, keep: true, client: newClient(dir)}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Names returns the running clusters, sorted.
func Names() ([]string, error) {
	cache, err := cache.Folder()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(clustersDir(cache))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := map[string]bool{}
	for _, e := range entries {
		if alive(filepath.Join(clustersDir(cache), e.Name())) {
			names[e.Name()] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// connect waits until the cluster is ready, and reads its credentials.
func (c *Cluster) connect(ctx context.Context) error {
	if err := c.waitReady(ctx); err != nil {
		return err
	}
	return c.load()
}

// waitReady waits until the host says how starting went.
func (c *Cluster) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		answered <- c.client.call(ctx, http.MethodGet, "/state", url.Values{"wait": {"true"}}, nil, &c.state)
	}()
	select {
	case err := <-answered:
		if err != nil {
			return err
		}
	case err := <-c.ended:
		said, _ := os.ReadFile(filepath.Join(c.dir, "host.log"))
		c.ended <- err
		return fmt.Errorf("the cluster ended while it was starting: %w\n%s", err, bytes.TrimSpace(said))
	}
	if c.state.Error != "" {
		return errors.New(c.state.Error)
	}
	return nil
}

// load reads the administrator's credentials.
func (c *Cluster) load() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return err
	}
	config.QPS = -1
	cluster.Stay(config)
	c.config = config
	return nil
}

// Name identifies the cluster to its user.
func (c *Cluster) Name() string { return c.name }

// Kubeconfig returns the path of the administrator's kubeconfig file.
func (c *Cluster) Kubeconfig() string { return kubeconfigPath(c.dir) }

// Config returns the administrator's credentials.
func (c *Cluster) Config() *rest.Config { return c.config }

// Describe names the cluster, its version and what it does not cover.
func (c *Cluster) Describe() cluster.Description {
	proof := cluster.Description{Kind: "embedded", Kubernetes: c.state.Kubernetes, Simulates: true, Limitations: []string{
		"images were not pulled: containers ran the programs given for them, without the rest of the image; what is run in others (exec) ended well and said nothing",
		limitInline,
		"Services have addresses for TCP alone, and there is no way out of the cluster: names elsewhere cannot be looked up",
		"no limits on CPU and memory, no NetworkPolicy, one node",
		"persistent volumes were directories in memory: their capacity was not enforced, and there were no block devices, snapshots or expansion",
		limitPackageServer,
		"pods that are privileged, share namespaces of their node or mount its files (hostPath) are refused; containers have no capabilities",
	}}
	if !c.state.Users {
		proof.Limitations = append(proof.Limitations, "runAsUser and fsGroup were not applied: an ordinary user can map one user only")
	}
	return proof
}

// Disposable is true: all of the cluster is in its own namespaces and on its own file system.
func (c *Cluster) Disposable() bool { return true }

// LoadImage makes ref run from source, a program or the root directory of an image.
func (c *Cluster) LoadImage(ctx context.Context, ref, source string) error {
	source, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	return c.client.callJSON(ctx, http.MethodPut, "/images", imageRequest{ref, source}, nil)
}

// ProvideOLM makes OLM v0 runnable on a cluster that was started without it.
func (c *Cluster) ProvideOLM(ctx context.Context, p *progress.Printer) error {
	dir, err := obtain(ctx, olmComponents, Source{}, p)
	if err != nil {
		return err
	}
	for ref, root := range olmImages(OLMVersion, dir) {
		if err := c.LoadImage(ctx, ref, root); err != nil {
			return err
		}
	}
	return nil
}

// Simulated returns the images that pods asked for and that can't run here.
func (c *Cluster) Simulated(ctx context.Context) ([]string, error) {
	var s state
	if err := c.client.call(ctx, http.MethodGet, "/state", nil, nil, &s); err != nil {
		return nil, err
	}
	return s.Simulated, nil
}

// Catalog serves fbc inside of the cluster's network.
func (c *Cluster) Catalog(ctx context.Context, name string, fbc []byte) (cluster.CatalogAddress, error) {
	var answer addressAnswer
	err := c.client.call(ctx, http.MethodPut, "/catalogs/"+url.PathEscape(name), nil, bytes.NewReader(fbc), &answer)
	return cluster.CatalogAddress{Address: answer.Address}, err
}

// Logs copies what the components and containers wrote.
func (c *Cluster) Logs(ctx context.Context, w io.Writer, component string) error {
	return c.client.call(ctx, http.MethodGet, "/logs", url.Values{"component": {component}}, nil, w)
}

// Stored returns a custom resource as etcd holds it: the JSON in the version in which it is stored, or nil where there is none.
// namespace is empty for one of the cluster's scope.
func (c *Cluster) Stored(ctx context.Context, group, plural, namespace, name string) ([]byte, error) {
	parts := []string{"/registry", group, plural}
	if namespace != "" {
		parts = append(parts, namespace)
	}
	var value *json.RawMessage
	err := c.client.call(ctx, http.MethodGet, "/stored", url.Values{"key": {strings.Join(append(parts, name), "/")}}, nil, &value)
	if value == nil || err != nil {
		return nil, err
	}
	return *value, nil
}

// Audit returns what the API server was asked from since on: by whom, for what, and how it answered, with as much of the
// objects themselves as cluster.AuditPolicy has it keep. There are two events of each watch, of its start and of its end, and
// one of every other request, a moment after it was answered. The oldest are dropped when there are more than about a hundred
// thousand.
func (c *Cluster) Audit(ctx context.Context, since time.Time) ([]auditv1.Event, error) {
	var log bytes.Buffer
	if err := c.client.call(ctx, http.MethodGet, "/audit", url.Values{"since": {since.Format(time.RFC3339Nano)}}, nil, &log); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return cluster.ParseAudit(log.Bytes(), since), nil
}

// Used returns for how long the containers of a pod that run now have used a processor.
func (c *Cluster) Used(ctx context.Context, namespace, pod string) (time.Duration, error) {
	var used time.Duration
	err := c.client.call(ctx, http.MethodGet, "/pods/"+url.PathEscape(namespace)+"/"+url.PathEscape(pod)+"/used", nil, nil, &used)
	return used, err
}

// Kill ends a component of the control plane the hard way, and returns when it is gone. It is started again at once;
// that it is ready again, the caller waits for. The component node is all containers at once, as when a machine restarts.
func (c *Cluster) Kill(ctx context.Context, component string) error {
	return c.client.call(ctx, http.MethodPost, "/components/"+url.PathEscape(component)+"/kill", nil, nil, nil)
}

// FaultyConverter returns the URL and the CA, PEM encoded, of a conversion webhook that misbehaves: slow answers after 10 s, 500
// with that status, wrong with other objects than were asked for.
func (c *Cluster) FaultyConverter(ctx context.Context, mode string) (string, []byte, error) {
	var answer faultyConverterAnswer
	err := c.client.call(ctx, http.MethodPost, "/faultyConverters/"+url.PathEscape(mode), nil, nil, &answer)
	return answer.URL, answer.CA, err
}

// ProvideCertificates has the cluster issue certificates, and inject its authority, as cert-manager does, whose CustomResourceDefinitions
// must be established.
func (c *Cluster) ProvideCertificates(ctx context.Context) error {
	return c.client.call(ctx, http.MethodPost, "/certificates", nil, nil, nil)
}

// EndCertificates ends what ProvideCertificates began. What was issued stays as it is.
func (c *Cluster) EndCertificates(ctx context.Context) error {
	return c.client.call(ctx, http.MethodDelete, "/certificates", nil, nil, nil)
}

// DelayImages has the cluster's registry answer pods so much later; 0 ends that.
func (c *Cluster) DelayImages(ctx context.Context, by time.Duration) error {
	return c.client.call(ctx, http.MethodPost, "/registry/delay/"+by.String(), nil, nil, nil)
}

// Close ends the cluster unless it is to be kept.
func (c *Cluster) Close(ctx context.Context) error {
	if c.keep {
		return nil
	}
	return c.Down(ctx)
}

// unansweredLimit is how long a cluster that was asked to end, and did not answer, may take to do so.
const unansweredLimit = 5 * time.Second

// Down ends the cluster and leaves nothing behind. What runs in it is not asked first: it ends with its namespaces.
func (c *Cluster) Down(ctx context.Context) error {
	if c.host != nil {
		c.kill()
	} else {
		// It may end before its answer is out.
		unanswered := c.client.call(ctx, http.MethodPost, "/down", nil, nil, nil)
		for asked := time.Now(); alive(c.dir); {
			if unanswered != nil && time.Since(asked) > unansweredLimit {
				return unanswered
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the cluster %s does not end: %w", c.name, ctx.Err())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return os.RemoveAll(c.dir)
}

// kill ends the first process of the namespaces, and the kernel all others.
func (c *Cluster) kill() {
	_ = c.host.Process.Signal(syscall.SIGKILL)
	err := <-c.ended
	c.ended <- err
}
