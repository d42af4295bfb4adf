// Package olmv0 installs the Operator Lifecycle Manager, version 0, into any cluster and speaks its API in verbs:
// publish a catalog, subscribe, uninstall, explain. What only OLM v0 knows (its kinds, its phases, what it leaves
// behind) stays here.
package olmv0

import (
	"cmp"
	"strings"
	"sync"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Version is the release of OLM that olmkit installs unless another one is asked for.
const Version = cluster.OLMVersion

// Image is the reference that the pods of Version run.
const Image = cluster.OLMRepository + ":" + Version

// Release is an OLM that Install installs. The zero Release is Version.
type Release struct {
	Version string
	CRDs    []byte // its definitions, as YAML; Version needs none

	// simulated has Jobs that unpack bundles be simulated: where OLM's own image is there, it has not the programs that they run.
	simulated bool
}

// Name is the release's version.
func (r Release) Name() string { return cmp.Or(r.Version, Version) }

// image is the reference that the release's own pods run.
func (r Release) image() string { return cluster.OLMRepository + ":" + r.Name() }

// Where OLM's parts live, as in its released manifests (deploy/upstream/quickstart/olm.yaml).
const (
	Namespace          = "olm"       // its operators and its global catalogs
	OperatorsNamespace = "operators" // what is installed for all namespaces
)

// Scheme knows Kubernetes' own kinds, CustomResourceDefinitions and OLM's kinds. It is made when it is first needed: most commands
// reach no cluster.
var Scheme = sync.OnceValue(newScheme)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, operatorsv1.AddToScheme, operatorsv2.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}

// Client speaks to OLM on one cluster. It is a lifecycle.Manager; the zero Client tells what it knows of itself.
type Client struct {
	client.WithWatch
	// Walk is the id of the walk that the client makes things for, or "".
	Walk string
	// Run is the package that the client makes things for in 'bundle run', or "".
	Run string
	// Brings names what OLM makes of the cluster's scope for the bundles of that walk, and does not remove, each Kind/name. It
	// is noted on the cluster, for who finds the rest of a walk that could not remove it.
	Brings []string

	// forgotten is the state of a Subscription that does not name what is installed, and since is when that was seen first, or written last.
	forgotten string
	since     time.Time
}

// BringsAnnotation holds, on namespaces and CatalogSources of a walk, what the walk brings: Kind/name, separated by commas.
const BringsAnnotation = "olmkit.dev/brings"

func (c *Client) annotations() map[string]string {
	if len(c.Brings) == 0 {
		return nil
	}
	return map[string]string{BringsAnnotation: strings.Join(c.Brings, ",")}
}

// Manage is a lifecycle.Connect.
func Manage(config *rest.Config, walk string, brings []string) (lifecycle.Manager, error) {
	c, err := Connect(config)
	if err != nil {
		return nil, err
	}
	c.Walk, c.Brings = walk, brings
	return c, nil
}

// Client returns what c speaks through.
func (c *Client) Client() client.WithWatch { return c.WithWatch }

// Modes returns those that r supports.
func (c *Client) Modes(r *lifecycle.Release) []lifecycle.Mode { return r.Modes() }

// labels are those of what c makes.
func (c *Client) labels() map[string]string {
	l := cluster.Labels(c.Walk)
	if c.Run != "" {
		l[cluster.RunLabel] = c.Run
	}
	return l
}

// Connect returns a Client that uses config without client-side throttling.
func Connect(config *rest.Config) (*Client, error) {
	c, err := lifecycle.Unthrottled(config, Scheme())
	if err != nil {
		return nil, err
	}
	return &Client{WithWatch: c}, nil
}
