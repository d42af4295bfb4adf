package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/output"
)

// annotationName is what engines call an image that they load; containerd reads the second, which is the whole reference.
const (
	annotationName           = "org.opencontainers.image.ref.name"
	annotationContainerdName = "io.containerd.image.name"
)

// Layout writes what to dir as an OCI layout, all of it or nothing. A layout that is there is replaced. With a reference
// other than "" the image is called that.
func (c Client) Layout(ctx context.Context, dir, reference string, what Artifact) error {
	present, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return hint.With(fmt.Errorf("write the layout: %w", err), "name a new directory with --oci-layout")
	}
	if len(present) > 0 && !isLayout(dir) {
		return hint.With(fmt.Errorf("write the layout: %s is not empty and holds no OCI layout", dir), "name a new directory with --oci-layout")
	}
	if err := output.Dir(ctx, dir, func(fresh string) error { return c.writeLayout(fresh, reference, what) }); err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	return nil
}

func (c Client) writeLayout(dir, reference string, what Artifact) error {
	index, err := c.layoutIndex(reference, what)
	if err != nil {
		return err
	}
	_, err = layout.Write(dir, index)
	return err
}

// layoutIndex returns the index of a layout that holds what alone, under the name reference unless that is "".
func (c Client) layoutIndex(reference string, what Artifact) (v1.ImageIndex, error) {
	annotations := map[string]string{}
	if reference != "" {
		ref, err := c.parse(reference)
		if err != nil {
			return nil, err
		}
		annotations[annotationName], annotations[annotationContainerdName] = ref.Identifier(), ref.Name()
	}
	addendum := mutate.IndexAddendum{Descriptor: v1.Descriptor{Annotations: annotations}}
	switch what := what.(type) {
	case v1.ImageIndex:
		addendum.Add = what
	case v1.Image:
		addendum.Add = what
	default:
		return nil, fmt.Errorf("it is a %T", what)
	}
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), addendum), nil
}

// Archive writes what to file as a tar archive of an OCI layout, which container engines load; the same image gives the
// same bytes. With a reference other than "" the image is called that. Nothing is written beside the archive.
func (c Client) Archive(ctx context.Context, file, reference string, what Artifact) error {
	index, err := c.layoutIndex(reference, what)
	if err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	if err := output.File(ctx, file, func(w io.Writer) error { return archive(w, index) }); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}

// blob is a file of a layout.
type blob struct {
	size int64
	open func() (io.ReadCloser, error)
}

func document(data []byte) blob {
	return blob{int64(len(data)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

// ociLayout is the file that says that a folder is a layout
// (https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md#oci-layout-file).
const ociLayout = "{\n    \"imageLayoutVersion\": \"1.0.0\"\n}"

// archive writes the layout of index as a tar archive, its files in the order of their names.
func archive(w io.Writer, index v1.ImageIndex) error {
	raw, err := index.RawManifest()
	if err != nil {
		return err
	}
	files := map[string]blob{"oci-layout": document([]byte(ociLayout)), "index.json": document(raw)}
	if err := addIndex(files, index); err != nil {
		return err
	}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			files[dir] = blob{}
		}
	}
	archive := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := archiveOne(archive, name, files[name]); err != nil {
			return err
		}
	}
	return archive.Close()
}

// addIndex adds to files what index names.
func addIndex(files map[string]blob, index v1.ImageIndex) error {
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, d := range manifest.Manifests {
		if d.MediaType.IsIndex() {
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return err
			}
			raw, err := inner.RawManifest()
			if err != nil {
				return err
			}
			files[blobFile(d.Digest)] = document(raw)
			if err := addIndex(files, inner); err != nil {
				return err
			}
			continue
		}
		img, err := index.Image(d.Digest)
		if err != nil {
			return err
		}
		if err := addImage(files, d.Digest, img); err != nil {
			return err
		}
	}
	return nil
}

// addImage adds to files the manifest, the configuration and the layers of img.
func addImage(files map[string]blob, digest v1.Hash, img v1.Image) error {
	manifest, err := img.Manifest()
	if err != nil {
		return err
	}
	raw, err := img.RawManifest()
	if err != nil {
		return err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return err
	}
	files[blobFile(digest)], files[blobFile(manifest.Config.Digest)] = document(raw), document(config)
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	for i, d := range manifest.Layers {
		files[blobFile(d.Digest)] = blob{d.Size, layers[i].Compressed}
	}
	return nil
}

// archiveOne writes a file, or a folder, which cannot be opened.
func archiveOne(archive *tar.Writer, name string, b blob) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: b.size, ModTime: time.Unix(0, 0)}
	if b.open == nil {
		header.Typeflag, header.Name, header.Mode = tar.TypeDir, name+"/", 0o755
		return archive.WriteHeader(header)
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	content, err := b.open()
	if err != nil {
		return err
	}
	_, err = io.Copy(archive, content)
	return errors.Join(err, content.Close())
}

func isLayout(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "oci-layout"))
	return err == nil && info.Mode().IsRegular()
}
