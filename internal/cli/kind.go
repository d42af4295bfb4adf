package cli

import (
	"cmp"
	"context"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/cluster/kind"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
	"github.com/olmkit/olmkit/internal/progress"
	"github.com/olmkit/olmkit/internal/walk"
)

// Names of kinds of clusters.
const (
	kindEmbedded = "embedded"
	kindKind     = "kind"
	kindExisting = "existing"
)

// clusterKind is a kind of cluster to walk on.
type clusterKind struct {
	name string
	like cluster.Cluster // one that is not up: it tells what such clusters can do
	// start brings such a cluster up, or reaches it, and completes the options with where on it to install.
	start func(*upgradeTest, context.Context, *walk.Options) (cluster.Cluster, error)
}

var clusterKinds = []clusterKind{
	{kindEmbedded, &embedded.Cluster{}, (*upgradeTest).startEmbedded},
	{kindKind, &kind.Cluster{}, (*upgradeTest).startKind},
	{kindExisting, &existing.Cluster{}, (*upgradeTest).open},
}

// clusterKindNames lists the kinds, for users.
func clusterKindNames() string {
	var names []string
	for _, k := range clusterKinds {
		names = append(names, k.name)
	}
	return strings.Join(names, ", ")
}

// kind is the kind of cluster to walk on, without a name if there is none such.
func (t *upgradeTest) kind() clusterKind {
	for _, k := range clusterKinds {
		if k.name == t.cluster {
			return k
		}
	}
	return clusterKind{}
}

// under are the lifecycle manager and the kind of cluster for a version of OLM, both not connected: they tell what they can do.
func (k clusterKind) under(version string) (lifecycle.Manager, cluster.Cluster) {
	if version == olmV1 {
		return &olmv1.Client{}, k.like
	}
	return &olmv0.Client{}, k.like
}

// walkNamespace is where operators that serve all namespaces are installed on a cluster that is not ours.
const walkNamespace = "olmkit-walk"

// checkCluster refuses flags that do not fit the kind of cluster, or a version of OLM that is to run there.
func (t *upgradeTest) checkCluster(version string) error {
	switch {
	case t.kind().name == "":
		return usagef("--cluster %s: must be one of %s", t.cluster, clusterKindNames())
	case t.plan.olm == olmBoth && t.shard != "":
		return hint.With(usagef("--shard is of the plan for one version of OLM"), "walk the shards under each, with --olm v0 and --olm v1, or both in one with --parallel")
	case t.plan.olm == olmBoth && t.cluster == kindExisting:
		return hint.With(usagef("--olm %s: an existing cluster takes one walk at a time", olmBoth), "walk under OLM v0 first, and then under OLM v1")
	case version == olmV1 && t.olm:
		return hint.With(usagef("--install-olm installs OLM v0"), "install OLM v1 by upstream's script, and leave --install-olm out")
	case t.pullable.given() && (version != olmV1 || t.cluster != kindExisting):
		return hint.With(usagef("--registry is for an existing cluster with OLM v1"), "leave it out, or add --cluster existing --olm v1")
	case t.cluster == kindExisting && len(t.images) > 0:
		return hint.With(usagef("--image has no meaning for an existing cluster: its nodes pull their images themselves"),
			"push the images to where the bundles say, or load them into the cluster first ('olmkit cluster load', 'kind load')")
	case t.cluster == kindExisting && t.parallel > 1:
		return hint.With(usagef("--parallel %d: an existing cluster takes one walk at a time", t.parallel), "walk shards of the plan on several clusters with --shard")
	case t.cluster != kindExisting && (t.existing.Kubeconfig != "" || t.existing.Context != "" || t.olm):
		return hint.With(usagef("--kubeconfig, --context and --install-olm are for an existing cluster"), "add --cluster existing")
	case t.cluster != kindEmbedded && len(t.kubernetes) > 0:
		return noKubernetes(t.cluster)
	case t.cluster != kindEmbedded && len(t.olmVersions) > 0:
		return noOLMVersion(t.cluster)
	case version == olmV1 && len(t.olmVersions) > 0:
		return hint.With(usagef("--olm-version is of OLM v0"), "leave it out, or walk under OLM v0 alone, without --olm %s", t.plan.olm)
	case t.cluster != kindKind && t.nodeImage != "":
		return hint.With(usagef("--node-image is for a kind cluster"), "add --cluster kind")
	}
	return nil
}

func (t *upgradeTest) startEmbedded(ctx context.Context, options *walk.Options) (cluster.Cluster, error) {
	options.Namespace = cmp.Or(options.Namespace, olmv0.OperatorsNamespace)
	if t.plan.olm == olmV1 {
		return startOLMv1(ctx, t.release, t.components, options.Progress)
	}
	return embedded.Start(ctx, embedded.Options{Kubernetes: t.release, OLM: cmp.Or(t.olmRelease, embedded.OLMVersion), Components: t.components, Progress: options.Progress, Audit: true})
}

func (t *upgradeTest) startKind(ctx context.Context, options *walk.Options) (cluster.Cluster, error) {
	options.Namespace = cmp.Or(options.Namespace, olmv0.OperatorsNamespace)
	start := kind.Options{NodeImage: t.nodeImage, Progress: options.Progress, Audit: true, Program: kindProgram(t.components, options.Progress)}
	if t.plan.olm == olmV1 {
		return startOLMv1OnKind(ctx, start, t.components)
	}
	return kind.Start(ctx, start)
}

// kindProgram returns what gets the program that makes kind clusters.
func kindProgram(from embedded.Source, told *progress.Printer) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return embedded.KindProgram(ctx, from, told) }
}

// open reaches the existing cluster, on which no earlier walk may have left anything.
func (t *upgradeTest) open(ctx context.Context, options *walk.Options) (cluster.Cluster, error) {
	id, err := newWalkID(time.Now())
	if err != nil {
		return nil, err
	}
	options.Namespace, options.ID = walkNamespace, id
	access := t.existing
	access.Walk, access.OLMv1 = id, t.plan.olm == olmV1
	c, err := existing.Open(ctx, access)
	if err != nil {
		return nil, err
	}
	if err := refuseLeftovers(ctx, c, access); err != nil || !access.OLMv1 {
		return c, err
	}
	return t.withOLMv1(ctx, c)
}

// serverImage is the image of this release of olmkit, or of the last one if this is none.
func serverImage() string {
	tag := version()
	if !semver.IsValid(tag) || module.IsPseudoVersion(tag) || semver.Build(tag) != "" {
		tag = "latest"
	}
	return "ghcr.io/olmkit/olmkit:" + tag
}
