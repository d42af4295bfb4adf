package image

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/hint"
)

// Content is what the image of a bundle or of a catalog holds, unpacked.
type Content struct {
	FS        fs.FS  // a bundle's manifests/ and metadata/, or the root of a file-based catalog
	Name      string // what the image was called, and for a catalog the folder in it; the prefix of locations
	Reference string // where to pull the image; "" for one that was read from a file
	Bundle    bool   // otherwise a catalog
	Labels    map[string]string
	dir       string
}

// Close removes the unpacked files.
func (c *Content) Close() error { return os.RemoveAll(c.dir) }

// Is reports whether ref is an image: the path of an archive or an OCI layout, or, where no such path exists, a reference
// with a registry's host, as in quay.io/team/app:1.0.
func Is(ref string) bool {
	info, err := os.Stat(ref)
	switch {
	case err == nil && info.IsDir():
		return isLayout(ref)
	case err == nil:
		return info.Mode().IsRegular() && isArchive(ref)
	case strings.HasPrefix(ref, ".") || strings.HasPrefix(ref, "/"):
		return false
	}
	host, _, ok := strings.Cut(ref, "/")
	if _, err := name.ParseReference(ref); err != nil {
		return false
	}
	return ok && (host == "localhost" || strings.ContainsAny(host, ".:"))
}

// isArchive reports whether file begins as a tar archive does, or as a compressed file.
func isArchive(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 262)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false
	}
	return isGzip(head[:n]) || n == len(head) && string(head[257:]) == "ustar"
}

func isGzip(head []byte) bool { return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) }

// Unpack reads the bundle or catalog out of the image that ref is, on a registry, in an archive ('docker save', OCI) or in
// an OCI layout. What the image unpacks to is bounded, and nothing in it can lead out of the temporary folder that it
// goes to. The caller closes the content.
func (c Client) Unpack(ctx context.Context, ref string) (*Content, error) {
	return c.unpack(ctx, ref, defaultLimits)
}

func (c Client) unpack(ctx context.Context, ref string, l limits) (content *Content, err error) {
	err = c.open(ctx, ref, l, func(s *source, named string, left limits) error {
		content, err = s.unpack(ctx, named, left)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(ref); err != nil { // no path
		content.Reference = ref
	}
	return content, nil
}

// Root unpacks the whole file system of the image that ref is, as Unpack takes it, to dir, which must not exist. It is for
// images of programs: files keep whether they can be executed, links become copies of what they lead to, and an image with
// links to folders, as those of Linux distributions have, is refused.
func (c Client) Root(ctx context.Context, ref, dir string) error {
	return c.open(ctx, ref, defaultLimits, func(s *source, named string, left limits) error {
		u, err := newUnpacker(left, true, func(string) bool { return true })
		if err != nil {
			return err
		}
		defer os.RemoveAll(u.dir)
		if err = s.take(ctx, named, u); err == nil {
			err = u.tree(ctx, dir, func(name string) string { return name })
		}
		if err != nil {
			return hint.With(fmt.Errorf("unpack image %s: %w", named, err), "%s", cmp.Or(hint.Of(err), "name a program, a folder with the image's root, or an image that 'olmkit image push' made"))
		}
		return nil
	})
}

// open calls use with the image that ref is, what it is called and what is left of the limits.
func (c Client) open(ctx context.Context, ref string, l limits, use func(*source, string, limits) error) error {
	info, err := os.Stat(ref)
	if err != nil { // no path
		what, err := c.Fetch(ctx, ref)
		if err != nil {
			return err
		}
		return openArtifact(ref, what, l, use)
	}
	named := filepath.ToSlash(ref)
	if info.IsDir() {
		return openLayout(named, ref, l, use)
	}
	u, err := newUnpacker(l, false, func(string) bool { return true })
	if err != nil {
		return err
	}
	defer os.RemoveAll(u.dir)
	files := filepath.Join(u.dir, "archive")
	err = u.archive(ctx, ref)
	if err == nil {
		err = u.tree(ctx, files, func(name string) string { return name })
	}
	if err != nil {
		return hint.With(fmt.Errorf("read archive %s: %w", ref, err), "%s", cmp.Or(hint.Of(err), "make the archive anew, with 'olmkit bundle push --output' or 'docker save'"))
	}
	if isLayout(files) {
		return openLayout(named, files, u.left, use)
	}
	return openSavedImage(named, files, u.left, use)
}

func (u *unpacker) archive(ctx context.Context, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	inflated, err := inflate(f)
	if err != nil {
		return err
	}
	defer inflated.Close()
	return u.add(ctx, inflated)
}

func openLayout(named, dir string, l limits, use func(*source, string, limits) error) error {
	what, err := readLayout(dir)
	if err == nil {
		what, err = checked(dir, what)
	}
	if err != nil {
		return hint.With(fmt.Errorf("read OCI layout %s: %w", named, err), "name a layout with one image in it")
	}
	return openArtifact(named, what, l, use)
}

// maxDocument bounds manifests, indexes and configurations, which are held in memory.
const maxDocument = 32 << 20

// small returns an error if a file of an image is larger than a document may be, or none that ends. One that is missing is left to its reader.
func small(dir, name string) error {
	info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
	switch {
	case err == nil && !info.Mode().IsRegular():
		return refuse("%s is no regular file", name)
	case err == nil && info.Size() > maxDocument:
		return refuse("%s is %d bytes, more than any manifest or configuration", name, info.Size())
	}
	return nil
}

func blobFile(digest v1.Hash) string { return path.Join("blobs", digest.Algorithm, digest.Hex) }

// checked returns the image for this machine of a layout, whose configuration is fit to be read.
func checked(dir string, what Artifact) (v1.Image, error) {
	if index, ok := what.(v1.ImageIndex); ok {
		manifest, err := index.IndexManifest()
		if err != nil {
			return nil, err
		}
		for _, d := range manifest.Manifests {
			if err := small(dir, blobFile(d.Digest)); err != nil {
				return nil, err
			}
		}
	}
	img, err := forHere(what)
	if err != nil {
		return nil, err
	}
	manifest, err := checkManifest(img, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	for _, d := range slices.Concat(manifest.Layers, []v1.Descriptor{manifest.Config}) {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(blobFile(d.Digest))))
		if err == nil && !info.Mode().IsRegular() {
			return nil, refuse("%s is no regular file", blobFile(d.Digest))
		}
		if err == nil && info.Size() != d.Size { // one that is missing is left to its reader
			return nil, refuse("%s is %d bytes, and the manifest says %d", blobFile(d.Digest), info.Size(), d.Size)
		}
	}
	return img, nil
}

func readLayout(dir string) (Artifact, error) {
	if err := small(dir, "index.json"); err != nil {
		return nil, err
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if n := len(manifest.Manifests); n != 1 {
		return nil, fmt.Errorf("it holds %d images", n)
	}
	only := manifest.Manifests[0]
	if err := small(dir, blobFile(only.Digest)); err != nil {
		return nil, err
	}
	if !only.MediaType.IsIndex() {
		return child(index, only.Digest)
	}
	inner, err := index.ImageIndex(only.Digest)
	if err != nil {
		return nil, err
	}
	raw, err := inner.RawManifest()
	if err == nil && sum(raw) != only.Digest.Hex {
		err = refuse("the index %s is damaged: its digest is another", only.Digest)
	}
	return inner, err
}

// child returns the image of index with that digest, and holds its manifest to it, which a layout does not do.
func child(index v1.ImageIndex, digest v1.Hash) (v1.Image, error) {
	img, err := index.Image(digest)
	if err != nil {
		return nil, err
	}
	raw, err := img.RawManifest()
	if err == nil && sum(raw) != digest.Hex {
		err = refuse("the manifest %s is damaged: its digest is another", digest)
	}
	return img, err
}

// source is an image as Unpack needs it.
type source struct {
	config *v1.ConfigFile
	layers []func() (io.ReadCloser, error) // uncompressed, from the lowest
}

func openArtifact(named string, what Artifact, l limits, use func(*source, string, limits) error) error {
	img, err := forHere(what)
	if err != nil {
		return hint.With(fmt.Errorf("image %s: %w", named, err), "%s", cmp.Or(hint.Of(err), "push the image again, or make the archive anew"))
	}
	s, err := sourceOf(img, l)
	if err != nil {
		return hint.With(fmt.Errorf("image %s: %w", named, err), "push the image again, or make the archive anew")
	}
	return use(s, named, l)
}

// forHere returns the image, or the one of an index for this machine; if there is none, the first one: a bundle or a catalog
// is the same for all.
func forHere(what Artifact) (v1.Image, error) {
	switch what := what.(type) {
	case v1.Image:
		return what, nil
	case v1.ImageIndex:
		manifest, err := what.IndexManifest()
		if err != nil {
			return nil, err
		}
		if manifest.MediaType != "" && !manifest.MediaType.IsIndex() {
			return nil, refuse("its index says that it is of the media type %q", manifest.MediaType)
		}
		var best *v1.Descriptor
		for i, d := range manifest.Manifests {
			if !d.MediaType.IsImage() || d.Platform != nil && d.Platform.OS != "linux" {
				continue
			}
			if best == nil || d.Platform != nil && d.Platform.Architecture == runtime.GOARCH {
				best = &manifest.Manifests[i]
			}
		}
		if best == nil {
			return nil, hint.With(errors.New("the index names no image for Linux"), "name an image of a bundle or of a catalog")
		}
		return child(what, best.Digest)
	default:
		return nil, fmt.Errorf("it is a %T", what)
	}
}

// checkManifest refuses an image whose manifest names what an image of files for Linux does not hold, or more of it than
// read bytes, before any of that is asked for.
func checkManifest(img v1.Image, read int64) (*v1.Manifest, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	if err := checkConfigSize(manifest); err != nil {
		return nil, err
	}
	if manifest.MediaType != "" && !manifest.MediaType.IsImage() {
		return nil, refuse("its manifest says that it is of the media type %q", manifest.MediaType)
	}
	if !manifest.Config.MediaType.IsConfig() {
		return nil, refuse("its configuration is of the media type %q, that of no image", manifest.Config.MediaType)
	}
	if err := checkLayers(len(manifest.Layers)); err != nil {
		return nil, err
	}
	for i, l := range manifest.Layers {
		if !slices.Contains(layerTypes, l.MediaType) {
			return nil, refuse("layer %d is of the media type %q; olmkit reads %s", i+1, l.MediaType, layerTypes)
		}
		if len(l.URLs) > 0 {
			return nil, refuse("the manifest says that layer %d is at %q; olmkit reads layers from the image's registry alone", i+1, l.URLs[0])
		}
		if l.Size < 0 || l.Size > read {
			return nil, refuse("the manifest says that layer %d is %d bytes, and olmkit reads at most %d in all", i+1, l.Size, read)
		}
		read -= l.Size
	}
	return manifest, nil
}

func checkConfigSize(manifest *v1.Manifest) error {
	if size := manifest.Config.Size; size < 0 || size > maxDocument {
		return refuse("the manifest says that the configuration is %d bytes", size)
	}
	return nil
}

// layerTypes are the media types of layers that are archives of files (image-spec v1.1.1, layer.md; Docker's image
// manifest, version 2, schema 2).
var layerTypes = []types.MediaType{types.OCILayer, types.OCILayerZStd, types.OCIUncompressedLayer, types.DockerLayer, types.DockerUncompressedLayer}

// sourceOf holds the configuration to the digest in the manifest; the layers are held to the configuration as they are read.
func sourceOf(img v1.Image, l limits) (*source, error) {
	manifest, err := checkManifest(img, l.read)
	if err != nil {
		return nil, err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return nil, err
	}
	if sum(config) != manifest.Config.Digest.Hex {
		return nil, refuse("the configuration %s is damaged: its digest is another", manifest.Config.Digest)
	}
	s := &source{}
	if s.config, err = v1.ParseConfigFile(bytes.NewReader(config)); err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		s.layers = append(s.layers, func() (io.ReadCloser, error) {
			compressed, err := l.Compressed()
			if err != nil {
				return nil, err
			}
			return inflate(compressed)
		})
	}
	return s, nil
}

// maxLayers is how many layers an image has at most: twice as many as Docker mounts.
const maxLayers = 256

func checkLayers(n int) error {
	if n > maxLayers {
		return refuse("it has %d layers, and no image that olmkit reads has more than %d", n, maxLayers)
	}
	return nil
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// openSavedImage reads what 'docker save' wrote before it wrote OCI layouts, in the folder dir.
func openSavedImage(named, dir string, l limits, use func(*source, string, limits) error) error {
	s, err := readSaved(dir)
	if err != nil {
		return hint.With(fmt.Errorf("read archive %s: %w", named, err), "name an archive with one image, of 'docker save', 'podman save' or --output")
	}
	return use(s, named, l)
}

func readSaved(dir string) (*source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := small(dir, "manifest.json"); err != nil {
		return nil, err
	}
	raw, err := root.ReadFile("manifest.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("it holds neither an OCI layout nor a manifest.json, so it is no image")
	}
	if err != nil {
		return nil, err
	}
	var images []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(raw, &images); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	if len(images) != 1 {
		return nil, fmt.Errorf("it holds %d images", len(images))
	}
	if info, err := root.Stat(filepath.FromSlash(images[0].Config)); err == nil && info.Size() > maxDocument {
		return nil, refuse("the configuration is %d bytes", info.Size())
	}
	config, err := root.ReadFile(filepath.FromSlash(images[0].Config))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	s := &source{}
	if s.config, err = v1.ParseConfigFile(bytes.NewReader(config)); err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if err := checkLayers(len(images[0].Layers)); err != nil {
		return nil, err
	}
	for _, file := range images[0].Layers {
		s.layers = append(s.layers, func() (io.ReadCloser, error) { return openSaved(dir, file) })
	}
	return s, nil
}

type closing struct {
	io.Reader
	io.Closer
}

func openSaved(dir, file string) (io.ReadCloser, error) {
	f, err := os.OpenInRoot(dir, filepath.FromSlash(file))
	if err != nil {
		return nil, err
	}
	return inflate(f)
}

// maxWindow is how much of a stream a decompressor holds to refer back to: what zstd needs at its highest level. A frame
// can ask for far more (RFC 8878, 3.1.1.1.2).
const maxWindow = 128 << 20

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd} // RFC 8878, 3.1.1

// inflate returns what from holds, decompressed if it is compressed, in bounded memory. It closes from, also when it fails.
func inflate(from io.ReadCloser) (io.ReadCloser, error) {
	in := bufio.NewReader(from)
	head, _ := in.Peek(len(zstdMagic)) // a shorter one is no archive, as its reader will find
	switch {
	case isGzip(head):
		inflated, err := gzip.NewReader(in)
		if err != nil {
			return nil, errors.Join(err, from.Close())
		}
		return closing{inflated, from}, nil
	case bytes.Equal(head, zstdMagic):
		inflated, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, errors.Join(err, from.Close())
		}
		return closing{inflated, closers{inflated.IOReadCloser(), from}}, nil
	}
	return closing{in, from}, nil
}

// closers are closed together.
type closers []io.Closer

// Close is io.Closer's.
func (c closers) Close() error {
	var errs []error
	for _, one := range c {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// unpack takes out of the layers what the labels say the image is about.
func (s *source) unpack(ctx context.Context, named string, l limits) (*Content, error) {
	labels := s.config.Config.Labels
	content := &Content{Name: named, Labels: labels}
	var place func(string) (string, bool)
	configs, isCatalog := labels[labelConfigs]
	manifests, isBundle := labels[bundle.AnnotationManifests]
	metadata := labels[bundle.AnnotationMetadata]
	switch {
	case isCatalog:
		folder := folderOf(configs)
		content.Name = path.Join(named, folder)
		place = func(name string) (string, bool) { return below(folder, name) }
	case isBundle:
		content.Bundle = true
		if folderOf(manifests) == "." || folderOf(metadata) == "." {
			return nil, hint.With(fmt.Errorf("image %s names no folder for its manifests or its metadata", named), "set the labels %s and %s, as 'olmkit bundle push' does", bundle.AnnotationManifests, bundle.AnnotationMetadata)
		}
		folders := map[string]string{folderOf(manifests): "manifests", folderOf(metadata): "metadata"}
		place = func(name string) (string, bool) {
			for folder, as := range folders {
				if rest, ok := below(folder, name); ok {
					return path.Join(as, rest), true
				}
			}
			return "", false
		}
	case labels[labelDatabase] != "":
		return nil, hint.With(fmt.Errorf("image %s holds a catalog as an SQLite database", named), "migrate it to a file-based catalog with 'opm migrate'")
	default:
		return nil, hint.With(fmt.Errorf("image %s is neither a bundle nor a catalog: it has no label %s or %s", named, bundle.AnnotationManifests, labelConfigs),
			"name the image of a bundle or of a catalog")
	}
	wants := func(name string) bool { _, ok := place(name); return ok }
	u, err := newUnpacker(l, true, wants)
	if err != nil {
		return nil, err
	}
	content.dir = u.dir
	root := filepath.Join(u.dir, "root")
	err = s.take(ctx, named, u)
	if err == nil && len(u.files) == 0 {
		err = errors.New("it holds no files where its labels say")
	}
	if err == nil {
		err = u.tree(ctx, root, func(name string) string { to, _ := place(name); return to })
	}
	if err != nil {
		err = errors.Join(err, content.Close())
		return nil, hint.With(fmt.Errorf("unpack image %s: %w", named, err), "%s", cmp.Or(hint.Of(err), "look into the image with 'docker save', and build it anew"))
	}
	content.FS = os.DirFS(root)
	return content, nil
}

// take takes all layers.
func (s *source) take(ctx context.Context, named string, u *unpacker) error {
	if len(s.layers) != len(s.config.RootFS.DiffIDs) {
		return hint.With(fmt.Errorf("image %s is damaged: its configuration names %d layers, its manifest %d", named, len(s.config.RootFS.DiffIDs), len(s.layers)),
			"push the image again, or make the archive anew")
	}
	for i := range s.layers {
		if err := s.layer(ctx, u, i); err != nil {
			return err
		}
	}
	return nil
}

func folderOf(label string) string {
	return path.Clean(strings.TrimLeft(path.Clean("/"+label), "/"))
}

// layer takes one layer. One that breaks off on its way from a registry is read again.
func (s *source) layer(ctx context.Context, u *unpacker, i int) error {
	for try := 1; ; try++ {
		left, streams := u.left, u.streams
		err := s.read(ctx, u, i)
		if err == nil || try == tries || errors.As(err, &refused{}) || errors.As(err, &refusedRequest{}) || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		u.left, u.streams = left, streams
		for name, f := range u.files {
			if f.stream > streams {
				delete(u.files, name)
			}
		}
	}
}

func (s *source) read(ctx context.Context, u *unpacker, i int) error {
	layer, err := s.layers[i]()
	if err != nil {
		return fmt.Errorf("layer %d: %w", i+1, err)
	}
	defer layer.Close()
	digest := sha256.New()
	if err := u.add(ctx, io.TeeReader(layer, digest)); err != nil {
		return fmt.Errorf("layer %d: %w", i+1, err)
	}
	if got, want := hex.EncodeToString(digest.Sum(nil)), s.config.RootFS.DiffIDs[i].Hex; got != want {
		return refuse("layer %d is damaged: its digest is sha256:%s, not sha256:%s", i+1, got, want)
	}
	return nil
}
