package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/olmkit/olmkit/internal/advice"
	"github.com/olmkit/olmkit/internal/output"
)

// annotationName is what engines call an image that they load; containerd reads the second, which is the whole reference.
const (
	annotationName           = "org.opencontainers.image.ref.name"
	annotationContainerdName = "io.containerd.image.name"
)

// Layout writes what to dir as an OCI layout, all of it or nothing. A layout that is there is replaced. With a reference
// other than "" the image is called that.
func (c Client) Layout(dir, reference string, what Artifact) error {
	present, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return advice.With(fmt.Errorf("write the layout: %w", err), "name a new directory with --oci-layout")
	}
	if len(present) > 0 && !isLayout(dir) {
		return advice.With(fmt.Errorf("write the layout: %s is not empty and holds no OCI layout", dir), "name a new directory with --oci-layout")
	}
	if err := output.Dir(dir, func(fresh string) error { return c.writeLayout(fresh, reference, what) }); err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	return nil
}

func (c Client) writeLayout(dir, reference string, what Artifact) error {
	annotations := map[string]string{}
	if reference != "" {
		ref, err := c.parse(reference)
		if err != nil {
			return err
		}
		annotations[annotationName], annotations[annotationContainerdName] = ref.Identifier(), ref.Name()
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	addendum := mutate.IndexAddendum{Descriptor: v1.Descriptor{Annotations: annotations}}
	switch what := what.(type) {
	case v1.ImageIndex:
		addendum.Add = what
	case v1.Image:
		addendum.Add = what
	default:
		return fmt.Errorf("it is a %T", what)
	}
	_, err := layout.Write(dir, mutate.AppendManifests(index, addendum))
	return err
}

// Archive writes what to file as a tar archive of an OCI layout, which container engines load; the same image gives the
// same bytes. With a reference other than "" the image is called that.
func (c Client) Archive(file, reference string, what Artifact) error {
	err := output.File(file, func(w io.Writer) error {
		stage, err := os.MkdirTemp(filepath.Dir(file), "."+filepath.Base(file)+".")
		if err != nil {
			return err
		}
		defer os.RemoveAll(stage)
		dir := filepath.Join(stage, "layout")
		if err := c.writeLayout(dir, reference, what); err != nil {
			return err
		}
		return archiveDir(w, dir)
	})
	if err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}

// archiveDir writes the files below dir as a tar archive.
func archiveDir(w io.Writer, dir string) error {
	var names []string
	tree := os.DirFS(dir)
	if err := fs.WalkDir(tree, ".", func(name string, _ fs.DirEntry, err error) error {
		if name != "." {
			names = append(names, name)
		}
		return err
	}); err != nil {
		return err
	}
	slices.Sort(names)
	archive := tar.NewWriter(w)
	for _, name := range names {
		if err := archiveOne(archive, tree, name); err != nil {
			return err
		}
	}
	return archive.Close()
}

func archiveOne(archive *tar.Writer, tree fs.FS, name string) error {
	f, err := tree.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0)}
	if info.IsDir() {
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: header.ModTime})
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return err
}

func isLayout(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "oci-layout"))
	return err == nil && info.Mode().IsRegular()
}
