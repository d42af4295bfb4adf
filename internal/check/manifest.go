package check

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
)

// unpacked is the bundle directory that b was rendered from, as far as its manifests tell; all of them stand where b does.
func (s *subject) unpacked(b *catalog.Bundle) *bundle.Bundle {
	u := &bundle.Bundle{Dir: b.At.File, AnnotationsAt: b.At, Annotations: map[string]string{
		bundle.AnnotationPackage:   b.Package,
		bundle.AnnotationMediaType: "registry+v1",
		bundle.AnnotationManifests: "manifests/",
		bundle.AnnotationMetadata:  "metadata/",
	}}
	objects, err := b.Objects()
	if err != nil {
		return u
	}
	source := s.source(b, len(objects))
	for i, o := range objects {
		if m := (bundle.Manifest{JSON: o, At: b.At, Document: source(i, o)}); m.Identify() {
			u.Manifests = append(u.Manifests, m)
		}
	}
	return u
}

// inlined is a manifest of a bundle: which of those it is, of all and of those that one property holds.
type inlined struct {
	of          *catalog.Bundle
	index       int
	number, nth int // the property, and which of its manifests
}

// manifest returns the document of a manifest of a bundle that carries count of them.
func (s *subject) manifest(m inlined, count int) *document.Document {
	objects, err := s.told.objects(m.of, m.number)
	if err != nil || m.nth >= len(objects) {
		return document.New(nil, m.of.At)
	}
	return s.source(m.of, count)(m.index, objects[m.nth])
}

// recent holds the manifests that were asked for last: a check that finds something in one often finds more there, and so does the next
// check. To hold all would be to hold the catalog.
type recent struct {
	mu   sync.Mutex
	held []held // the newest last
}

// held is what a property of a bundle holds.
type held struct {
	of      *catalog.Bundle
	number  int
	objects []json.RawMessage
}

// mostRecent is of how many properties the manifests are held.
const mostRecent = 4

// objects returns the manifests that the property of a number holds in b.
func (r *recent) objects(b *catalog.Bundle, number int) ([]json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.held, func(h held) bool { return h.of == b && h.number == number }); i >= 0 {
		found := r.held[i]
		r.held = append(slices.Delete(r.held, i, i+1), found)
		return found.objects, nil
	}
	objects, err := b.ObjectsAt(number)
	if err != nil {
		return nil, err
	}
	r.held = append(r.held, held{b, number, objects})
	r.held = slices.Delete(r.held, 0, max(0, len(r.held)-mostRecent))
	return objects, nil
}

// source returns the function that returns the document of manifest i of b, which has so many: where the bundle's directory
// is at hand and has the same, the one there, else the one that the catalog encodes.
func (s *subject) source(b *catalog.Bundle, count int) func(i int, raw json.RawMessage) *document.Document {
	places := objectPlaces(b, count)
	files := b.Document.Files()
	if s.template != nil && files == nil {
		if p := s.template.Find(b.Package); p != nil {
			if made := p.Bundle(b.Name); made != nil {
				files = made.Document.Files()
			}
		}
	}
	return func(i int, raw json.RawMessage) *document.Document {
		if d := fileOf(files, raw); d != nil {
			return d
		}
		return document.Within(raw, b.At, func() finding.Location { return places(i) })
	}
}

// fileOf returns the document of the file that holds the same manifest as raw, or nil.
func fileOf(files []bundle.Manifest, raw json.RawMessage) *document.Document {
	if len(files) == 0 {
		return nil
	}
	text := canonical(raw)
	for _, m := range files {
		if canonical(m.JSON) == text {
			return m.Document
		}
	}
	return nil
}

// objectPlaces returns the function that tells where the manifests of b stand, count of them: each at the data of its
// property, where each property holds one. It is asked for findings only, since places are costly.
func objectPlaces(b *catalog.Bundle, count int) func(int) finding.Location {
	var properties []int
	for i, p := range b.Properties {
		if p.Type == catalog.PropertyObject {
			properties = append(properties, i)
		}
	}
	return func(i int) finding.Location {
		if i < 0 || len(properties) != count {
			return b.At
		}
		return b.PlaceOfData(properties[i])
	}
}
