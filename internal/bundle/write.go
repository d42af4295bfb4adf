package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/output"
)

// Write puts the bundle at dir, all of it or nothing: what is in manifests/ now is replaced, anything else in dir stays,
// and so do annotations in metadata/annotations.yaml that are not the bundle's own. It reports whether anything changed;
// a bundle that is already there is not touched.
func (g *Generated) Write(ctx context.Context, dir string) (changed bool, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return false, fmt.Errorf("write the bundle: %w", err)
	}
	present, err := filesBelow(dir)
	if err != nil {
		return false, fmt.Errorf("write the bundle: read what is at %s: %w", dir, err)
	}
	if len(present) > 0 && !Is(dir) {
		return false, hint.With(fmt.Errorf("write the bundle: %s is not empty and holds no bundle", dir), "name a new directory with --output-dir")
	}
	wanted := maps.Clone(present)
	maps.DeleteFunc(wanted, func(name string, _ []byte) bool { return strings.HasPrefix(name, "manifests/") })
	maps.Copy(wanted, g.Files)
	const annotations = "metadata/annotations.yaml"
	if old := present[annotations]; old != nil {
		if other := packageIn(old); other != "" && other != packageIn(g.Files[annotations]) {
			return false, hint.With(fmt.Errorf("write the bundle: %s holds a bundle of package %s", dir, other), "name another directory with --output-dir, or delete it")
		}
		if wanted[annotations], err = mergeAnnotations(old, g.Files[annotations]); err != nil {
			return false, hint.With(fmt.Errorf("write the bundle: read %s: %w", filepath.Join(dir, annotations), err), "correct or delete the file")
		}
	}
	if maps.EqualFunc(present, wanted, bytes.Equal) {
		return false, nil
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if _, stays := wanted[name]; !stays {
			g.Notes = append(g.Notes, name+" is removed: it is not made of the inputs")
		}
	}
	if err := output.Dir(ctx, dir, func(fresh string) error { return writeFiles(fresh, wanted) }); err != nil {
		return false, fmt.Errorf("write the bundle: %w", err)
	}
	return true, nil
}

// filesBelow returns the content of all files below dir by their path in it; none if dir does not exist.
func filesBelow(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == dir {
			return fs.SkipAll
		}
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is no plain file", name)
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(relative)], err = os.ReadFile(name)
		return err
	})
	return files, err
}

// packageIn is the package that a bundle's annotations name, "" if they cannot be read.
func packageIn(annotations []byte) string {
	var said struct {
		Annotations map[string]string `yaml:"annotations"`
	}
	if yaml.Unmarshal(annotations, &said) != nil {
		return ""
	}
	return said.Annotations[AnnotationPackage]
}

// mergeAnnotations returns old with the annotations of made set in it.
func mergeAnnotations(old, made []byte) ([]byte, error) {
	var into, from yaml.Node
	if err := yaml.Unmarshal(old, &into); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(made, &from); err != nil {
		return nil, err
	}
	if len(into.Content) == 0 || into.Content[0].Kind != yaml.MappingNode {
		return made, nil
	}
	list := field(into.Content[0], "annotations")
	if list == nil || list.Kind != yaml.MappingNode {
		return made, nil
	}
	ours := field(from.Content[0], "annotations")
	for i := 0; i+1 < len(ours.Content); i += 2 {
		key, value := ours.Content[i], ours.Content[i+1]
		if at := keyIndex(list, key.Value); at < 0 {
			list.Content = append(list.Content, key, value)
		} else if list.Content[at+1].Value != value.Value {
			list.Content[at+1].Value = value.Value
		}
	}
	return encode(into.Content[0]), nil
}

// writeFiles writes files below dir, which must not exist.
func writeFiles(dir string, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(path.Dir(name))), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
