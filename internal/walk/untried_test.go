package walk

import (
	"slices"
	"testing"
)

// What no sample asks for in its spec is named, of kinds of which all is asked for nothing.
func TestUntried(t *testing.T) {
	w := teaWalk()
	d := thingDefinition()
	w.noteAsked(d, "v1", map[string]any{"spec": map[string]any{"size": int64(1)}})
	w.noteAsked(d, "v1", map[string]any{"spec": map[string]any{"paused": false}})
	a := w.sampled[d.Name]
	if !slices.Contains(a.of, "size") || !slices.Contains(a.of, "depth") {
		t.Fatalf("the fields are %v", a.of)
	}
	w.sampled[d.Name] = askedFor{"Thing", []string{"a", "b", "c", "d", "e", "f", "g", "h", "size"}, a.by}
	w.sampled["whole.example.com"] = askedFor{"Whole", []string{"size"}, a.by}
	want := []string{"no sample of Thing asks for a, b, c, d, e, f, 2 more in its spec, so nothing shows what becomes of that: --sample gives one that does"}
	if got := w.untried(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
