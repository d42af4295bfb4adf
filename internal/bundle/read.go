// Package bundle reads, writes and generates bundles in the registry+v1 format: a directory with manifests/ and metadata/,
// https://olm.operatorframework.io/docs/tasks/creating-operator-bundle/.
package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
)

// Keys of metadata/annotations.yaml.
const (
	AnnotationPackage        = "operators.operatorframework.io.bundle.package.v1"
	AnnotationChannels       = "operators.operatorframework.io.bundle.channels.v1"
	AnnotationDefaultChannel = "operators.operatorframework.io.bundle.channel.default.v1"
	AnnotationManifests      = "operators.operatorframework.io.bundle.manifests.v1"
	AnnotationMediaType      = "operators.operatorframework.io.bundle.mediatype.v1"
	AnnotationMetadata       = "operators.operatorframework.io.bundle.metadata.v1"
)

// KindCSV is the kind of the manifest that a bundle is about.
const KindCSV = "ClusterServiceVersion"

// Bundle is what a bundle directory holds.
type Bundle struct {
	Dir           string            // as given to Read, the prefix of all locations
	Annotations   map[string]string // of metadata/annotations.yaml
	Labels        map[string]string // of the image that it was read from; nil for a directory
	AnnotationsAt finding.Location
	Manifests     []Manifest         // by file name, then as they stand in the file
	Dependencies  []Property         // of metadata/dependencies.yaml
	Properties    []Property         // of metadata/properties.yaml
	Ignored       []finding.Location // files and documents in manifests/ that are no Kubernetes objects, which opm and OLM pass over
}

// Manifest is one Kubernetes object of a bundle.
type Manifest struct {
	File       string // its base name
	Index      int    // 0 for the first document of the file; opm and OLM know only that one
	JSON       json.RawMessage
	APIVersion string
	Kind       string
	Name       string
	Namespace  string
	At         finding.Location
	Document   *document.Document // for the places of fields
}

// Property is an entry of dependencies.yaml or properties.yaml.
type Property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`

	Document *document.Document `json:"-"` // that it stands in, for places
	Path     []any              `json:"-"` // there
}

// Place returns where the property stands, or the field at path in it.
func (p Property) Place(path ...any) finding.Location {
	return p.Document.Place(slices.Concat(p.Path, path)...)
}

// Package returns the name of the package that the bundle's annotations name, or "".
func (b *Bundle) Package() string { return b.Annotations[AnnotationPackage] }

// CSV returns the first ClusterServiceVersion, which is the one that opm and OLM take, or nil.
func (b *Bundle) CSV() *Manifest {
	for i := range b.Manifests {
		if b.Manifests[i].Kind == KindCSV {
			return &b.Manifests[i]
		}
	}
	return nil
}

// Is reports whether dir looks like a bundle: it has the folders manifests and metadata.
func Is(dir string) bool {
	for _, name := range []string{"manifests", "metadata"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// In returns the bundle directories in the folder dir, at whatever depth, in the order of their names, also those that lack metadata. They are none
// where dir has a folder manifests or metadata itself: it is to be a bundle then.
func In(dir string) ([]string, error) {
	for _, name := range []string{"manifests", "metadata"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			return nil, nil
		}
	}
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.IsDir() || !Is(path) && !hasCSV(path):
			return nil
		}
		found = append(found, path)
		return fs.SkipDir
	})
	if err != nil {
		return nil, fmt.Errorf("look for bundles in %s: %w", dir, err)
	}
	return found, nil
}

// hasCSV reports whether a file in the folder manifests of dir is named as ClusterServiceVersions are.
func hasCSV(dir string) bool {
	entries, err := os.ReadDir(filepath.Join(dir, "manifests"))
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.Contains(e.Name(), "clusterserviceversion.") })
}

// Read reads the bundle directory dir.
func Read(dir string) (*Bundle, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, hint.With(fmt.Errorf("read bundle: %w", err), "name a directory that holds manifests/ and metadata/")
	} else if !info.IsDir() {
		return nil, hint.With(fmt.Errorf("read bundle %s: it is a file", dir), "name the directory that holds manifests/ and metadata/")
	}
	return ReadFS(document.Dir(dir), filepath.ToSlash(dir))
}

// ReadFS reads the bundle at the root of fsys; locations begin with name.
func ReadFS(fsys fs.FS, name string) (*Bundle, error) {
	files, err := Files(fsys, name)
	if err != nil {
		return nil, err
	}
	return Parse(name, files, document.Parse)
}

// File is a file of a bundle.
type File struct {
	Path string // from the bundle's root
	Data []byte
}

// Files returns the plain files of manifests/ and metadata/ of the bundle at the root of fsys, which is called name, by
// path; opm reads no deeper and no dot files (operator-registry v1.74.0, pkg/registry/parse.go).
func Files(fsys fs.FS, name string) ([]File, error) {
	names, err := FileNames(fsys, name)
	if err != nil {
		return nil, err
	}
	files := make([]File, len(names))
	for i, file := range names {
		data, err := document.Limit(0).ReadFileIn(fsys, file)
		if err != nil {
			return nil, fmt.Errorf("read bundle %s: %w", name, err)
		}
		files[i] = File{file, data}
	}
	return files, nil
}

// FileNames returns the paths of Files.
func FileNames(fsys fs.FS, name string) ([]string, error) {
	var names []string
	for _, folder := range []string{"manifests", "metadata"} {
		entries, err := fs.ReadDir(fsys, folder)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, hint.With(fmt.Errorf("read bundle %s: there is no folder %s", name, folder),
				"name a directory that holds manifests/ and metadata/")
		}
		if err != nil {
			return nil, fmt.Errorf("read bundle %s: %w", name, err)
		}
		for _, e := range entries {
			if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			names = append(names, path.Join(folder, e.Name()))
		}
	}
	return names, nil
}

// Parse returns the bundle that files, in the order of Files, are; locations begin with name, and read is document.Parse or
// something that does the same.
func Parse(name string, files []File, read func(file string, data []byte) ([]*document.Document, error)) (*Bundle, error) {
	b := &Bundle{Dir: name, Annotations: map[string]string{}}
	for _, file := range files {
		add := b.addManifests
		if strings.HasPrefix(file.Path, "metadata/") {
			add = b.addMetadata
		}
		documents, err := read(path.Join(b.Dir, file.Path), file.Data)
		if err != nil && structured(file.Path) {
			return nil, hint.With(fmt.Errorf("read bundle: %w", err), "correct the YAML there")
		}
		if err := add(file.Path, documents); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *Bundle) addManifests(file string, documents []*document.Document) error {
	if len(documents) == 0 {
		b.Ignored = append(b.Ignored, finding.Location{File: path.Join(b.Dir, file)})
	}
	for i, d := range documents {
		m := Manifest{File: path.Base(file), Index: i, JSON: d.JSON, At: d.At, Document: d}
		if !m.Identify() {
			b.Ignored = append(b.Ignored, d.At)
			continue
		}
		b.Manifests = append(b.Manifests, m)
	}
	return nil
}

// Identify fills in what the manifest's JSON says of itself, and reports whether it is a Kubernetes object at all.
func (m *Manifest) Identify() bool {
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := document.Decode(m.JSON, &object); err != nil || object.Kind == "" {
		return false
	}
	m.APIVersion, m.Kind = object.APIVersion, object.Kind
	m.Name, m.Namespace = object.Metadata.Name, object.Metadata.Namespace
	return true
}

// structured reports whether a file's name promises YAML or JSON, so that one that is neither is a mistake.
func structured(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// addMetadata takes annotations, dependencies and properties from whichever file of metadata/ holds them first, as opm
// does (operator-registry v1.74.0, pkg/registry/parse.go, addMetadata).
func (b *Bundle) addMetadata(_ string, documents []*document.Document) error {
	if len(documents) == 0 {
		return nil
	}
	d := documents[0]
	var content struct {
		Annotations  map[string]json.RawMessage `json:"annotations"`
		Dependencies []Property                 `json:"dependencies"`
		Properties   []Property                 `json:"properties"`
	}
	if err := json.Unmarshal(d.JSON, &content); err != nil {
		at, text := d.Mismatch(err)
		return hint.With(fmt.Errorf("read bundle metadata: %s: %s", at, text),
			"annotations is a mapping, dependencies and properties are lists of type and value")
	}
	if b.AnnotationsAt.File == "" && len(content.Annotations) > 0 {
		b.AnnotationsAt = d.Place("annotations")
		for name, raw := range content.Annotations {
			var text string
			if json.Unmarshal(raw, &text) != nil {
				text = string(raw) // opm passes over the types of annotations that it does not know
			}
			b.Annotations[name] = text
		}
	}
	if b.Dependencies == nil {
		b.Dependencies = standing(content.Dependencies, d, "dependencies")
	}
	if b.Properties == nil {
		b.Properties = standing(content.Properties, d, "properties")
	}
	return nil
}

// standing says of properties where they stand: in a list of d.
func standing(list []Property, d *document.Document, name string) []Property {
	for i := range list {
		list[i].Document, list[i].Path = d, []any{name, i}
	}
	return list
}
