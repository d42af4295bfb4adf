package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/cluster/kind"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/upgrade"
)

// Kinds of clusters to walk on.
const (
	kindEmbedded = "embedded"
	kindKind     = "kind"
	kindExisting = "existing"
)

var clusterKinds = []string{kindEmbedded, kindKind, kindExisting}

// walkNamespace is where operators that serve all namespaces are installed on a cluster that is not ours.
const walkNamespace = "olmkit-walk"

// checkCluster refuses flags that do not fit the kind of cluster.
func (t *upgradeTest) checkCluster() error {
	switch {
	case !slices.Contains(clusterKinds, t.cluster):
		return usagef("--cluster %s: it is one of %s", t.cluster, strings.Join(clusterKinds, ", "))
	case t.cluster == kindExisting && len(t.images) > 0:
		return hint.With(usagef("--image has no meaning for an existing cluster: its nodes pull their images themselves"),
			"push the images to where the bundles say, or load them into the cluster first ('olmkit cluster load', 'kind load')")
	case t.cluster == kindExisting && t.parallel > 1:
		return hint.With(usagef("--parallel %d: an existing cluster takes one walk at a time", t.parallel), "walk shards of the plan on several clusters with --shard")
	case t.cluster != kindExisting && (t.existing.Kubeconfig != "" || t.existing.Context != "" || t.olm):
		return hint.With(usagef("--kubeconfig, --context and --install-olm are for an existing cluster"), "add --cluster existing")
	case t.cluster != kindKind && t.nodeImage != "":
		return hint.With(usagef("--node-image is for a kind cluster"), "add --cluster kind")
	}
	return nil
}

// start brings up, or reaches, the cluster to walk on, and completes options with where on it to install.
func (t *upgradeTest) start(ctx context.Context, options *upgrade.Options) (cluster.Cluster, error) {
	if t.cluster == kindExisting {
		return t.open(ctx, options)
	}
	options.Namespace = cmp.Or(options.Namespace, olmv0.OperatorsNamespace)
	if t.cluster == kindKind {
		return kind.Start(ctx, kind.Options{NodeImage: t.nodeImage, Progress: options.Progress, Audit: true})
	}
	return embedded.Start(ctx, embedded.Options{Progress: options.Progress, Audit: true})
}

// open reaches the existing cluster, on which no earlier walk may have left anything.
func (t *upgradeTest) open(ctx context.Context, options *upgrade.Options) (cluster.Cluster, error) {
	id, err := newWalkID(time.Now())
	if err != nil {
		return nil, err
	}
	options.Namespace, options.ID = walkNamespace, id
	access := t.existing
	access.Walk = id
	c, err := existing.Open(ctx, access)
	if err != nil {
		return nil, err
	}
	if err := refuseLeftovers(ctx, c, access); err != nil {
		return nil, err
	}
	return c, nil
}

// serverImage is the image of this release of olmkit, or of the last one if this is none.
func serverImage() string {
	tag := version()
	if !semver.IsValid(tag) || module.IsPseudoVersion(tag) || semver.Build(tag) != "" {
		tag = "latest"
	}
	return "ghcr.io/olmkit/olmkit:" + tag
}
