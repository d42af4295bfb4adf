package kind

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
)

// names is the registry that made images are said to come from; .internal is nobody's.
const names = "olmkit.internal"

// user is whom images run as that programs and folders are made into.
const user = "65532"

// serving returns the cluster's registry, started when it is asked for first.
func (c *Cluster) serving(ctx context.Context) (*mirror, error) {
	if c.registry == nil {
		m, err := startMirror(ctx, c.node)
		if err != nil {
			return nil, err
		}
		c.registry = m
	}
	return c.registry, nil
}

// LoadImage makes ref mean the program or the folder source. On a cluster that is walked on the nodes pull it, made into an
// image when a catalog says at which path its containers look for it; a kept one has it loaded at once, the program at /
// under its own name.
func (c *Cluster) LoadImage(ctx context.Context, ref, source string) error {
	if !c.keep {
		c.programs[ref] = source
		return nil
	}
	artifact, err := pack(source, "/"+filepath.Base(source))
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "olmkit-image-*.tar")
	if err != nil {
		return hint.With(err, "set TMPDIR to a folder with some room")
	}
	defer func() { _ = os.Remove(file.Name()) }()
	defer file.Close()
	if err := (image.Client{}).Archive(ctx, file.Name(), ref, artifact); err != nil {
		return err
	}
	archive, err := os.Open(file.Name())
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := c.node.loadImages(ctx, archive); err != nil {
		return fmt.Errorf("load %s on node %s: %w", ref, c.node.name, err)
	}
	return nil
}

// packed is what an image is made from.
type packed struct{ source, entrypoint string }

// pack makes an image of a program, to be found at entrypoint, or of a folder that is the image's root.
func pack(source, entrypoint string) (image.Artifact, error) {
	info, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return image.Programs([]string{source}, image.ProgramOptions{Entrypoint: entrypoint, User: user, Local: true})
	}
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	if err := errors.Join(archive.AddFS(os.DirFS(source)), archive.Close()); err != nil {
		return nil, fmt.Errorf("pack folder %s: %w", source, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
	if err != nil {
		return nil, fmt.Errorf("pack folder %s: %w", source, err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.User, config.Config.Entrypoint = "linux", runtime.GOARCH, user, []string{entrypoint}
	return mutate.ConfigFile(img, config)
}

// Catalog serves the catalog from this process, and makes images for the nodes to pull: of each bundle, and of all programs that its
// operators run. What served before goes with the next call.
func (c *Cluster) Catalog(ctx context.Context, name string, fbc []byte) (cluster.CatalogAddress, error) {
	m, err := c.serving(ctx)
	if err != nil {
		return cluster.CatalogAddress{}, err
	}
	loaded := catalog.Parse(name, fbc)
	if err := loaded.Err(); err != nil {
		return cluster.CatalogAddress{}, fmt.Errorf("read catalog %s: %w", name, err)
	}
	images := map[string]string{} // of bundles, by package and name
	for _, p := range loaded.Packages {
		for _, b := range p.Bundles {
			if images[p.Name+"/"+b.Name], err = c.pushBundle(ctx, m, p, b); err != nil {
				return cluster.CatalogAddress{}, fmt.Errorf("make bundle %s an image: %w", b.Name, err)
			}
			if err := c.pushPrograms(ctx, m, b); err != nil {
				return cluster.CatalogAddress{}, err
			}
		}
	}
	content, err := catalog.WithImages(fbc, images)
	if err != nil {
		return cluster.CatalogAddress{}, fmt.Errorf("write catalog %s: %w", name, err)
	}
	for len(c.catalogs) > 1 {
		c.catalogs[0]()
		c.catalogs = c.catalogs[1:]
	}
	address, stop, err := m.serve(catalog.Parse(name, content))
	if err != nil {
		return cluster.CatalogAddress{}, fmt.Errorf("serve catalog %s: %w", name, err)
	}
	c.catalogs = append(c.catalogs, stop)
	return cluster.CatalogAddress{Address: address}, nil
}

// pushBundle makes an image of what the catalog holds of a bundle, and returns its reference.
func (c *Cluster) pushBundle(ctx context.Context, m *mirror, p *catalog.Package, b *catalog.Bundle) (string, error) {
	dir, err := os.MkdirTemp("", "olmkit-bundle-")
	if err != nil {
		return "", hint.With(err, "set TMPDIR to a folder with some room")
	}
	defer os.RemoveAll(dir)
	artifact, err := b.Pack(dir, p.Name, map[string]string{bundle.AnnotationChannels: p.DefaultChannel, bundle.AnnotationDefaultChannel: p.DefaultChannel})
	if err != nil {
		return "", err
	}
	tag := "v" + strings.ReplaceAll(b.Version.String(), "+", "-") // tags have no "+"
	return m.push(ctx, names+"/bundle/"+p.Name+":"+tag, artifact)
}

// pushPrograms makes images of the programs that were loaded and that b's operator runs.
func (c *Cluster) pushPrograms(ctx context.Context, m *mirror, b *catalog.Bundle) error {
	csv, err := b.CSV()
	if err != nil {
		return err
	}
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, container := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
			source, ok := c.programs[container.Image]
			program := packed{source, entrypoint(container.Command, source)}
			if !ok || c.pushed[container.Image] == program {
				continue
			}
			artifact, err := pack(program.source, program.entrypoint)
			if err != nil {
				return fmt.Errorf("make %s the image %s: %w", source, container.Image, err)
			}
			if _, err := m.push(ctx, container.Image, artifact); err != nil {
				return fmt.Errorf("serve %s: %w", container.Image, err)
			}
			c.pushed[container.Image] = program
		}
	}
	return nil
}

// entrypoint is where a container that runs command looks for its program: on the path that containers have by themselves
// if it is no absolute one.
func entrypoint(command []string, source string) string {
	switch {
	case len(command) == 0:
		return "/" + filepath.Base(source)
	case path.IsAbs(command[0]):
		return path.Clean(command[0])
	}
	return path.Join("/bin", command[0])
}
