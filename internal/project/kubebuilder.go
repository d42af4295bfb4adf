package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
)

// KubebuilderFile is where kubebuilder keeps what it knows of a project.
const KubebuilderFile = "PROJECT"

// Kubebuilder is what kubebuilder's file PROJECT says of a project.
type Kubebuilder struct {
	Name       string     `json:"projectName"`
	Domain     string     `json:"domain"`
	Repo       string     `json:"repo"`
	MultiGroup bool       `json:"multigroup"`
	Resources  []Resource `json:"resources"`
}

// Resource is a kind that a project knows: its own, if it has an API here.
type Resource struct {
	Group    string `json:"group"`
	Kind     string `json:"kind"`
	Version  string `json:"version"`
	External bool   `json:"external"`
	API      *struct {
		Namespaced bool `json:"namespaced"`
	} `json:"api"`
}

// Kinds returns the kinds that the project owns, each once, in the order of the file.
func (k *Kubebuilder) Kinds() []string {
	var kinds []string
	seen := map[string]bool{}
	for _, r := range k.Resources {
		if r.API != nil && !r.External && !seen[r.Group+"/"+r.Kind] {
			seen[r.Group+"/"+r.Kind] = true
			kinds = append(kinds, r.Kind)
		}
	}
	return kinds
}

// ReadKubebuilder reads the file PROJECT in dir; nil if there is none.
func ReadKubebuilder(dir string) (*Kubebuilder, error) {
	data, err := document.ReadRegular(filepath.Join(dir, KubebuilderFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read kubebuilder's file: %w", err)
	}
	documents, err := document.Parse(KubebuilderFile, data)
	if err == nil && len(documents) != 1 {
		err = errors.New("PROJECT does not hold one document")
	}
	k := &Kubebuilder{}
	if err == nil {
		if err = document.Decode(documents[0].JSON, k); err != nil {
			at, text := documents[0].Mismatch(err)
			err = fmt.Errorf("%s: %s", at, text)
		}
	}
	if err != nil {
		return nil, hint.With(fmt.Errorf("read kubebuilder's file: %w", err), "correct PROJECT: kubebuilder writes it")
	}
	return k, nil
}
