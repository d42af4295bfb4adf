// Package kind is a Kubernetes cluster whose nodes are containers, made by kind (sigs.k8s.io/kind) with Docker or Podman.
// All in it is real: the kubelet, images that are pulled, catalog pods, OLM's unpack jobs, the service network, name
// service. What OLM and the kubelet pull of the walk, olmkit serves from a registry of its own.
package kind

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	kind "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	kindexec "sigs.k8s.io/kind/pkg/exec"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/certificates"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/progress"
)

// Options of Start.
type Options struct {
	Name      string // "" makes one up
	NodeImage string // "" for that of kind's release
	Keep      bool   // the cluster outlives this process, until Down
	Audit     bool   // keep an audit log, see Cluster.Audit
	Port      int    // of the API server on the loopback interface; 0 for any free one
	Progress  *progress.Printer
}

// Cluster is a running kind cluster.
type Cluster struct {
	name       string
	keep       bool
	kubeconfig string // file
	config     *rest.Config
	client     kubernetes.Interface
	version    string
	engine     *engine
	provider   *kind.Provider
	node       nodes.Node
	registry   *mirror           // of a cluster that is walked on, once something was to be served
	programs   map[string]string // by the image that they are to be
	pushed     map[string]packed // likewise, those that the nodes can pull
	catalogs   []func()          // end what serves them: the one that OLM reads, and the one before
	audit      auditLog

	authority       *certificates.Authority // of what olmkit issues there, once something was to be
	endCertificates func()                  // ends what issues certificates; nil if nothing does
}

// Limitations that are about OLM v0.
const (
	limitCatalog       = "olmkit served the catalog itself, not opm from a pod"
	limitPackageServer = "OLM's package server was not installed"
)

var _ cluster.Cluster = (*Cluster)(nil)

// readyLimit bounds how long nodes may take to be ready.
const readyLimit = 3 * time.Minute

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

// Start creates a cluster and waits until its nodes are ready.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if options.Name == "" {
		options.Name = "olmkit-" + strings.ToLower(rand.Text()[:10])
	} else if !validName.MatchString(options.Name) {
		return nil, hint.With(fmt.Errorf("cluster name %q", options.Name), "use up to 40 lower case letters, digits and dashes")
	}
	engine, err := findEngine(ctx)
	if err != nil {
		return nil, err
	}
	step := options.Progress.Start("kind cluster %s", options.Name)
	provider := kind.NewProvider(engine.provider, kind.ProviderWithLogger(logger{step}))
	c, err := create(ctx, provider, engine, options)
	return c, step.End(err)
}

func create(ctx context.Context, provider *kind.Provider, engine *engine, options Options) (*Cluster, error) {
	if names, err := provider.List(); err != nil {
		return nil, fmt.Errorf("list kind's clusters: %w", explain(err))
	} else if slices.Contains(names, options.Name) {
		return nil, hint.With(fmt.Errorf("there is a cluster %q already", options.Name),
			"end it with 'olmkit cluster down --kind kind --name %s', or choose another --name", options.Name)
	}
	if options.NodeImage != "" {
		if err := engine.ensureImage(ctx, options.NodeImage); err != nil {
			return nil, err
		}
	}
	file, err := kubeconfigOf(options.Name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, hint.With(err, "set OLMKIT_CACHE to a folder that can be written to")
	}
	policy := ""
	if options.Audit {
		policy = policyOf(file)
		if err := os.WriteFile(policy, []byte(cluster.AuditPolicy), 0o600); err != nil {
			return nil, hint.With(err, "set OLMKIT_CACHE to a folder that can be written to")
		}
	}
	created := make(chan error, 1)
	go func() {
		created <- provider.Create(options.Name, kind.CreateWithRawConfig([]byte(configuration(engine, options.Port, policy))),
			kind.CreateWithNodeImage(options.NodeImage), kind.CreateWithKubeconfigPath(file), kind.CreateWithWaitForReady(readyLimit),
			kind.CreateWithDisplayUsage(false), kind.CreateWithDisplaySalutation(false))
	}()
	select {
	case err = <-created:
	case <-ctx.Done():
		// kind cannot be interrupted, but it fails without the nodes; what it made meanwhile goes with a second deletion.
		_ = engine.remove(provider, options.Name, file)
		<-created
		err = ctx.Err()
	}
	var c *Cluster
	if err == nil {
		c, err = open(engine, provider, file, options.Name)
	}
	if err != nil {
		return nil, errors.Join(advise(explain(err), options.NodeImage), engine.remove(provider, options.Name, file))
	}
	c.keep = options.Keep
	return c, nil
}

// kubeconfigOf returns the file by which the cluster called name is reached.
func kubeconfigOf(name string) (string, error) {
	dir, err := cache.Folder()
	return filepath.Join(dir, "kind", "clusters", name+".kubeconfig"), err
}

// configuration is what kind makes the cluster from: registries are looked up where startMirror writes, etcd waits for no
// disk, since nobody misses a cluster that was lost, a busy machine is waited for, the API server keeps an audit log if policy
// names the file with its policy, and the kubelet does its work also where there is cgroup v1 only. What names kubeadm's version
// is for v1.36 and later alone: before, kind speaks another version of its API.
func configuration(e *engine, port int, policy string) string {
	config := fmt.Sprintf(`kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking:
  apiServerAddress: 127.0.0.1
  apiServerPort: %d
containerdConfigPatches:
- |
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
kubeadmConfigPatches:
- |
  apiVersion: kubeadm.k8s.io/v1beta4
  kind: ClusterConfiguration
  etcd:
    local:
      extraArgs:
      - name: unsafe-no-fsync
        value: "true"
- |
  apiVersion: kubeadm.k8s.io/v1beta4
  kind: InitConfiguration
  timeouts:
    controlPlaneComponentHealthCheck: 10m
    kubernetesAPICall: 5m
`, port)
	if e.cgroupV1 {
		config += `- |
  kind: KubeletConfiguration
  failCgroupV1: false
`
	}
	if policy != "" {
		config += auditPatch + auditMount(policy)
	}
	return config
}

// engine runs the nodes' containers.
type engine struct {
	program  string // docker or podman
	provider kind.ProviderOption
	cgroupV1 bool
}

// Check returns why there can be no kind cluster on this machine, if none can: a container engine is missing.
func Check(ctx context.Context) error {
	_, err := findEngine(ctx)
	return err
}

// findEngine returns Docker, or else Podman.
func findEngine(ctx context.Context) (*engine, error) {
	var missing error
	for _, e := range []struct {
		engine *engine
		info   string
	}{
		{&engine{program: "docker", provider: kind.ProviderWithDocker()}, "{{.CgroupVersion}}"},
		{&engine{program: "podman", provider: kind.ProviderWithPodman()}, "{{.Host.CgroupsVersion}}"},
	} {
		out, err := exec.CommandContext(ctx, e.engine.program, "info", "--format", e.info).CombinedOutput()
		switch said := strings.TrimSpace(string(out)); {
		case err == nil:
			e.engine.cgroupV1 = strings.TrimPrefix(said, "v") == "1"
			return e.engine, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, exec.ErrNotFound):
		case missing == nil:
			missing = hint.With(fmt.Errorf("ask %s for its state: %s", e.engine.program, lastLine(said)),
				"start its daemon ('sudo systemctl start %s'), and see that 'docker info' works for you; or use --cluster embedded, which needs none", e.engine.program)
		}
	}
	if missing == nil {
		missing = hint.With(errors.New("kind runs its nodes in containers, and there is neither docker nor podman on the PATH"),
			"install Docker (on Debian 'apt-get install docker.io'), or use --cluster embedded, which needs none")
	}
	return nil, missing
}

// ensureImage pulls the node image unless it is there.
func (e *engine) ensureImage(ctx context.Context, image string) error {
	if exec.CommandContext(ctx, e.program, "image", "inspect", image).Run() == nil {
		return nil
	}
	if out, err := exec.CommandContext(ctx, e.program, "pull", "--quiet", image).CombinedOutput(); err != nil {
		return advise(fmt.Errorf("pull the node image %s: %s", image, lastLine(string(out))), image)
	}
	return nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// explain adds what a command said to the error that kind makes of it.
func explain(err error) error {
	if failed := kindexec.RunErrorForError(err); failed != nil && len(failed.Output) > 0 {
		said := strings.TrimSpace(string(failed.Output))
		for line := range strings.Lines(said) {
			if strings.HasPrefix(line, "error") { // kubeadm's, among much that it logs
				said = strings.TrimSpace(line)
			}
		}
		return fmt.Errorf("%w: %s", err, said[max(0, len(said)-2000):])
	}
	return err
}

// advise says what to do about a cluster that does not come up.
func advise(err error, image string) error {
	switch said := err.Error(); {
	case hint.Of(err) != "":
		return err
	case strings.Contains(said, "pull"):
		return hint.With(err, "name a node image that can be pulled or is here with --node-image; 'make kind-node' in olmkit's repository builds one without any registry")
	case strings.Contains(said, "operation not permitted"):
		return hint.With(err, "see that the container engine may run privileged containers")
	case image != "":
		return hint.With(err, "see that %s is a node image for this release of kind", image)
	}
	return err
}

// named returns the container engine that has the cluster called name.
func named(ctx context.Context, name string) (*engine, error) {
	engine, err := findEngine(ctx)
	if err != nil {
		return nil, err
	}
	if names, err := Names(ctx); err != nil || !slices.Contains(names, name) {
		return nil, errors.Join(err, hint.With(fmt.Errorf("there is no kind cluster %q", name), "start it with 'olmkit cluster up --kind kind --name %s'", name))
	}
	return engine, nil
}

// Open returns the kept cluster called name.
func Open(ctx context.Context, name string) (*Cluster, error) {
	engine, err := named(ctx, name)
	if err != nil {
		return nil, err
	}
	file, err := kubeconfigOf(name)
	if err != nil {
		return nil, err
	}
	c, err := open(engine, kind.NewProvider(engine.provider), file, name)
	if err != nil {
		return nil, err
	}
	c.keep = true
	return c, nil
}

func open(engine *engine, provider *kind.Provider, kubeconfig, name string) (*Cluster, error) {
	c := &Cluster{name: name, kubeconfig: kubeconfig, engine: engine, provider: provider, programs: map[string]string{}, pushed: map[string]packed{}}
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
		return nil, fmt.Errorf("read the kubeconfig of cluster %s: %w", name, err)
	}
	c.config.QPS = -1
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return nil, err
	}
	version, err := c.client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("reach the API server of cluster %s: %w", name, err)
	}
	c.version = version.GitVersion
	list, err := provider.ListInternalNodes(name)
	if err != nil {
		return nil, fmt.Errorf("list the nodes of cluster %s: %w", name, explain(err))
	}
	if len(list) != 1 {
		return nil, hint.With(fmt.Errorf("cluster %s has %d nodes", name, len(list)), "end it with 'olmkit cluster down --kind kind --name %s' and start it again", name)
	}
	c.node = list[0]
	return c, nil
}

// Names returns olmkit's clusters that are there, sorted: those that are kept, and those of walks that are under way or were
// killed. Without a container engine there are none.
func Names(ctx context.Context) ([]string, error) {
	pattern, err := kubeconfigOf("*")
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	engine, err := findEngine(ctx)
	if err != nil {
		return nil, err
	}
	all, err := kind.NewProvider(engine.provider).List()
	if err != nil {
		return nil, fmt.Errorf("list kind's clusters: %w", explain(err))
	}
	var own []string
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".kubeconfig"); slices.Contains(all, name) {
			own = append(own, name)
		}
	}
	slices.Sort(own)
	return own, nil
}

// Name is the cluster's name.
func (c *Cluster) Name() string { return c.name }

// Config returns the administrator's credentials.
func (c *Cluster) Config() *rest.Config { return c.config }

// Kubeconfig is a file by which kubectl reaches the cluster.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// Describe names the cluster, its version and what it does not cover.
func (c *Cluster) Describe() cluster.Description {
	return cluster.Description{Kind: "kind", Kubernetes: c.version, Limitations: []string{
		"images of bundles were made from what the catalog holds, and those named with --image from what was given: what registries hold under their names was not pulled",
		limitCatalog,
		"there was one node",
		limitPackageServer,
		"what is stored of objects was seen through the API server only, not in etcd",
		"PersistentVolumeClaims were bound only where the node image has a provisioner",
	}}
}

// Disposable tells that the cluster goes with all that was made on it.
func (c *Cluster) Disposable() bool { return !c.keep }

// Simulated returns none: what is not there fails.
func (c *Cluster) Simulated(context.Context) ([]string, error) { return nil, nil }

// Logs copies the logs of containers: those of the control plane's component, of namespace/pod/container, or all.
func (c *Cluster) Logs(ctx context.Context, w io.Writer, component string) error {
	pods, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	found := false
	for _, p := range pods.Items {
		for _, container := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			name := p.Namespace + "/" + p.Name + "/" + container.Name
			if component == "" || component == name || p.Namespace == metav1.NamespaceSystem && component == container.Name {
				found = true
				if err := c.copyLog(ctx, w, p, container.Name, name); err != nil {
					return err
				}
			}
		}
	}
	if !found {
		return hint.With(fmt.Errorf("there is no component and no container %q", component), "name one as 'kubectl get pods --all-namespaces' lists them: namespace/pod/container")
	}
	return nil
}

// copyLog copies what the container wrote before its last restart, and since, line by line after its name.
func (c *Cluster) copyLog(ctx context.Context, w io.Writer, p corev1.Pod, container, name string) error {
	for _, previous := range []bool{true, false} {
		log, err := c.client.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Container: container, Previous: previous}).DoRaw(ctx)
		if err != nil {
			continue // it never restarted, or has not begun
		}
		for line := range strings.Lines(string(log)) {
			if _, err := fmt.Fprintf(w, "%s| %s\n", name, strings.TrimSuffix(line, "\n")); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// Close deletes the cluster unless it is kept.
func (c *Cluster) Close(ctx context.Context) error {
	for _, stop := range c.catalogs {
		stop()
	}
	if c.endCertificates != nil {
		c.endCertificates()
	}
	if c.registry != nil {
		c.registry.close()
	}
	if c.keep {
		return nil
	}
	return c.Down(ctx)
}

// Down deletes the cluster.
func (c *Cluster) Down(context.Context) error {
	return c.engine.remove(c.provider, c.name, c.kubeconfig)
}

// Delete deletes the cluster called name, in whatever state it is.
func Delete(ctx context.Context, name string) error {
	engine, err := named(ctx, name)
	if err != nil {
		return err
	}
	file, err := kubeconfigOf(name)
	if err != nil {
		return err
	}
	return engine.remove(kind.NewProvider(engine.provider), name, file)
}

// remove deletes the cluster called name and its kubeconfig. A container engine on a busy machine gives up to end a container
// while that ends, so that it is asked several times.
func (e *engine) remove(provider *kind.Provider, name, kubeconfig string) error {
	const tries, pause = 10, 3 * time.Second
	err := provider.Delete(name, kubeconfig)
	for i := 1; err != nil && i < tries; i++ {
		e.thaw(name)
		time.Sleep(pause)
		err = provider.Delete(name, kubeconfig)
	}
	if err != nil {
		return hint.With(fmt.Errorf("delete kind cluster %s: %w", name, explain(err)), "try again with 'olmkit cluster down --kind kind --name %s'", name)
	}
	for _, file := range []string{kubeconfig, policyOf(kubeconfig)} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// logger tells kind's steps as notes of one step.
type logger struct{ step *progress.Step }

func (logger) Warn(string)          {}
func (logger) Warnf(string, ...any) {}
func (l logger) Error(message string) {
	l.step.Note(message)
}
func (l logger) Errorf(format string, args ...any) { l.Error(fmt.Sprintf(format, args...)) }
func (l logger) V(level log.Level) log.InfoLogger  { return infoLogger{l, level == 0} }

type infoLogger struct {
	logger
	told bool
}

func (l infoLogger) Info(message string) {
	if l.told {
		l.step.Note(strings.TrimSpace(message))
	}
}
func (l infoLogger) Infof(format string, args ...any) { l.Info(fmt.Sprintf(format, args...)) }
func (l infoLogger) Enabled() bool                    { return l.told }

// thaw lets go on what runc froze in the nodes' containers of the cluster called name. With cgroup v1 runc freezes a container
// while it changes its limits; killed in that moment, it leaves processes that no signal ends, and the node with them.
func (e *engine) thaw(name string) {
	out, err := exec.Command(e.program, "ps", "--all", "--quiet", "--no-trunc", "--filter", "label=io.x-k8s.kind.cluster="+name).Output()
	if err != nil || !e.cgroupV1 {
		return
	}
	for id := range strings.FieldsSeq(string(out)) {
		_ = filepath.WalkDir(filepath.Join("/sys/fs/cgroup/freezer/docker", id), func(file string, _ fs.DirEntry, err error) error {
			if err == nil && filepath.Base(file) == "freezer.state" {
				if state, _ := os.ReadFile(file); strings.TrimSpace(string(state)) != "THAWED" {
					_ = os.WriteFile(file, []byte("THAWED"), 0)
				}
			}
			return nil
		})
	}
}
