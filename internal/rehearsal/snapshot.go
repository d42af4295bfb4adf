// Package rehearsal reads from a live cluster what is installed of a package, with the objects of its kinds, so that the upgrade
// that is due can be walked elsewhere with these very objects. It only reads, and no Secrets.
package rehearsal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/walk"
)

// What a file with a Snapshot says that it is.
const (
	APIVersion = "olmkit/v1"
	Kind       = "RehearsalSnapshot"
)

// Snapshot is what was read of a cluster, and all that a rehearsal needs.
type Snapshot struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Read       time.Time `json:"read"`
	Redacted   bool      `json:"redacted,omitempty"`
	Installed  Installed `json:"installed"`
	// Way are the bundles that OLM installs one after the other, after the installed one.
	Way         []string                                    `json:"way"`
	Definitions []*apiextensionsv1.CustomResourceDefinition `json:"definitions"`
	Objects     []*unstructured.Unstructured                `json:"objects"` // each in the version in which it is stored, as far as that is known
	Catalog     []json.RawMessage                           `json:"catalog"` // the documents with the bundles of the way
	Notes       []string                                    `json:"notes,omitempty"`
}

// Installed is what is installed of the package, and how.
type Installed struct {
	Package   string         `json:"package"`
	Channel   string         `json:"channel"`
	Bundle    string         `json:"bundle"`
	Namespace string         `json:"namespace"` // of the Subscription
	Mode      lifecycle.Mode `json:"installMode"`
	Targets   []string       `json:"targets,omitempty"` // the namespaces that are served, where they are not the Subscription's
	Catalog   string         `json:"catalogSource"`     // namespace/name
}

// Marshal returns s as a file.
func (s *Snapshot) Marshal() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(s); err != nil {
		return nil, fmt.Errorf("write the snapshot: %w", err)
	}
	return out.Bytes(), nil
}

// Parse reads what Marshal wrote.
func Parse(data []byte) (*Snapshot, error) {
	s := &Snapshot{}
	err := json.Unmarshal(data, s)
	switch {
	case err != nil:
	case s.APIVersion != APIVersion || s.Kind != Kind:
		err = fmt.Errorf("it is %s %s, and no %s %s", s.APIVersion, s.Kind, APIVersion, Kind)
	case slices.Contains(s.Definitions, nil) || slices.Contains(s.Objects, nil):
		err = errors.New("one of its definitions or objects is null")
	case s.Installed.Package == "" || s.Installed.Bundle == "" || len(s.Catalog) == 0:
		err = errors.New("it names no installed bundle, or holds no catalog")
	}
	if err != nil {
		return nil, hint.With(fmt.Errorf("read the snapshot: %w", err), "write one with 'olmkit upgrade rehearse --save FILE'")
	}
	return s, nil
}

// Plan is the walk along the way of s. The package is nil if there is no way to walk.
func (s *Snapshot) Plan(file string) (*catalog.Package, graph.Plan, error) {
	plan := graph.Plan{Package: s.Installed.Package, Channel: s.Installed.Channel, Head: s.Installed.Bundle}
	loaded := catalog.Parse(file, joined(s.Catalog))
	if err := loaded.Err(); err != nil {
		return nil, plan, err
	}
	p := loaded.Find(s.Installed.Package)
	if p == nil || p.Channel(s.Installed.Channel) == nil {
		return nil, plan, fmt.Errorf("the snapshot's catalog has no package %s with a channel %s", s.Installed.Package, s.Installed.Channel)
	}
	edges := slices.Collect(graph.New(p, p.Channel(s.Installed.Channel)).All())
	from := s.Installed.Bundle
	for _, to := range s.Way {
		i := slices.IndexFunc(edges, func(e graph.Edge) bool { return e.From == from && e.To == to })
		if i < 0 {
			return nil, plan, fmt.Errorf("channel %s of package %s has no edge from %s to %s", s.Installed.Channel, p.Name, from, to)
		}
		plan.Hops = append(plan.Hops, edges[i])
		plan.Head, from = to, to
	}
	return p, plan, nil
}

// Restore is what the walk restores of s.
func (s *Snapshot) Restore() *walk.Restored {
	return &walk.Restored{Definitions: s.Definitions, Objects: s.Objects, Mode: s.Installed.Mode, Targets: s.Installed.Targets, Notes: s.Notes, Redacted: s.Redacted}
}

func joined(documents []json.RawMessage) []byte {
	var out bytes.Buffer
	for _, d := range documents {
		out.Write(d)
		out.WriteByte('\n')
	}
	return out.Bytes()
}
