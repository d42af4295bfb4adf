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
	var objects []json.RawMessage
	err := b.eachValue(everyNumber, addTo(&objects))
	return objects, err
}

// addTo returns the function that adds what properties hold to list.
func addTo(list *[]json.RawMessage) func([]byte, func() ([]json.RawMessage, error)) error {
	return func(_ []byte, objects func() ([]json.RawMessage, error)) error {
		found, err := objects()
		*list = append(*list, found...)
		return err
	}
}

// EachValue calls visit with the value of each olm.bundle.object property, which is overwritten after that, and what returns those of
// Objects that it holds.
func (b *Bundle) EachValue(visit func(value []byte, objects func() ([]json.RawMessage, error)) error) error {
	return b.eachValue(everyNumber, visit)
}

// ObjectsAt returns those of Objects that the property of a number, counted among those of its type, holds. It reads little else.
func (b *Bundle) ObjectsAt(number int) ([]json.RawMessage, error) {
	var objects []json.RawMessage
	err := b.eachValue(number, addTo(&objects))
	return objects, err
}

// everyNumber stands for the numbers of all olm.bundle.object properties.
const everyNumber = -1

func (b *Bundle) eachValue(wanted int, visit func(value []byte, objects func() ([]json.RawMessage, error)) error) error {
	properties, done, err := b.inline(wanted)
	defer done()
	if err != nil {
		return fmt.Errorf("read the manifests of bundle %s (%s): %w", b.Name, b.At, err)
	}
	number := 0
	for i, p := range properties {
		if p.Type != PropertyObject {
			continue
		}
		if wanted == everyNumber || wanted == number {
			if err := visit(p.Value, func() ([]json.RawMessage, error) { return b.decode(i, p.Value) }); err != nil {
				return err
			}
		}
		number++
	}
	return nil
}

// inline returns the bundle's properties, until done is called; of those of type olm.bundle.object with a number that is not wanted the
// values may be missing.
func (b *Bundle) inline(wanted int) (properties []Property, done func(), err error) {
	done = func() {}
	switch {
	case b.manifests != nil:
		properties, err = b.manifests()
	case b.Document != nil && b.Document.region != nil:
		first, end := 0, min(len(b.Document.held), len(b.Properties))
		if wanted != everyNumber {
			first = b.propertyOf(wanted)
			end = min(end, first+1)
		}
		return b.Document.withValues(b.Properties, first, end)
	default:
		properties = b.Properties
	}
	return properties, done, err
}

// propertyOf returns the index of the olm.bundle.object property of a number, or how many properties there are.
func (b *Bundle) propertyOf(number int) int {
	for i, p := range b.Properties {
		if p.Type != PropertyObject {
			continue
		}
		if number == 0 {
			return i
		}
		number--
	}
	return len(b.Properties)
}

// decode returns the manifests that stand in the value of property i.
func (b *Bundle) decode(i int, raw json.RawMessage) ([]json.RawMessage, error) {
	var value struct {
		Data []byte `json:"data"`
	}
	at := func() finding.Location { return b.Document.Place("properties", i) } // which reads the document from its start
	if err := document.Decode(raw, &value); err != nil {
		return nil, fmt.Errorf("read manifest of bundle %s at %s: %w", b.Name, at(), err)
	}
	if data := bytes.TrimSpace(value.Data); len(data) > 0 && data[0] == '{' && document.Valid(data) {
		return []json.RawMessage{data}, nil
	}
	documents, err := document.Parse(at().String(), value.Data)
	if err != nil {
		return nil, fmt.Errorf("read manifest of bundle %s at %s: %w", b.Name, at(), err)
	}
	objects := make([]json.RawMessage, len(documents))
	for i, d := range documents {
		objects[i] = d.JSON
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
