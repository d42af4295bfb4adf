// Package kind is a Kubernetes cluster whose nodes are containers, made by the program kind (sigs.k8s.io/kind) with Docker or Podman.
// All in it is real: the kubelet, images that are pulled, catalog pods, OLM's unpack jobs, the service network, name
// service. What OLM and the kubelet pull of the walk, olmkit serves from a registry of its own.
package kind

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

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

	// Program gets the file of kind's program. It is called once there is a container engine.
	Program func(context.Context) (string, error)
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
	node       node
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

// Start creates a cluster and waits until its nodes are ready.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if options.Name == "" {
		options.Name = "olmkit-" + strings.ToLower(rand.Text()[:10])
	} else if err := cluster.CheckName(options.Name); err != nil {
		return nil, err
	}
	engine, err := findEngine(ctx)
	if err != nil {
		return nil, err
	}
	if nodes, err := engine.nodes(ctx, options.Name); err != nil {
		return nil, err
	} else if len(nodes) > 0 {
		return nil, hint.With(fmt.Errorf("there is a cluster %q already", options.Name),
			"end it with 'olmkit cluster down --kind kind --name %s', or choose another --name", options.Name)
	}
	program, err := options.Program(ctx)
	if err != nil {
		return nil, err
	}
	step := options.Progress.Start("kind cluster %s", options.Name)
	c, err := create(ctx, program, engine, options, step)
	return c, step.End(err)
}

// create has program make the cluster, and deletes what it made if that fails.
func create(ctx context.Context, program string, engine *engine, options Options, step *progress.Step) (*Cluster, error) {
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
	err = engine.create(ctx, program, creation{options.Name, options.NodeImage, file, configuration(engine, options.Port, policy)}, step)
	var c *Cluster
	if err == nil {
		c, err = open(ctx, engine, file, options.Name)
	}
	if err != nil {
		return nil, errors.Join(advise(err, options.NodeImage), engine.remove(context.WithoutCancel(ctx), options.Name, file))
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

// advise says what to do about a cluster that does not come up.
func advise(err error, image string) error {
	switch said := err.Error(); {
	case hint.Of(err) != "":
		return err
	case strings.Contains(said, "address already in use"):
		return hint.With(err, "choose another --port, or leave it out for one that is free")
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
	c, err := open(ctx, engine, file, name)
	if err != nil {
		return nil, err
	}
	c.keep = true
	return c, nil
}

func open(ctx context.Context, engine *engine, kubeconfig, name string) (*Cluster, error) {
	c := &Cluster{name: name, kubeconfig: kubeconfig, engine: engine, programs: map[string]string{}, pushed: map[string]packed{}}
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
		return nil, fmt.Errorf("read the kubeconfig of cluster %s: %w", name, err)
	}
	c.config.QPS = -1
	cluster.Stay(c.config)
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return nil, err
	}
	version, err := c.client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("reach the API server of cluster %s: %w", name, err)
	}
	c.version = version.GitVersion
	nodes, err := engine.nodes(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(nodes) != 1 {
		return nil, hint.With(fmt.Errorf("cluster %s has %d nodes", name, len(nodes)), "end it with 'olmkit cluster down --kind kind --name %s' and start it again", name)
	}
	c.node = node{engine.program, nodes[0]}
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
	var own []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".kubeconfig")
		nodes, err := engine.nodes(ctx, name)
		if err != nil {
			return nil, err
		}
		if len(nodes) > 0 {
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
		cluster.LimitImages,
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
		log, err := c.client.CoreV1().Pods(p.Namespace).GetLogs(p.Name, cluster.LogOptions(container, previous)).Stream(ctx)
		if err != nil {
			continue // it never restarted, or has not begun
		}
		text, err := cluster.Tail(log)
		if err != nil {
			return fmt.Errorf("read the log of %s: %w", name, err)
		}
		for line := range strings.Lines(string(text)) {
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
func (c *Cluster) Down(ctx context.Context) error {
	return c.engine.remove(context.WithoutCancel(ctx), c.name, c.kubeconfig)
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
	return engine.remove(ctx, name, file)
}
