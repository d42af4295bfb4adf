// Package olmv1 installs the Operator Lifecycle Manager, version 1 (operator-controller and catalogd), and drives its API:
// ClusterCatalogs and ClusterExtensions. What only OLM v1 knows (its kinds, its conditions, how its pods are set up) stays here.
package olmv1

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Version is the release of OLM v1 that Install installs.
const Version = cluster.OLMv1Version

// Namespace is where OLM v1 runs.
const Namespace = "olmv1-system"

// Names of OLM v1's two programs.
const (
	programCatalogd   = "catalogd"
	programController = "operator-controller"
)

// Images are the references that OLM v1's own pods run, by their programs.
var Images = map[string]string{
	programCatalogd:   "quay.io/operator-framework/catalogd:" + Version,
	programController: "quay.io/operator-framework/operator-controller:" + Version,
}

// Scheme knows Kubernetes' own kinds, CustomResourceDefinitions and OLM v1's kinds. It is made when it is first needed: most commands
// reach no cluster.
var Scheme = sync.OnceValue(newScheme)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, addToScheme} {
		utilruntime.Must(add(s))
	}
	return s
}

// Client speaks to OLM v1 on one cluster. It is a lifecycle.Manager; the zero Client tells what it knows of itself.
type Client struct {
	client.WithWatch
	// Walk is the id of the walk that the client makes things for, or "".
	Walk string
	// Run is the package that the client makes things for in 'bundle run', or "".
	Run string
	// Package is what is to be installed.
	Package *catalog.Package

	read    sync.Once         // byImage
	byImage map[string]string // as bundlesByImage tells: each container of each pod is asked about, over and over
}

// Connect returns a Client that uses config without client-side throttling.
func Connect(config *rest.Config) (*Client, error) {
	c, err := lifecycle.Unthrottled(config, Scheme())
	if err != nil {
		return nil, err
	}
	return &Client{WithWatch: c}, nil
}

// Manage returns how a walk of p connects.
func Manage(p *catalog.Package) lifecycle.Connect {
	return func(config *rest.Config, walk string, _ []string) (lifecycle.Manager, error) {
		c, err := Connect(config)
		if err != nil {
			return nil, err
		}
		c.Walk, c.Package = walk, p
		return c, nil
	}
}

// Client returns what c speaks through.
func (c *Client) Client() client.WithWatch { return c.WithWatch }

// Modes returns AllNamespaces if r supports it: OLM v1 has no other, unless by the feature gate SingleOwnNamespaceInstallSupport.
func (c *Client) Modes(r *lifecycle.Release) []lifecycle.Mode {
	return slices.DeleteFunc(r.Modes(), func(m lifecycle.Mode) bool { return m != lifecycle.AllNamespaces })
}

// Version returns the version of operator-controller, by the tag of its image.
func (c *Client) Version(ctx context.Context) (string, error) {
	var list appsv1.DeploymentList
	if err := c.List(ctx, &list, client.MatchingLabels{"app.kubernetes.io/name": programController}); err != nil {
		return "", fmt.Errorf("look for OLM v1: %w", err)
	}
	for _, d := range list.Items {
		for _, container := range d.Spec.Template.Spec.Containers {
			if _, tag, ok := strings.Cut(container.Image, programController+":"); ok {
				return tag, nil
			}
		}
	}
	return "", hint.With(fmt.Errorf("OLM v1 is not on the cluster: there is no Deployment of %s", programController),
		"install it by upstream's script, or walk on a cluster of olmkit's own, without --cluster existing")
}

// labels are those of what c makes.
func (c *Client) labels() map[string]string {
	labels := cluster.Labels(c.Walk)
	if c.Run != "" {
		labels[cluster.RunLabel] = c.Run
	}
	return labels
}

// versionOf is the version of the bundle called name.
func (c *Client) versionOf(name string) (string, error) {
	b := c.Package.Bundle(name)
	if b == nil {
		return "", fmt.Errorf("package %s has no bundle %s", c.Package.Name, name)
	}
	return b.Version.String(), nil
}

// describe names an object as findings do: Kind/namespace/name.
func describe(o client.Object) string {
	kind := "object"
	if known, err := apiutil.GVKForObject(o, Scheme()); err == nil {
		kind = known.Kind
	}
	return kind + "/" + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// ignoreMissing drops errors that say that what is asked for is not there, or not even of a kind that is.
func ignoreMissing(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}
