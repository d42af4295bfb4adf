package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"github.com/olmkit/olmkit/internal/hint"
)

// annotationKey says in an index what tells the image of a folder from all others.
const annotationKey = "io.olmkit.key"

// Folder is a folder of programs for Linux that becomes the root of an image.
type Folder struct {
	Dir, Architecture string
	Key               string            // tells the folder from all others of an index
	Annotations       map[string]string // of its image in the index
}

// Folders returns an index with an image of each folder. The same folders give the same bytes.
func Folders(folders []Folder) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, f := range folders {
		l, err := packFolder(f.Dir)
		if err != nil {
			return nil, fmt.Errorf("pack folder %s: %w", f.Dir, err)
		}
		img, err := mutate.Append(scratch(), mutate.Addendum{Layer: l, MediaType: l.media, History: v1.History{CreatedBy: "olmkit"}})
		if err != nil {
			return nil, fmt.Errorf("pack folder %s: %w", f.Dir, err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("pack folder %s: %w", f.Dir, err)
		}
		config = config.DeepCopy()
		config.OS, config.Architecture = "linux", f.Architecture
		if img, err = mutate.ConfigFile(img, config); err != nil {
			return nil, fmt.Errorf("pack folder %s: %w", f.Dir, err)
		}
		annotations := map[string]string{annotationKey: f.Key}
		for name, value := range f.Annotations {
			annotations[name] = value
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: f.Architecture}, Annotations: annotations,
		}})
	}
	return index, nil
}

// packFolder returns the files of dir as a layer. It is compressed with zstd, by a library whose version go.mod pins: what gzip of
// the standard library gives depends on the version of Go.
func packFolder(dir string) (*layer, error) {
	var compressed bytes.Buffer
	squeezed, err := zstd.NewWriter(&compressed, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	plain := sha256.New()
	archive := tar.NewWriter(io.MultiWriter(squeezed, plain))
	err = filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		return packEntry(archive, file, filepath.ToSlash(name), entry)
	})
	if err := errors.Join(err, archive.Close(), squeezed.Close()); err != nil {
		return nil, err
	}
	whole := sha256.Sum256(compressed.Bytes())
	return &layer{
		compressed: compressed.Bytes(),
		digest:     v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(whole[:])},
		diff:       v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(plain.Sum(nil))},
		media:      types.OCILayerZStd,
	}, nil
}

// packEntry writes one file or folder, without what depends on the machine.
func packEntry(archive *tar.Writer, file, name string, entry fs.DirEntry) error {
	if entry.IsDir() {
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: time.Unix(0, 0)})
	}
	if !entry.Type().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a folder", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0)}
	if info.Mode()&0o100 != 0 {
		header.Mode = 0o755
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return err
}

// Folder unpacks the image with that key out of the index that ref is, on a registry, in an archive or in an OCI layout, to
// dir, which must not exist; its parent has room for temporary files. All that is read is held to the digest in ref, if it has one,
// or else to the index.
func (c Client) Folder(ctx context.Context, ref, key, dir string) error {
	err := c.index(ctx, ref, filepath.Dir(dir), func(index v1.ImageIndex) error {
		img, err := keyed(index, key)
		if err != nil {
			return err
		}
		s, err := sourceOf(img, defaultLimits)
		if err != nil {
			return err
		}
		u, err := newUnpackerIn(filepath.Dir(dir), defaultLimits, true, func(string) bool { return true })
		if err != nil {
			return err
		}
		defer os.RemoveAll(u.dir)
		if err := s.take(ctx, ref, u); err != nil {
			return err
		}
		return u.tree(ctx, dir, func(name string) string { return name })
	})
	if err != nil {
		return hint.With(fmt.Errorf("unpack %s: %w", ref, err), "%s", cmp.Or(hint.Of(err), "name another image, or try again"))
	}
	return nil
}

// index calls use with the index that ref is. An archive is unpacked below the folder room.
func (c Client) index(ctx context.Context, ref, room string, use func(v1.ImageIndex) error) error {
	info, err := os.Stat(ref)
	var what Artifact
	switch {
	case err != nil: // no path
		what, err = c.Fetch(ctx, ref)
	case info.IsDir():
		what, err = readLayout(ref)
	default:
		var u *unpacker
		if u, err = newUnpackerIn(room, defaultLimits, false, func(string) bool { return true }); err != nil {
			return err
		}
		defer os.RemoveAll(u.dir)
		if what, err = u.layout(ctx, ref); err != nil {
			err = fmt.Errorf("read archive %s: %w", ref, err)
		}
	}
	if err != nil {
		return err
	}
	index, ok := what.(v1.ImageIndex)
	if !ok {
		return refuse("it is one image, and no index of several")
	}
	return use(index)
}

// layout unpacks an archive, and returns what the OCI layout in it holds.
func (u *unpacker) layout(ctx context.Context, archive string) (Artifact, error) {
	files := filepath.Join(u.dir, "archive")
	if err := u.archive(ctx, archive); err != nil {
		return nil, err
	}
	if err := u.tree(ctx, files, func(name string) string { return name }); err != nil {
		return nil, err
	}
	if !isLayout(files) {
		return nil, refuse("it holds no OCI layout")
	}
	return readLayout(files)
}

// keyed returns the image of index with that key.
func keyed(index v1.ImageIndex, key string) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var others []string
	for _, d := range manifest.Manifests {
		if d.Annotations[annotationKey] == key {
			return child(index, d.Digest)
		}
		others = append(others, d.Annotations[annotationKey])
	}
	return nil, refuse("none of its images is %s; they are %q", key, strings.Join(others, " "))
}
