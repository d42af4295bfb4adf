package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
)

// Input is one Kubernetes object that a bundle is generated from.
type Input struct {
	APIVersion, Kind, Namespace, Name string

	*document.Document        // exact, and knows where it stands
	text               []byte // the YAML that the document is part of, for its comments
}

// ID names the object as Kind/namespace/name or Kind/name.
func (i Input) ID() string {
	if i.Namespace == "" {
		return i.Kind + "/" + i.Name
	}
	return i.Kind + "/" + i.Namespace + "/" + i.Name
}

// group is the API group, "" for the core one.
func (i Input) group() string {
	group, _, found := strings.Cut(i.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// errorf is an error about the field at path of the object.
func (i Input) errorf(path []any, format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", i.Place(path...), i.ID(), fmt.Errorf(format, args...))
}

// decode fills a typed object.
func (i Input) decode(into any) error {
	if err := json.Unmarshal(i.JSON, into); err != nil {
		return i.errorf(nil, "read as %s %s: %w", i.APIVersion, i.Kind, err)
	}
	return nil
}

// node returns the object as a YAML tree, with the comments of its text.
func (i Input) node() *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(i.text))
	for {
		var n yaml.Node
		if decoder.Decode(&n) != nil {
			return nodeOfJSON(i.JSON)
		}
		if len(n.Content) == 1 && n.Content[0].Kind == yaml.MappingNode && n.Content[0].Style&yaml.FlowStyle == 0 &&
			textAt(n.Content[0], "kind") == i.Kind && textAt(n.Content[0], "metadata", "name") == i.Name {
			return n.Content[0]
		}
	}
}

// Inputs reads the objects at source: a kustomize directory, which is built in this process, another directory's YAML and
// JSON files at any depth, one file, or, for "-", what stdin holds.
func Inputs(source string, stdin io.Reader) ([]Input, error) {
	if source == "-" {
		data, err := document.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return parseInputs("<stdin>", data)
	}
	info, err := os.Stat(source)
	if err != nil {
		return nil, hint.With(fmt.Errorf("read the manifests: %w", err), "name a kustomize directory, a directory of YAML files, a file, or - for standard input")
	}
	if !info.IsDir() {
		data, err := document.ReadFile(source)
		if err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		return parseInputs(source, data)
	}
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if _, err := os.Stat(filepath.Join(source, name)); err == nil {
			return kustomize(source)
		}
	}
	var inputs []Input
	err = filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return nil
		}
		data, err := document.ReadRegular(path)
		if err != nil {
			return err
		}
		found, err := parseInputs(path, data)
		inputs = append(inputs, found...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the manifests in %s: %w", source, err)
	}
	return inputs, nil
}

// kustomize builds the directory. Its objects are said to stand at the directory, since what kustomize makes of several
// files stands in none of them.
func kustomize(dir string) ([]Input, error) {
	options := krusty.MakeDefaultOptions()
	// As 'kustomize build --load-restrictor LoadRestrictionsNone': a release's overlay takes resources from beside it.
	options.LoadRestrictions = types.LoadRestrictionsNone
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, hint.With(fmt.Errorf("kustomize build %s: %w", dir, err), "correct what it names: %s lists its files, and those of the directories that it names", filepath.Join(dir, "kustomization.yaml"))
	}
	var inputs []Input
	for _, resource := range built.Resources() {
		// The resource's own tree and not its JSON: it has the comments and the exact numbers.
		written, err := resource.RNode.String()
		if err != nil {
			return nil, fmt.Errorf("kustomize build %s: write %s: %w", dir, resource.CurId(), err)
		}
		found, err := parseInputs(dir, []byte(written))
		if err != nil {
			return nil, fmt.Errorf("kustomize build %s: %w", dir, err)
		}
		for _, input := range found {
			input.At.Line, input.At.Column = 0, 0
			input.Document = document.New(input.JSON, input.At)
			inputs = append(inputs, input)
		}
	}
	return inputs, nil
}

// parseInputs returns the objects of one YAML or JSON text; the items of a List are objects of their own.
func parseInputs(file string, data []byte) ([]Input, error) {
	documents, err := document.Parse(file, data)
	if err != nil {
		return nil, err
	}
	var inputs []Input
	var problems []error
	for _, d := range documents {
		for _, twice := range d.Duplicates() {
			problems = append(problems, hint.With(fmt.Errorf("%s: the key %q stands twice in one mapping", twice.At, twice.Key), "delete one of them"))
		}
		var list struct {
			APIVersion string            `json:"apiVersion"`
			Kind       string            `json:"kind"`
			Items      []json.RawMessage `json:"items"`
		}
		if json.Unmarshal(d.JSON, &list) == nil && list.APIVersion == "v1" && list.Kind == "List" {
			for i, item := range list.Items {
				input, err := inputOf(document.New(item, d.Place("items", i)), nil)
				inputs, problems = append(inputs, input), append(problems, err)
			}
			continue
		}
		input, err := inputOf(d, data)
		inputs, problems = append(inputs, input), append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return inputs, nil
}

func inputOf(d *document.Document, text []byte) (Input, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(d.JSON, &head); err != nil {
		return Input{}, fmt.Errorf("%s: not a Kubernetes object: %w", d.At, err)
	}
	switch {
	case head.APIVersion == "" && head.Kind == "":
		return Input{}, hint.With(fmt.Errorf("%s: not a Kubernetes object: it has no apiVersion and kind", d.At),
			"point --manifests at Kubernetes manifests, or at a directory with a kustomization.yaml")
	case head.APIVersion == "":
		return Input{}, hint.With(fmt.Errorf("%s: %s/%s: it has no apiVersion", d.At, head.Kind, head.Metadata.Name),
			"write the apiVersion of its kind, as apps/v1 of a Deployment")
	case head.Kind == "":
		return Input{}, hint.With(fmt.Errorf("%s: an object of %s has no kind", d.At, head.APIVersion), "write its kind")
	}
	return Input{
		APIVersion: head.APIVersion, Kind: head.Kind, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name,
		Document: d, text: text,
	}, nil
}
