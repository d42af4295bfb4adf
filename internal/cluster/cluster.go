// Package cluster is the little that olmkit needs of a Kubernetes cluster to walk upgrades on it. Each kind of cluster
// is a package below this one; nothing outside of them branches on the kind.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/internal/hint"
)

// Cluster is a running Kubernetes cluster that OLM can be installed into.
type Cluster interface {
	// Name identifies the cluster to its user.
	Name() string
	// Config returns the administrator's credentials. Callers that change it copy it first.
	Config() *rest.Config
	// Describe names the cluster, its version and what it does not cover.
	Describe() Description
	// Disposable says that Close takes all with it that was ever made on the cluster, so that nothing need be removed.
	Disposable() bool
	// LoadImage makes ref runnable: source is a program (which becomes the file that the container's command names), or
	// a directory that is the image's root.
	LoadImage(ctx context.Context, ref, source string) error
	// Simulated tells which of the images that pods asked for so far could not be had, so that their containers were
	// reported as running without running.
	Simulated(ctx context.Context) ([]string, error)
	// Catalog makes the file-based catalog fbc (a stream of JSON documents) reachable for OLM under name, and says at
	// which address. Called again with the same name it serves the new content at a new address, once that is ready; OLM may
	// read what was served before until it is called once more.
	Catalog(ctx context.Context, name string, fbc []byte) (CatalogAddress, error)
	// Logs copies what the cluster's own components and its containers wrote so far: everything for an empty component,
	// else that of one: a control plane component by its name, a container by namespace/pod/container.
	Logs(ctx context.Context, w io.Writer, component string) error
	// Close ends the cluster if this process started it, and leaves nothing behind.
	Close(ctx context.Context) error
}

// logLines and logSize bound what is read of a container's log on a cluster that keeps logs of any size: the newest lines, and bytes of these.
const (
	logLines = 20_000
	logSize  = 8 << 20
)

// LogOptions asks for the log of a container, or of its run before, as far as it is read.
func LogOptions(container string, previous bool) *corev1.PodLogOptions {
	return &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: ptr.To[int64](logLines)}
}

// Tail reads all of a container's log, closes it, and returns the whole lines among its last logSize bytes.
func Tail(log io.ReadCloser) ([]byte, error) {
	text, err := newest(log)
	return text, errors.Join(err, log.Close())
}

func newest(log io.Reader) ([]byte, error) {
	var kept []byte
	shorten := func() {
		kept = append(kept[:0], kept[len(kept)-logSize:]...)
		kept = kept[bytes.IndexByte(kept, '\n')+1:]
	}
	chunk := make([]byte, 64<<10)
	for {
		n, err := log.Read(chunk)
		if kept = append(kept, chunk[:n]...); len(kept) > 2*logSize {
			shorten()
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(kept) > logSize {
		shorten()
	}
	return kept, nil
}

// OLMVersion is of OLM v0, as tools/cluster/go.mod pins it, and OLMRepository where the images of its releases are.
const (
	OLMVersion    = "v0.46.0"
	OLMRepository = "quay.io/operator-framework/olm"
)

// OLMv1Version is of operator-controller and catalogd, as tools/olmv1/go.mod pins it.
const OLMv1Version = "v1.10.0"

// name is what a cluster can be called: part of the names of folders, containers and objects.
var name = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

// CheckName returns an error if a cluster of the kinds that olmkit makes cannot be called s.
func CheckName(s string) error {
	if name.MatchString(s) {
		return nil
	}
	return hint.With(fmt.Errorf("%q is no name of a cluster", s), "use up to 40 lower case letters, digits and dashes")
}

// SimulatedContainer is how the ID of a container begins that was simulated.
const SimulatedContainer = "simulated://"

// Labels of what olmkit makes on clusters.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "olmkit"
	// WalkLabel is on all that a walk makes on a cluster that stays, so that it is found again however the walk ended. Its
	// value is the walk's id.
	WalkLabel = "olmkit.dev/walk"
	// RunLabel is on all that 'bundle run' makes on a cluster. Its value is the package.
	RunLabel = "olmkit.dev/run"
)

// Labels are those of what is made for a walk; walk is "" on a cluster that goes when the walk has ended.
func Labels(walk string) map[string]string {
	l := map[string]string{ManagedByLabel: ManagedBy}
	if walk != "" {
		l[WalkLabel] = walk
	}
	return l
}

// SimulatingRuntime begins the version of the container runtime of a node that reports pods to run, and Jobs to be complete, whose images
// it does not have.
const SimulatingRuntime = "process://"

// PodRefused is the reason, of an event and of the waiting containers, for which a cluster will never run a pod.
const PodRefused = "PodRefused"

// CatalogAddress is where OLM finds a catalog; exactly one field is set.
type CatalogAddress struct {
	Address string // host:port of a registry gRPC server
	Image   string // reference of an image of the catalog, as OLM v1 reads it
}

// LimitImages is the limitation of clusters whose nodes pull what they run.
const LimitImages = "of a new object no field was changed that names an image: a node would try to pull what nobody has"

// Description says what a pass on a kind of cluster shows.
type Description struct {
	Kind        string   // embedded, kind or existing
	Kubernetes  string   // version of the API server
	Simulates   bool     // containers of images that cannot be had are reported as running
	Limitations []string // what real clusters have and this one does not, a sentence each
}
