package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/hint"
)

const (
	// labelConfigs says where in a catalog's image the file-based catalog is (operator-registry v1.74.0,
	// pkg/containertools/dockerfilegenerator.go).
	labelConfigs = "operators.operatorframework.io.index.configs.v1"
	// labelDatabase marks catalogs of the format before that.
	labelDatabase = "operators.operatorframework.io.index.database.v1"

	configsDir = "/configs"

	mediaTypeBundle = "registry+v1"
)

// CheckBundle reads the bundle directory dir, and returns an error if no image can be made of it.
func CheckBundle(dir string) (*bundle.Bundle, error) {
	b, err := bundle.Read(dir)
	if err != nil {
		return nil, err
	}
	if b.CSV() == nil {
		return nil, hint.With(fmt.Errorf("pack bundle %s: manifests/ holds no %s", dir, bundle.KindCSV), "see what 'olmkit bundle validate %s' says", dir)
	}
	if b.Package() == "" {
		return nil, hint.With(fmt.Errorf("pack bundle %s: metadata/ names no package", dir), "set annotations: %s in %s/metadata/annotations.yaml", bundle.AnnotationPackage, dir)
	}
	return b, nil
}

// Bundle returns the image of the bundle directory dir: manifests/, metadata/ and, where there is one, tests/, each a layer,
// with the bundle's annotations as labels, as OLM and opm read it. The same files give the same bytes.
func Bundle(dir string) (Artifact, error) {
	b, err := CheckBundle(dir)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{bundle.AnnotationMediaType: mediaTypeBundle}
	for key, value := range b.Annotations {
		labels[key] = value
	}
	labels[bundle.AnnotationManifests], labels[bundle.AnnotationMetadata] = "manifests/", "metadata/"

	root, err := os.OpenRoot(dir) // what links lead to outside of the bundle is no part of it
	if err != nil {
		return nil, fmt.Errorf("pack bundle: %w", err)
	}
	defer root.Close()
	var layers []*layer
	for _, folder := range []string{"manifests", "metadata", "tests"} {
		files, err := visible(root.FS(), folder)
		if errors.Is(err, fs.ErrNotExist) && folder == "tests" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("pack bundle %s: %w", dir, err)
		}
		l, err := pack(root.FS(), files, "/")
		if err != nil {
			return nil, fmt.Errorf("pack bundle %s: %w", dir, err)
		}
		layers = append(layers, l)
	}
	return assemble(scratch(), nil, labels, layers...)
}

// visible lists the files below folder whose names do not begin with a dot.
func visible(fsys fs.FS, folder string) ([]string, error) {
	var files []string
	err := fs.WalkDir(fsys, folder, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(entry.Name(), ".") && entry.IsDir():
			return fs.SkipDir
		case !entry.IsDir() && !strings.HasPrefix(entry.Name(), "."):
			files = append(files, file)
		}
		return nil
	})
	return files, err
}

// Catalog returns the image of a file-based catalog, which is files of fsys, at /configs. Without a base the image holds the
// catalog alone, for a CatalogSource with extractContent. On a base that has opm as its entry point the image serves the
// catalog; a base with several platforms makes an index of as many images.
func Catalog(fsys fs.FS, files []string, base Artifact) (Artifact, error) {
	l, err := pack(fsys, files, configsDir)
	if err != nil {
		return nil, fmt.Errorf("pack catalog: %w", err)
	}
	labels := map[string]string{labelConfigs: configsDir}
	switch base := base.(type) {
	case nil:
		return assemble(scratch(), nil, labels, l)
	case v1.Image:
		return serving(base, labels, l)
	case v1.ImageIndex:
		manifest, err := base.IndexManifest()
		if err != nil {
			return nil, fmt.Errorf("pack catalog: read the base: %w", err)
		}
		index := mutate.IndexMediaType(empty.Index, manifest.MediaType)
		for _, child := range manifest.Manifests {
			if !child.MediaType.IsImage() || child.Platform == nil || child.Platform.OS == "unknown" { // attestations have no system
				continue
			}
			img, err := base.Image(child.Digest)
			if err != nil {
				return nil, fmt.Errorf("pack catalog: read the base for %s: %w", child.Platform, err)
			}
			made, err := serving(img, labels, l)
			if err != nil {
				return nil, fmt.Errorf("pack catalog for %s: %w", child.Platform, err)
			}
			index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: made, Descriptor: v1.Descriptor{Platform: child.Platform}})
		}
		if made, err := index.IndexManifest(); err != nil || len(made.Manifests) == 0 {
			return nil, hint.With(errors.Join(errors.New("pack catalog: the base has no image of any platform"), err), "name an image with opm in it with --base")
		}
		return index, nil
	default:
		return nil, fmt.Errorf("pack catalog: the base is a %T", base)
	}
}

// serving puts the catalog on a base. opm refuses to serve from a cache that was not built with the image unless told that
// it may (operator-registry v1.74.0, cmd/opm/serve/serve.go).
func serving(base v1.Image, labels map[string]string, l *layer) (v1.Image, error) {
	if _, err := checkManifest(base, defaultLimits.read); err != nil {
		return nil, hint.With(err, "name an image with opm in it with --base")
	}
	config, err := base.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the base's configuration: %w", err)
	}
	var command []string
	if entry := config.Config.Entrypoint; len(entry) > 0 && path.Base(entry[0]) == "opm" {
		command = []string{"serve", configsDir, "--cache-dir=/tmp/cache", "--cache-enforce-integrity=false"}
	}
	return assemble(base, command, labels, l)
}

// scratch is an image with nothing in it. Bundles and bare catalogs are data for every platform; the one it names is what
// engines write into such images.
func scratch() v1.Image {
	return mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
}

func assemble(base v1.Image, command []string, labels map[string]string, layers ...*layer) (v1.Image, error) {
	kind, err := base.MediaType()
	if err != nil {
		return nil, err
	}
	img := base
	for _, l := range layers {
		of := *l
		of.media = types.OCILayer
		if kind == types.DockerManifestSchema2 {
			of.media = types.DockerLayer
		}
		img, err = mutate.Append(img, mutate.Addendum{Layer: &of, History: v1.History{CreatedBy: "olmkit"}})
		if err != nil {
			return nil, err
		}
	}
	found, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config := found.DeepCopy()
	if config.OS == "" {
		config.OS, config.Architecture = "linux", "amd64"
	}
	if config.Config.Labels == nil {
		config.Config.Labels = map[string]string{}
	}
	for key, value := range labels {
		config.Config.Labels[key] = value
	}
	if command != nil {
		config.Config.Cmd = command
	}
	return mutate.ConfigFile(img, config)
}

// layer is a layer of an image, held in memory as it is sent.
type layer struct {
	compressed   []byte
	digest, diff v1.Hash
	media        types.MediaType
}

func (l *layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.diff, nil }
func (l *layer) Size() (int64, error)                { return int64(len(l.compressed)), nil }
func (l *layer) MediaType() (types.MediaType, error) { return l.media, nil }
func (l *layer) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(l.compressed)), nil
}
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	return inflate(io.NopCloser(bytes.NewReader(l.compressed)))
}

// pack returns files of fsys as a layer below at.
func pack(fsys fs.FS, files []string, at string) (*layer, error) {
	sources := map[string]string{}
	for _, file := range files {
		sources[path.Join(at, file)[1:]] = file
	}
	return packAs(fsys, sources, 0o644, gzip.BestCompression)
}

// asBuilt is the mode of files that are programs where their owner may run them.
const asBuilt = 0

// packAs returns files of fsys as a layer, under the names and with the mode that are given, compressed as level says. Nothing in it depends on the
// machine: entries are sorted, belong to root, have no times and fixed modes.
func packAs(fsys fs.FS, files map[string]string, mode int64, level int) (*layer, error) {
	sources := maps.Clone(files) // by name in the layer; "" for a directory
	for target := range files {
		for dir := path.Dir(target); dir != "."; dir = path.Dir(dir) {
			sources[dir] = ""
		}
	}
	names := slices.Sorted(maps.Keys(sources))

	var compressed bytes.Buffer
	squeezed, err := gzip.NewWriterLevel(&compressed, level)
	if err != nil {
		return nil, err
	}
	plain := sha256.New()
	archive := tar.NewWriter(io.MultiWriter(squeezed, plain))
	for _, target := range names {
		if err := packOne(archive, fsys, sources[target], target, mode); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(archive.Close(), squeezed.Close()); err != nil {
		return nil, err
	}
	whole := sha256.Sum256(compressed.Bytes())
	return &layer{
		compressed: compressed.Bytes(),
		digest:     v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(whole[:])},
		diff:       v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(plain.Sum(nil))},
	}, nil
}

func packOne(archive *tar.Writer, fsys fs.FS, file, target string, mode int64) error {
	epoch := time.Unix(0, 0)
	if file == "" {
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: target + "/", Mode: 0o755, ModTime: epoch})
	}
	info, err := fs.Stat(fsys, file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("pack %s: it is no regular file", file)
	}
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return err
	}
	if mode == asBuilt {
		if mode = 0o644; info.Mode()&0o100 != 0 {
			mode = 0o755
		}
	}
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: target, Mode: mode, ModTime: epoch, Size: int64(len(data))}); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	_, err = archive.Write(data)
	return err
}
