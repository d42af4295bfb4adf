// Package existing is a Kubernetes cluster that was there before, reached by a kubeconfig. It is left as it was found: what
// olmkit makes on it stands in a namespace of its own and is removed.
package existing

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
)

// Namespace is where the catalogs are served.
const Namespace = "olmkit-catalog"

// Options of Open.
type Options struct {
	Kubeconfig string // file; "" for KUBECONFIG, ~/.kube/config or the pod's own account
	Context    string // "" for the current one
	// Server is the image of olmkit that serves catalogs on the cluster.
	Server string
	// Walk is the id by which what is made on the cluster is found again.
	Walk string
	// OLMv1 says that OLM v1 installs what is walked, and not OLM v0.
	OLMv1 bool
}

// Cluster is a cluster that was there before.
type Cluster struct {
	name       string
	version    string
	server     string
	config     *rest.Config
	client     kubernetes.Interface
	walk       string
	namespaced bool      // the namespace was made
	served     []*served // what was started and not removed, in that order
	current    *served   // what OLM may read
	published  int
}

// Open reaches a cluster and makes sure that what a walk needs is allowed there. It changes nothing.
func Open(ctx context.Context, options Options) (*Cluster, error) {
	c, err := Connect(ctx, options)
	if err != nil {
		return nil, err
	}
	if options.OLMv1 {
		return c, c.permitted(ctx, slices.Concat(needs, needsV1))
	}
	return c, c.permitted(ctx, slices.Concat(needs, needsV0))
}

// Connect reaches a cluster.
func Connect(ctx context.Context, options Options) (*Cluster, error) {
	if info, err := os.Stat(options.Kubeconfig); err == nil && info.Mode()&fs.ModeDevice != 0 { // client-go reads it to its end
		return nil, hint.With(fmt.Errorf("read the kubeconfig: %s is a device", options.Kubeconfig), "name a file with --kubeconfig")
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = options.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: options.Context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, hint.With(fmt.Errorf("read the kubeconfig: %w", err), "name one with --kubeconfig or KUBECONFIG, and a context of it with --context")
	}
	config.QPS = -1
	cluster.Stay(config)
	c := &Cluster{name: config.Host, server: options.Server, walk: options.Walk, config: config}
	if raw, err := loader.RawConfig(); err == nil && raw.CurrentContext != "" {
		c.name = raw.CurrentContext
	}
	if options.Context != "" {
		c.name = options.Context
	}
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	var answered version.Info
	answer, err := c.client.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(answer, &answered)
	}
	if err != nil {
		return nil, hint.With(fmt.Errorf("reach the API server at %s: %w", config.Host, err), "try 'kubectl version' with the same kubeconfig")
	}
	c.version = answered.GitVersion
	return c, nil
}

// needs are the rights that a walk cannot do without, whatever it walks, under both versions of OLM.
var needs = []authorizationv1.ResourceAttributes{
	{Verb: "create", Resource: "namespaces"},
	{Verb: "delete", Resource: "namespaces"},
	{Verb: "create", Resource: "configmaps"},
	{Verb: "delete", Resource: "configmaps"},
	{Verb: "create", Resource: "pods"},
	{Verb: "delete", Resource: "pods"},
	{Verb: "watch", Resource: "pods"},
	{Verb: "get", Resource: "pods", Subresource: "log"},
	{Verb: "watch", Group: "apps", Resource: "deployments"},
	{Verb: "watch", Group: "apps", Resource: "replicasets"},
	{Verb: "watch", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Verb: "update", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Verb: "delete", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Verb: "list", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Verb: "list", Resource: "events"},
	{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
	{Verb: "list", Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
	{Verb: "list", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"},
}

// needsV0 are those under OLM v0.
var needsV0 = []authorizationv1.ResourceAttributes{
	{Verb: "create", Group: "operators.coreos.com", Resource: "catalogsources"},
	{Verb: "create", Group: "operators.coreos.com", Resource: "operatorgroups"},
	{Verb: "create", Group: "operators.coreos.com", Resource: "subscriptions"},
	{Verb: "delete", Group: "operators.coreos.com", Resource: "subscriptions"},
	{Verb: "deletecollection", Group: "operators.coreos.com", Resource: "clusterserviceversions"},
	{Verb: "deletecollection", Group: "operators.coreos.com", Resource: "installplans"},
}

// needsV1 are those under OLM v1.
var needsV1 = []authorizationv1.ResourceAttributes{
	{Verb: "create", Resource: "serviceaccounts"},
	{Verb: "delete", Resource: "serviceaccounts"},
	{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Verb: "delete", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
	{Verb: "delete", Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
	{Verb: "create", Group: "olm.operatorframework.io", Resource: "clustercatalogs"},
	{Verb: "delete", Group: "olm.operatorframework.io", Resource: "clustercatalogs"},
	{Verb: "create", Group: "olm.operatorframework.io", Resource: "clusterextensions"},
	{Verb: "delete", Group: "olm.operatorframework.io", Resource: "clusterextensions"},
}

// permitted asks for all needs at once, so that who lacks several learns of all.
func (c *Cluster) permitted(ctx context.Context, needs []authorizationv1.ResourceAttributes) error {
	var denied []string
	for _, need := range needs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: need.DeepCopy()}}
		review, err := c.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("ask %s what is allowed: %w", c.name, err)
		}
		if !review.Status.Allowed {
			what := need.Verb + " " + need.Resource
			if need.Subresource != "" {
				what += "/" + need.Subresource
			}
			if need.Group != "" {
				what += "." + need.Group
			}
			denied = append(denied, what)
		}
	}
	if len(denied) > 0 {
		return hint.With(fmt.Errorf("the account of context %s may not, in all namespaces: %s", c.name, strings.Join(denied, ", ")),
			"use an account with the role cluster-admin: installing an operator takes it as well")
	}
	return nil
}

func (c *Cluster) labels() map[string]string { return cluster.Labels(c.walk) }

// Name is the kubeconfig's context.
func (c *Cluster) Name() string { return c.name }

// Server is the URL of the API server.
func (c *Cluster) Server() string { return c.config.Host }

// Config returns the kubeconfig's credentials.
func (c *Cluster) Config() *rest.Config { return c.config }

// LimitInline is the limitation that is about OLM v0.
const LimitInline = "bundles reached OLM inline from the catalog: OLM's unpack jobs and catalog pods did not run"

// Describe names the cluster, its version and what it does not cover.
func (c *Cluster) Describe() cluster.Description {
	return cluster.Description{Kind: "existing", Kubernetes: c.version, Limitations: []string{
		LimitInline,
		"what is stored of objects was seen through the API server only, not in etcd",
		cluster.LimitImages,
		"there was no audit log: what the API server refuses the operator is known as far as its log, events and conditions quote it and reviews of its access tell, " +
			"not what the API server does not know (404), conflicts, what admission denies, nor the values of a refused change",
		"that the operator reconciles was seen in what changed of the objects, what was made for them and their events, whoever wrote it",
	}}
}

// Disposable is false: the cluster stays.
func (c *Cluster) Disposable() bool { return false }

// LoadImage fails: the cluster's nodes pull what they run.
func (c *Cluster) LoadImage(_ context.Context, ref, _ string) error {
	return hint.With(fmt.Errorf("%s: the nodes of an existing cluster pull their images themselves", ref),
		"push it with 'olmkit image push' to where the bundle says, or load it into the cluster first ('olmkit cluster load', 'kind load'), and leave --image out")
}

// Simulated returns none: what is not there fails.
func (c *Cluster) Simulated(context.Context) ([]string, error) { return nil, nil }

// Logs copies a container's log; component is its namespace/pod/container. Those of the cluster's own components are not
// to be had.
func (c *Cluster) Logs(ctx context.Context, w io.Writer, component string) error {
	parts := strings.Split(component, "/")
	if len(parts) != 3 {
		return fmt.Errorf("logs of %s: they are those of a container, namespace/pod/container", component)
	}
	for _, previous := range []bool{true, false} {
		log, err := c.client.CoreV1().Pods(parts[0]).GetLogs(parts[1], cluster.LogOptions(parts[2], previous)).Stream(ctx)
		if err != nil {
			if previous {
				continue // it never restarted
			}
			return fmt.Errorf("read the log of %s: %w", component, err)
		}
		text, err := cluster.Tail(log)
		if err != nil {
			return fmt.Errorf("read the log of %s: %w", component, err)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}
