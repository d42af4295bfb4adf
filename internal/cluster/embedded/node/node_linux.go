// Package node is a Kubernetes node whose containers are plain processes in namespaces: what the kubelet is elsewhere.
// It runs images that it was told how to run, and simulates the others: their containers are reported as running.
package node

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"

	"github.com/olmkit/olmkit/internal/cluster"
)

// KubeletPort is where the API server asks the node for logs and commands.
const KubeletPort = 10250

// The kubelet's defaults: how long the node counts as alive after it last renewed its lease, how often it does that, and how often
// it writes its status.
const (
	leaseSeconds = 40
	renewPeriod  = leaseSeconds / 4 * time.Second
	statusPeriod = 5 * time.Minute
)

// capacity is generous: the node simulates more than it runs, and nothing is to wait for room.
var capacity = corev1.ResourceList{
	corev1.ResourceCPU:              resource.MustParse("10000"),
	corev1.ResourceMemory:           resource.MustParse("64Ti"),
	corev1.ResourceEphemeralStorage: resource.MustParse("64Ti"),
	corev1.ResourcePods:             resource.MustParse("60000"),
}

// PodsDir is the directory, below that of the configuration, with the pods' volumes and roots.
const PodsDir = "pods"

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
	DNS        netip.Addr  // where pods ask for names
}

// Node runs pods.
type Node struct {
	config   Config
	recorder record.EventRecorder
	attach   func(idle bool) (*endpoint, error) // gives a pod its network

	queue workqueue.TypedRateLimitingInterface[string] // of pods to compare with the API, by namespace/name

	mu   sync.Mutex
	pods map[string]*pod // by namespace/name
}

// New returns a node that Run brings to life.
func New(config Config) *Node {
	return &Node{
		config: config, attach: config.Network.attachPod,
		queue: workqueue.NewTypedRateLimitingQueue(retries()), pods: map[string]*pod{},
	}
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

	group, ctx := errgroup.WithContext(ctx)
	if err := n.serveKubelet(ctx, group); err != nil {
		return err
	}
	group.Go(func() error { return n.runPods(ctx) })
	group.Go(func() error {
		provisioner.Run(ctx)
		return nil
	})
	group.Go(func() error {
		object := n.object()
		if err := n.register(ctx, object); err != nil {
			return err
		}
		ready()
		group.Go(func() error {
			n.renewLease(ctx)
			return nil
		})
		n.keepStatus(ctx, object)
		return nil
	})
	return group.Wait()
}

// register gives the Node the labels and status of object, and creates it if the API has none.
func (n *Node) register(ctx context.Context, object *corev1.Node) error {
	nodes := n.config.Client.CoreV1().Nodes()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": object.Labels}, "status": object.Status})
	if err != nil {
		return err
	}
	_, err = nodes.Patch(ctx, object.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		_, err = nodes.Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("register Node %s: %w", object.Name, err)
	}
	return nil
}

// keepStatus writes the Node's status from time to time, until ctx ends: others may have changed it.
func (n *Node) keepStatus(ctx context.Context, object *corev1.Node) {
	ticker := time.NewTicker(statusPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for i := range object.Status.Conditions {
			object.Status.Conditions[i].LastHeartbeatTime = metav1.Now()
		}
		if err := n.register(ctx, object); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "The Node keeps its former status")
		}
	}
}

// renewLease keeps the Lease by which the node counts as alive, until ctx ends. The Node owns it: it goes with the Node.
func (n *Node) renewLease(ctx context.Context) {
	own := func(l *coordinationv1.Lease) error {
		if len(l.OwnerReferences) > 0 {
			return nil
		}
		node, err := n.config.Client.CoreV1().Nodes().Get(ctx, n.config.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
		return nil
	}
	lease.NewController(clock.RealClock{}, n.config.Client, n.config.Name, leaseSeconds, nil, renewPeriod, n.config.Name, corev1.NamespaceNodeLease, own).Run(ctx)
}

func (n *Node) object() *corev1.Node {
	now := metav1.Now()
	address := n.config.Network.HostAddress().String()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.config.Name, Labels: map[string]string{
			corev1.LabelHostname:                    n.config.Name,
			corev1.LabelOSStable:                    runtime.GOOS,
			corev1.LabelArchStable:                  runtime.GOARCH,
			corev1.LabelTopologyZone:                "embedded",
			corev1.LabelTopologyRegion:              "embedded",
			"node-role.kubernetes.io/control-plane": "",
			"node-role.kubernetes.io/worker":        "", // as on real clusters, for those who choose one
		}},
		Status: corev1.NodeStatus{
			Capacity:        capacity,
			Allocatable:     capacity,
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: n.config.Name}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: KubeletPort}},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: n.config.Version, OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
				OSImage: "olmkit embedded", ContainerRuntimeVersion: cluster.SimulatingRuntime + "1",
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
		p := n.find(key)
		if p == nil {
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
