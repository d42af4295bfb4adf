package cli

import (
	"context"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
	"github.com/olmkit/olmkit/internal/installation"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
)

// chooseOLM returns the version of OLM that is to install pkg: the one that is asked for, or the only one on the cluster. Where there
// are both, v1 goes on with what it has installed, and v0 installs the rest; where there is none, v0 says so.
func (r *bundleRun) chooseOLM(ctx context.Context, pkg string, v0 *olmv0.Client, v1 *olmv1.Client) (string, error) {
	if r.olm != "" {
		return r.olm, nil
	}
	// Who may not look for OLM v1 gets what OLM v0 says.
	if _, err := v0.Version(ctx); err == nil {
		if extensions, err := v1.Extensions(ctx, pkg); err == nil && len(extensions) > 0 {
			return olmV1, nil
		}
		return olmV0, ctx.Err()
	}
	if status, err := v1.Status(ctx); err == nil && status.Installed {
		return olmV1, nil
	}
	return olmV0, ctx.Err()
}

// installV1 has OLM v1 install the bundle of pkg, and says whether it began to.
func (r *bundleRun) installV1(ctx context.Context, s *session, t target, offered *catalog.Catalog, pkg string) (*installation.Result, bool, error) {
	client := t.v1
	store, err := s.pullable(r.registry).store(ctx, t.up)
	if err != nil {
		return nil, false, err
	}
	if err := r.load(ctx, s, t.up, offered.Find(pkg)); err != nil {
		return nil, false, err
	}
	r.options.Publish = func(ctx context.Context, _, name string, _ map[string]string, fbc []byte) error {
		return publishV1(ctx, client, store, name, fbc)
	}
	result, err := installation.RunV1(ctx, client, offered, pkg, r.options)
	return result, client.Run != "", err
}

// pullable is what --registry says of where a cluster that is not olmkit's pulls images.
type pullable struct {
	repository
	configured bool // by the project's file, which is for all clusters
}

func (s *session) pullable(registry string) pullable {
	return pullable{repository{s.images, registry}, slices.Contains(s.configured, "registry")}
}

// given reports whether the command line says so: it is a mistake where nothing is pulled.
func (p pullable) given() bool { return p.name != "" && !p.configured }

// store is where the images are kept that OLM v1 reads on the cluster, which is up, or nil if it is none of olmkit's.
func (p pullable) store(ctx context.Context, up kept) (*olmv1.Store, error) {
	own, hasRegistry := up.(*embedded.Cluster)
	switch {
	case hasRegistry && p.given():
		return nil, hint.With(usagef("--registry is for a cluster that pulls images, and an embedded one has a registry of its own"), "leave it out")
	case hasRegistry:
		return &olmv1.Store{Host: own}, nil
	case p.name == "":
		return nil, hint.With(usagef("OLM v1 reads bundles and catalogs as images, and --registry does not say where the cluster can pull them"),
			"name a repository, for example --registry ghcr.io/team/scratch")
	}
	return &olmv1.Store{Host: p.repository}, p.images.CheckPush(ctx, p.tag("check"))
}

// repository is one of a registry, to which images are pushed under names that tell what they are.
type repository struct {
	images image.Client
	name   string
}

func (r repository) tag(name string) string { return r.name + ":" + name }

// digestLength is how many digits of a digest tell an image apart in a tag.
const digestLength = 12

// PushImage pushes an image, and returns its reference by digest.
func (r repository) PushImage(ctx context.Context, what string, made v1.Image) (string, error) {
	digest, err := made.Digest()
	if err != nil {
		return "", err
	}
	return r.images.Push(ctx, r.tag(what+"-"+digest.Hex[:digestLength]), made)
}
