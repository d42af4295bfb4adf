package report

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/graph"
)

// kept is r as it comes back from a file.
func kept(t *testing.T, r *Report) *Report {
	t.Helper()
	var b bytes.Buffer
	if err := JSON(&b, r); err != nil {
		t.Fatal(err)
	}
	back := &Report{}
	if err := json.Unmarshal(b.Bytes(), back); err != nil {
		t.Fatal(err)
	}
	back.Titles, back.Source, back.Verbose, back.Page = r.Titles, r.Source, r.Verbose, r.Page
	return back
}

// same holds every rendering of got to that of want.
func same(t *testing.T, want, got *Report) {
	t.Helper()
	for _, format := range Formats {
		var expected, rendered bytes.Buffer
		if err := Write(&expected, format, want, false); err != nil {
			t.Fatal(err)
		}
		if err := Write(&rendered, format, got, false); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected.String(), rendered.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

// TestKept: a report that was kept as JSON says in every format what it said at first.
func TestKept(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*Report{"validate": validation(), "upgrade": upgrade(), "all": walked("x"), "nothing": {}} {
		t.Run(name, func(t *testing.T) { same(t, r, kept(t, r)) })
	}
}

// TestMergedRenderings: what is made of the kept reports of all shards is what is made of the walk in one piece, with the
// edges that no hop walks.
func TestMergedRenderings(t *testing.T) {
	t.Parallel()
	all, shards := whole()
	drawn := []graph.Drawing{{
		Package: "p", Channel: "c", Default: true, Head: "4",
		Entries: []graph.Entry{{Name: "0", Next: "1", Chosen: true}, {Name: "1", Next: "2", Chosen: true}, {Name: "2", Next: "3"}, {Name: "3", Next: "4", Chosen: true}, {Name: "4", Chosen: true}},
		Edges: []graph.Arrow{
			{From: "0", To: "1", Edge: graph.Replaces, Declared: true, Effective: true, Next: true}, {From: "1", To: "2", Edge: graph.Replaces, Declared: true, Effective: true, Next: true},
			{From: "2", To: "3", Edge: graph.Replaces, Declared: true, Effective: true, Next: true}, {From: "3", To: "4", Edge: graph.Replaces, Declared: true, Effective: true, Next: true},
			{From: "2", To: "4", Edge: graph.Skips, Declared: true},
		},
	}}
	all.Graph = drawn
	for i := range shards {
		shards[i].Graph = drawn
		shards[i] = kept(t, shards[i])
	}
	merged, err := Merge(shards)
	if err != nil {
		t.Fatal(err)
	}
	same(t, all, merged)
}
