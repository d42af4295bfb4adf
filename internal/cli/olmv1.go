package cli

import (
	"context"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
	"github.com/olmkit/olmkit/internal/walk"
)

// olmV1Cluster is an embedded cluster whose catalogs are images, as OLM v1 reads them.
type olmV1Cluster struct {
	*embedded.Cluster
	store *olmv1.Store
}

// startOLMv1 gets what is missing of OLM v1, and starts a cluster of a release of Kubernetes that can run it.
func startOLMv1(ctx context.Context, release string, from embedded.Source, options *walk.Options) (cluster.Cluster, error) {
	programs, err := embedded.OLMv1Programs(ctx, from, options.Progress)
	if err != nil {
		return nil, err
	}
	c, err := embedded.Start(ctx, embedded.Options{Kubernetes: release, Components: from, Progress: options.Progress, Audit: true})
	if err != nil {
		return nil, err
	}
	for name, ref := range olmv1.Images {
		if err := c.LoadImage(ctx, ref, programs[name]); err != nil {
			_ = c.Close(context.WithoutCancel(ctx))
			return nil, err
		}
	}
	return &olmV1Cluster{Cluster: c, store: &olmv1.Store{Host: c}}, nil
}

// Catalog pushes the catalog, and its bundles, to the cluster's registry.
func (c *olmV1Cluster) Catalog(ctx context.Context, name string, fbc []byte) (cluster.CatalogAddress, error) {
	return c.store.Catalog(ctx, name, fbc)
}

// Describe names what such a cluster does not cover.
func (c *olmV1Cluster) Describe() cluster.Description {
	d := c.Cluster.Describe()
	d.Limitations = embedded.LimitationsUnderOLMv1(d.Limitations)
	return d
}

// install installs OLM v1, and returns how a walk of p drives it.
func (c *olmV1Cluster) install(ctx context.Context, p *catalog.Package, options *walk.Options) error {
	client, err := olmv1.Connect(c.Config())
	if err != nil {
		return err
	}
	options.Connect = olmv1.Manage(p)
	return options.Progress.Start("OLM %s", olmv1.Version).End(olmv1.Install(ctx, client, c.Cluster))
}
