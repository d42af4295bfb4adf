package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/image"
)

// Pack writes the manifests that the bundle carries inline into the empty folder dir, as a bundle of the package pkg, and returns
// its image. annotations are those of the bundle besides the ones that every bundle has.
func (b *Bundle) Pack(dir, pkg string, annotations map[string]string) (image.Artifact, error) {
	objects, err := b.Objects()
	if err != nil {
		return nil, err
	}
	all := map[string]string{
		bundle.AnnotationMediaType: "registry+v1", bundle.AnnotationManifests: "manifests/", bundle.AnnotationMetadata: "metadata/", bundle.AnnotationPackage: pkg,
	}
	maps.Copy(all, annotations)
	metadata, err := json.Marshal(map[string]map[string]string{"annotations": all})
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"metadata/annotations.yaml": metadata}
	for i, o := range objects {
		files[fmt.Sprintf("manifests/%04d.json", i)] = o
	}
	for name, data := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, data, 0o600)); err != nil {
			return nil, err
		}
	}
	return image.Bundle(dir)
}

// WithImages returns fbc, a stream of JSON documents, in which bundles have the given images, by package/name.
func WithImages(fbc []byte, images map[string]string) ([]byte, error) {
	return RewriteBundles(fbc, func(pkg, name string, document map[string]json.RawMessage) (err error) {
		if made := images[pkg+"/"+name]; made != "" {
			document["image"], err = json.Marshal(made)
		}
		return err
	})
}

// RewriteBundles returns fbc, a stream of JSON documents, with the bundles of each package as change leaves them.
func RewriteBundles(fbc []byte, change func(pkg, name string, document map[string]json.RawMessage) error) ([]byte, error) {
	return Rewrite(fbc, func(document map[string]json.RawMessage) error {
		var schema, name, pkg string
		for field, value := range map[string]*string{"schema": &schema, "name": &name, "package": &pkg} {
			_ = json.Unmarshal(document[field], value) // what has no such field is no bundle
		}
		if schema != SchemaBundle {
			return nil
		}
		return change(pkg, name, document)
	})
}

// Rewrite returns fbc, a stream of JSON documents, with each as change leaves it.
func Rewrite(fbc []byte, change func(document map[string]json.RawMessage) error) ([]byte, error) {
	var out bytes.Buffer
	for decoder := json.NewDecoder(bytes.NewReader(fbc)); ; {
		var document map[string]json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		if err := change(document); err != nil {
			return nil, err
		}
		if err := json.NewEncoder(&out).Encode(document); err != nil {
			return nil, err
		}
	}
}
