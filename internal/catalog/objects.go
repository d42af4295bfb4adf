package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
)

// Objects returns the manifests that the bundle carries inline, as JSON, in the order of its olm.bundle.object
// properties. A bundle that names an image only has none.
func (b *Bundle) Objects() ([]json.RawMessage, error) {
	properties := b.Properties
	if b.manifests != nil {
		var err error
		if properties, err = b.manifests(); err != nil {
			return nil, fmt.Errorf("read the manifests of bundle %s (%s): %w", b.Name, b.At, err)
		}
	}
	var objects []json.RawMessage
	for i, p := range properties {
		if p.Type != PropertyObject {
			continue
		}
		var value struct {
			Data []byte `json:"data"`
		}
		at := func() finding.Location { return b.Document.Place("properties", i) } // which reads the document from its start
		if err := document.Decode(p.Value, &value); err != nil {
			return nil, fmt.Errorf("read manifest of bundle %s at %s: %w", b.Name, at(), err)
		}
		if data := bytes.TrimSpace(value.Data); len(data) > 0 && data[0] == '{' && document.Valid(data) {
			objects = append(objects, data)
			continue
		}
		documents, err := document.Parse(at().String(), value.Data)
		if err != nil {
			return nil, fmt.Errorf("read manifest of bundle %s at %s: %w", b.Name, at(), err)
		}
		for _, d := range documents {
			objects = append(objects, d.JSON)
		}
	}
	return objects, nil
}

// Flaw is an error that is the catalog's own fault, not its reader's or the environment's.
type Flaw struct{ Err error }

func (f Flaw) Error() string { return f.Err.Error() }

// Unwrap returns what is wrong.
func (f Flaw) Unwrap() error { return f.Err }

// typeMeta is how a manifest says what it is.
type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// csvJSON returns the bundle's ClusterServiceVersion, from its inline manifests; "" when it has none.
func (b *Bundle) csvJSON() (string, error) {
	objects, err := b.Objects()
	if err != nil {
		return "", err
	}
	for _, o := range objects {
		var meta typeMeta
		if document.Decode(o, &meta) == nil && meta.Kind == v1alpha1.ClusterServiceVersionKind {
			return string(o), nil
		}
	}
	return "", nil
}

// CSV returns the bundle's ClusterServiceVersion, from its inline manifests.
func (b *Bundle) CSV() (*v1alpha1.ClusterServiceVersion, error) {
	raw, err := b.csvJSON()
	if err != nil {
		return nil, err
	}
	if raw != "" {
		csv := &v1alpha1.ClusterServiceVersion{}
		if err := json.Unmarshal([]byte(raw), csv); err != nil {
			return nil, Flaw{Err: fmt.Errorf("read the ClusterServiceVersion of bundle %s (%s): %w", b.Name, b.At, err)}
		}
		return csv, nil
	}
	if !b.Has(PropertyObject) {
		return nil, hint.With(fmt.Errorf("bundle %s (%s) carries no manifests", b.Name, b.At),
			"render the bundle from its directory, so that the catalog holds its manifests")
	}
	return nil, hint.With(Flaw{Err: fmt.Errorf("bundle %s (%s) has no ClusterServiceVersion", b.Name, b.At)},
		"add the ClusterServiceVersion to the bundle's manifests")
}

// CRDs returns the bundle's CustomResourceDefinitions of apiextensions.k8s.io/v1, from its inline manifests.
func (b *Bundle) CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	objects, err := b.Objects()
	if err != nil {
		return nil, err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, o := range objects {
		var meta typeMeta
		if document.Decode(o, &meta) != nil || meta.Kind != "CustomResourceDefinition" || meta.APIVersion != "apiextensions.k8s.io/v1" {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(o, crd); err != nil {
			return nil, fmt.Errorf("read a CustomResourceDefinition of bundle %s (%s): %w", b.Name, b.At, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}
