package walk

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmkit/olmkit/internal/definition"
)

// askedFor is which fields of the spec of a kind samples ask for, of those that there are in the release that was walked last.
type askedFor struct {
	kind string
	of   []string
	by   map[string]bool
}

// noteAsked notes what an object that was made of d asks for.
func (w *walk) noteAsked(d *apiextensionsv1.CustomResourceDefinition, version string, object map[string]any) {
	a := w.sampled[d.Name]
	if a.by == nil {
		a.by = map[string]bool{}
	}
	a.kind, a.of = d.Spec.Names.Kind, nil
	if schema := definition.Schema(d, version); schema != nil {
		a.of = slices.Sorted(maps.Keys(schema.Properties["spec"].Properties))
	}
	spec, _ := object["spec"].(map[string]any)
	for field := range spec {
		a.by[field] = true
	}
	w.sampled[d.Name] = a
}

// noteTried notes that something followed a change of the field at path of an object of crd: what becomes of it was seen.
func (w *walk) noteTried(crd, path string) {
	field, _, _ := strings.Cut(strings.TrimPrefix(path, "spec."), ".")
	field, _, _ = strings.Cut(field, " ") // what follows says how it was changed
	if a := w.sampled[crd]; a.by != nil {
		a.by[field] = true
	}
}

// mostUntried bounds how many fields are named.
const mostUntried = 6

// untried says of each kind which fields of its spec no sample asks for: nothing shows what becomes of them.
func (w *walk) untried() []string {
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(w.sampled)) {
		a := w.sampled[name]
		fields := slices.DeleteFunc(slices.Clone(a.of), func(field string) bool { return a.by[field] })
		if len(fields) == 0 {
			continue
		}
		if more := len(fields) - mostUntried; more > 0 {
			fields = append(fields[:mostUntried], fmt.Sprintf("%d more", more))
		}
		notes = append(notes, fmt.Sprintf("no sample of %s asks for %s in its spec, so nothing shows what becomes of that: --sample gives one that does", a.kind, strings.Join(fields, ", ")))
	}
	return notes
}
