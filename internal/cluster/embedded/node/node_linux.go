// Package node is a Kubernetes node whose containers are plain processes in namespaces: a provider for virtual-kubelet.
// It runs images that it was told how to run, and simulates the others: their containers are reported as running.
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
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	vknode "github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	corev1informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// KubeletPort is where the API server asks the node for logs and commands.
const KubeletPort = 10250

// leaseSeconds is how long the node counts as alive after it last renewed its lease, as for the kubelet.
const leaseSeconds = 40

// capacity is generous: the node simulates more than it runs, and nothing is to wait for room.
var capacity = corev1.ResourceList{
	corev1.ResourceCPU:              resource.MustParse("10000"),
	corev1.ResourceMemory:           resource.MustParse("64Ti"),
	corev1.ResourceEphemeralStorage: resource.MustParse("64Ti"),
	corev1.ResourcePods:             resource.MustParse("60000"),
}

// Config is what a node needs.
type Config struct {
	Name       string
	Version    string // of Kubernetes, as the kubelet would report it
	Client     kubernetes.Interface
	Network    *Network
	Images     *Images
	Dir        string      // for the pods' volumes and roots, on tmpfs
	Volumes    string      // for the directories of PersistentVolumes, on tmpfs
	APIHost    string      // where pods find the API server
	APIPort    int         //
	Users      bool        // this process may become any user
	KubeletTLS *tls.Config // of the server for logs and commands
}

// Node runs pods.
type Node struct {
	config   Config
	recorder record.EventRecorder
	notify   func(*corev1.Pod)
	attach   func(idle bool) (*endpoint, error) // gives a pod its network

	mu   sync.Mutex
	pods map[string]*pod // by namespace/name
}

// New returns a node that Run brings to life.
func New(config Config) *Node {
	return &Node{config: config, notify: func(*corev1.Pod) {}, attach: config.Network.attachPod, pods: map[string]*pod{}}
}

// Run registers the node, calls ready once it takes pods, and runs them until ctx ends.
func (n *Node) Run(ctx context.Context, ready func()) error {
	provisioner := newProvisionController(ctx, n.config)
	if err := createStorageClass(ctx, n.config.Client); err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: n.config.Client.CoreV1().Events("")})
	n.recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: n.config.Name})

	mine := informers.NewSharedInformerFactoryWithOptions(n.config.Client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", n.config.Name).String()
	}))
	pods, err := n.podController(mine.Core().V1().Pods())
	if err != nil {
		return err
	}
	nodes, err := vknode.NewNodeController(vknode.NewNaiveNodeProvider(), n.object(), n.config.Client.CoreV1().Nodes(),
		vknode.WithNodeEnableLeaseV1(n.config.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease), leaseSeconds))
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if err := n.serveKubelet(ctx, group); err != nil {
		return err
	}
	mine.Start(ctx.Done())
	group.Go(func() error { return pods.Run(ctx, 16) })
	group.Go(func() error {
		provisioner.Run(ctx)
		return nil
	})
	group.Go(func() error {
		select {
		case <-pods.Ready():
		case <-ctx.Done():
			return nil
		}
		return nodes.Run(ctx)
	})
	group.Go(func() error {
		select {
		case <-nodes.Ready():
			ready()
		case <-ctx.Done():
		}
		return nil
	})
	return group.Wait()
}

// podController runs the pods that the informer has.
func (n *Node) podController(pods corev1informers.PodInformer) (*vknode.PodController, error) {
	// The controller asks for these informers and, since it is told to leave variables to us, never reads them.
	unread := informers.NewSharedInformerFactory(n.config.Client, 0).Core().V1()
	return vknode.NewPodController(vknode.PodControllerConfig{
		PodClient:                 n.config.Client.CoreV1(),
		PodInformer:               pods,
		EventRecorder:             quiet{n.recorder},
		Provider:                  n,
		ConfigMapInformer:         unread.ConfigMaps(),
		SecretInformer:            unread.Secrets(),
		ServiceInformer:           unread.Services(),
		SkipDownwardAPIResolution: true,

		SyncPodsFromKubernetesRateLimiter:    retries(),
		DeletePodsFromKubernetesRateLimiter:  retries(),
		SyncPodStatusFromProviderRateLimiter: retries(),
	})
}

// retries has a pod that failed wait longer each time. Pods do not wait for each other: the default would let 10 a second start,
// and as many say how they are.
func retries() workqueue.TypedRateLimiter[any] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[any](5*time.Millisecond, 10*time.Second)
}

// serveKubelet serves logs and commands until ctx ends.
func (n *Node) serveKubelet(ctx context.Context, group *errgroup.Group) error {
	listener, err := net.Listen("tcp", netip.AddrPortFrom(n.config.Network.HostAddress(), KubeletPort).String())
	if err != nil {
		return fmt.Errorf("serve logs and commands: %w", err)
	}
	server := &http.Server{Handler: n.kubeletHandler(), TLSConfig: n.config.KubeletTLS, ReadHeaderTimeout: 10 * time.Second}
	group.Go(func() error {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
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

// quiet drops the events that virtual-kubelet emits for each call of its provider: they are no part of what a kubelet
// tells.
type quiet struct{ record.EventRecorder }

func (quiet) Event(k8sruntime.Object, string, string, string)          {}
func (quiet) Eventf(k8sruntime.Object, string, string, string, ...any) {}

func (n *Node) object() *corev1.Node {
	now := metav1.Now()
	address := n.config.Network.HostAddress().String()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.config.Name, Labels: map[string]string{
			corev1.LabelHostname:                    n.config.Name,
			corev1.LabelOSStable:                    runtime.GOOS,
			corev1.LabelArchStable:                  runtime.GOARCH,
			"node-role.kubernetes.io/control-plane": "",
		}},
		Status: corev1.NodeStatus{
			Capacity:        capacity,
			Allocatable:     capacity,
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: n.config.Name}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: KubeletPort}},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: n.config.Version, OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
				OSImage: "olmkit embedded", ContainerRuntimeVersion: "process://1",
			},
		},
	}
	for kind, healthy := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse,
		corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse,
	} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: healthy, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "NodeIsUp", Message: "pods run as processes",
		})
	}
	slices.SortFunc(node.Status.Conditions, func(a, b corev1.NodeCondition) int { return strings.Compare(string(a.Type), string(b.Type)) })
	return node
}

func (n *Node) event(p *corev1.Pod, kind, reason, message string) {
	n.recorder.Event(p, kind, reason, message)
}

func (n *Node) find(namespace, name string) (*pod, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p, ok := n.pods[namespace+"/"+name]; ok {
		return p, nil
	}
	return nil, errdefs.NotFoundf("pod %s/%s is not on this node", namespace, name)
}

// NotifyPods takes the function that is to be told of every changed status.
func (n *Node) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { n.notify = notify }

// CreatePod starts a pod.
func (n *Node) CreatePod(_ context.Context, object *corev1.Pod) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := object.Namespace + "/" + object.Name
	if old, ok := n.pods[key]; ok && old.current().UID != object.UID {
		return stillEnding(object)
	}
	n.pods[key] = n.newPod(object)
	return nil
}

// stillEnding is the error for a pod whose predecessor of the same name has not ended yet; virtual-kubelet tries again.
func stillEnding(object *corev1.Pod) error {
	return fmt.Errorf("the former pod %s/%s is still ending", object.Namespace, object.Name)
}

// UpdatePod takes a changed pod. One that a StatefulSet made anew is not the pod that still ends under its name.
func (n *Node) UpdatePod(_ context.Context, object *corev1.Pod) error {
	p, err := n.find(object.Namespace, object.Name)
	switch {
	case err != nil:
		return err
	case p.current().UID != object.UID:
		return stillEnding(object)
	}
	p.update(object)
	return nil
}

// DeletePod ends a pod, without waiting for it.
func (n *Node) DeletePod(_ context.Context, object *corev1.Pod) error {
	p, err := n.find(object.Namespace, object.Name)
	switch {
	case err != nil:
		return err
	case p.current().UID != object.UID: // its predecessor ends already
		return errdefs.NotFoundf("pod %s/%s is not on this node yet", object.Namespace, object.Name)
	}
	p.update(object)
	go func() {
		p.end(graceOf(object))
		n.mu.Lock()
		defer n.mu.Unlock()
		if key := object.Namespace + "/" + object.Name; n.pods[key] == p {
			delete(n.pods, key)
		}
	}()
	return nil
}

// KillContainers ends every process that runs in a pod at once. Their pods start them again as their restart policies say.
func (n *Node) KillContainers() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for key, p := range n.pods {
		p.mu.Lock()
		for name, c := range p.containers {
			if c.process == nil {
				continue
			}
			if err := c.process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
				errs = append(errs, fmt.Errorf("kill container %s/%s: %w", key, name, err))
			}
		}
		p.mu.Unlock()
	}
	return errors.Join(errs...)
}

// GetPod returns a pod of this node with its status.
func (n *Node) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	p, err := n.find(namespace, name)
	if err != nil {
		return nil, err
	}
	return p.snapshot(), nil
}

// GetPodStatus returns the status of a pod of this node.
func (n *Node) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	p, err := n.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &p.Status, nil
}

// GetPods returns all pods of this node.
func (n *Node) GetPods(context.Context) ([]*corev1.Pod, error) {
	n.mu.Lock()
	running := make([]*pod, 0, len(n.pods))
	for _, p := range n.pods {
		running = append(running, p)
	}
	n.mu.Unlock()
	pods := make([]*corev1.Pod, 0, len(running))
	for _, p := range running {
		pods = append(pods, p.snapshot())
	}
	return pods, nil
}

// kubeletHandler serves what the API server asks a node for on behalf of kubectl.
func (n *Node) kubeletHandler() http.Handler {
	return api.PodHandler(api.PodHandlerConfig{
		RunInContainer:        n.exec,
		GetContainerLogs:      n.logs,
		GetPods:               n.GetPods,
		GetPodsFromKubernetes: n.GetPods,
		StreamCreationTimeout: 30 * time.Second,
		StreamIdleTimeout:     4 * time.Hour,
	}, false)
}

func (n *Node) container(namespace, name, container string) (*container, error) {
	p, err := n.find(namespace, name)
	if err != nil {
		return nil, err
	}
	c, ok := p.containers[container]
	if !ok {
		return nil, errdefs.NotFoundf("pod %s/%s has no container %s", namespace, name, container)
	}
	return c, nil
}

func (n *Node) exec(ctx context.Context, namespace, name, container string, command []string, streams api.AttachIO) error {
	c, err := n.container(namespace, name, container)
	if err != nil {
		return err
	}
	code, err := c.exec(ctx, command, streams.Stdin(), streams.Stdout(), streams.Stderr())
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

func (n *Node) logs(ctx context.Context, namespace, name, container string, options api.ContainerLogOpts) (io.ReadCloser, error) {
	c, err := n.container(namespace, name, container)
	if err != nil {
		return nil, err
	}
	c.pod.mu.Lock()
	log := c.log
	if options.Previous {
		log = c.previousLog
	}
	c.pod.mu.Unlock()
	if log == nil {
		return nil, errdefs.NotFoundf("container %s of pod %s/%s has not run before", container, namespace, name)
	}
	since := options.SinceTime
	if options.SinceSeconds > 0 {
		since = time.Now().Add(-time.Duration(options.SinceSeconds) * time.Second)
	}
	reader, writer := io.Pipe()
	go func() {
		writer.CloseWithError(log.copy(ctx, writer, logOptions{tail: options.Tail, since: since, follow: options.Follow, timestamps: options.Timestamps}))
	}()
	return reader, nil
}

// WriteLogs copies the output of every container, or of the one called namespace/pod/container, each line with the
// container it is of and its time.
func (n *Node) WriteLogs(ctx context.Context, w io.Writer, only string) error {
	n.mu.Lock()
	keys := make([]string, 0, len(n.pods))
	for key := range n.pods {
		keys = append(keys, key)
	}
	n.mu.Unlock()
	slices.Sort(keys)
	for _, key := range keys {
		namespace, name, _ := strings.Cut(key, "/")
		p, err := n.find(namespace, name)
		if err != nil {
			continue
		}
		for container, c := range p.containers {
			id := key + "/" + container
			if only != "" && only != id {
				continue
			}
			p.mu.Lock()
			runs := []*runLog{c.previousLog, c.log}
			p.mu.Unlock()
			for _, log := range runs {
				if log == nil {
					continue
				}
				if err := log.copy(ctx, prefixer{w, id}, logOptions{}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// prefixer puts the name of the container before each line. Each write is one line.
type prefixer struct {
	w    io.Writer
	name string
}

func (p prefixer) Write(line []byte) (int, error) {
	if _, err := fmt.Fprintf(p.w, "%s| %s", p.name, line); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Users tells whether this process may become any user: in a user namespace with one user mapped it may not.
func Users() bool {
	data, err := os.ReadFile(filepath.Join("/proc", "self", "uid_map"))
	if err != nil {
		return false
	}
	words := strings.Fields(string(data))
	return len(words) >= 3 && (len(words) > 3 || words[2] != "1")
}
