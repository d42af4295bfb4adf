package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/cluster/kind"
	"github.com/olmkit/olmkit/internal/image"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
	"github.com/olmkit/olmkit/internal/progress"
	"github.com/olmkit/olmkit/internal/walk"
)

// olmV1Host is a cluster that OLM v1 can be installed on.
type olmV1Host interface {
	cluster.Cluster
	olmv1.Host
}

// installOLMv1 installs OLM v1 on c.
func installOLMv1(ctx context.Context, c cluster.Cluster, options walk.Options) error {
	host, ok := c.(olmV1Host)
	if !ok {
		return fmt.Errorf("OLM v1 cannot be installed on cluster %s", c.Name())
	}
	client, err := olmv1.Connect(c.Config())
	if err != nil {
		return err
	}
	return options.Progress.Start("OLM %s", olmv1.Version).End(olmv1.Install(ctx, client, host))
}

// olmV1Cluster is an embedded cluster whose catalogs are images, as OLM v1 reads them.
type olmV1Cluster struct {
	*embedded.Cluster
	store *olmv1.Store
}

// startOLMv1 gets what is missing of OLM v1, and starts a cluster of a release of Kubernetes that can run it.
func startOLMv1(ctx context.Context, release string, from embedded.Source, told *progress.Printer) (cluster.Cluster, error) {
	programs, err := embedded.OLMv1Programs(ctx, from, told)
	if err != nil {
		return nil, err
	}
	c, err := embedded.Start(ctx, embedded.Options{Kubernetes: release, Components: from, Progress: told, Audit: true})
	if err != nil {
		return nil, err
	}
	if err := loadOLMv1(ctx, c, programs); err != nil {
		_ = c.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return &olmV1Cluster{Cluster: c, store: &olmv1.Store{Host: c}}, nil
}

// loadOLMv1 lets c run OLM v1's programs, which are given by their names.
func loadOLMv1(ctx context.Context, c cluster.Cluster, programs map[string]string) error {
	for name, ref := range olmv1.Images {
		if err := c.LoadImage(ctx, ref, programs[name]); err != nil {
			return err
		}
	}
	return nil
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

// olmV1OnKind is a kind cluster whose catalogs are images, as OLM v1 reads them.
type olmV1OnKind struct {
	*kind.Cluster
	store   *olmv1.Store
	because string // why OLM v1's released images cannot be pulled, so that olmkit's build runs; "" where the node pulls them
}

// startOLMv1OnKind starts a kind cluster, which pulls the released images of OLM v1, or olmkit's build of them where these cannot be reached.
func startOLMv1OnKind(ctx context.Context, options kind.Options, from embedded.Source) (cluster.Cluster, error) {
	if err := kind.Check(ctx); err != nil { // before anything is built
		return nil, err
	}
	because := whyNotPulled(ctx, image.Client{}, slices.Sorted(maps.Values(olmv1.Images))...)
	var programs map[string]string
	if because != "" {
		var err error
		if programs, err = embedded.OLMv1Programs(ctx, from, options.Progress); err != nil {
			return nil, err
		}
	}
	c, err := kind.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	for name, program := range programs {
		if err := c.ServeProgram(ctx, olmv1.Images[name], program); err != nil {
			_ = c.Close(context.WithoutCancel(ctx))
			return nil, err
		}
	}
	return &olmV1OnKind{Cluster: c, store: &olmv1.Store{Host: c}, because: because}, nil
}

// registryLimit is how long a registry may take to say that it has an image.
const registryLimit = 5 * time.Second

// whyNotPulled asks their registries for images, and tells why one cannot be had; "" if all can.
func whyNotPulled(ctx context.Context, registries image.Client, refs ...string) string {
	ctx, cancel := context.WithTimeout(ctx, registryLimit)
	defer cancel()
	for _, ref := range refs {
		if _, err := registries.Pinned(ctx, ref); err != nil {
			return err.Error()
		}
	}
	return ""
}

// Catalog pushes the catalog, and its bundles, to a registry that the cluster's pods reach, and has the nodes pull the programs that the
// bundles' operators run.
func (c *olmV1OnKind) Catalog(ctx context.Context, name string, fbc []byte) (cluster.CatalogAddress, error) {
	if err := c.ServePrograms(ctx, name, fbc); err != nil {
		return cluster.CatalogAddress{}, err
	}
	return c.store.Catalog(ctx, name, fbc)
}

// Describe names what such a cluster does not cover, and which build of OLM v1 runs.
func (c *olmV1OnKind) Describe() cluster.Description {
	d := c.Cluster.Describe()
	d.Limitations = kind.LimitationsUnderOLMv1(d.Limitations)
	if c.because != "" {
		d.Limitations = append(d.Limitations, "OLM v1 ran as olmkit's build of "+olmv1.Version+", since its released images could not be pulled: "+c.because, embedded.LimitBoxcutter)
	} else {
		d.Limitations = append(d.Limitations, "OLM v1 ran from its released images, "+olmv1.Version)
	}
	return d
}

// existingWithOLMv1 is an existing cluster whose catalogs are images, as OLM v1 reads them.
type existingWithOLMv1 struct {
	*existing.Cluster
	store *olmv1.Store
}

// withOLMv1 is c, which pulls what a walk pushes: an embedded cluster from its own registry, others from --registry.
func (t *upgradeTest) withOLMv1(ctx context.Context, c *existing.Cluster) (cluster.Cluster, error) {
	up, err := keptAt(ctx, c.Server())
	if err != nil {
		return nil, err
	}
	store, err := t.pullable.store(ctx, up)
	if err != nil {
		return nil, err
	}
	return &existingWithOLMv1{Cluster: c, store: store}, nil
}

// Catalog pushes the catalog, and its bundles, to where the cluster pulls them.
func (c *existingWithOLMv1) Catalog(ctx context.Context, name string, fbc []byte) (cluster.CatalogAddress, error) {
	return c.store.Catalog(ctx, name, fbc)
}

// Describe names what such a cluster does not cover.
func (c *existingWithOLMv1) Describe() cluster.Description {
	d := c.Cluster.Describe()
	d.Limitations = slices.DeleteFunc(d.Limitations, func(l string) bool { return l == existing.LimitInline })
	return d
}
