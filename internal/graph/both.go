package graph

import (
	"fmt"
	"slices"

	"github.com/olmkit/olmkit/internal/catalog"
)

// What the OLM of a drawing is, unless it is v0's alone.
const (
	OLMv1   = "v1"
	OLMBoth = "v0,v1"
)

// V1Arrow says that OLM v1 upgrades along an arrow.
type V1Arrow struct {
	Edge Kind `json:"edge"`
	Next bool `json:"next"` // it does if no version is pinned
}

// NewDrawingOfBoth returns the graph of channel c of p with what both versions of OLM take: that of NewDrawing, the edges that only
// OLM v1 takes, and on every edge whether OLM v1 takes it.
func NewDrawingOfBoth(p *catalog.Package, c *catalog.Channel, every bool) Drawing {
	d := NewDrawing(p, c, every)
	d.OLM = OLMBoth
	at := make(map[[2]string]int, len(d.Edges))
	for i, a := range d.Edges {
		at[[2]string{a.From, a.To}] = i
	}
	extra := 0
	v0 := New(p, c)
	for e := range NewV1(p, c.Name).edges() {
		i, drawn := at[[2]string{e.From, e.To}]
		if !drawn {
			if extra++; extra > mostExtra {
				d.More++
				continue
			}
			i = len(d.Edges)
			// What NewDrawing left out may be taken by OLM v0 as well.
			d.Edges = append(d.Edges, Arrow{From: e.From, To: e.To, Edge: e.Kind, Declared: e.Declared, Effective: v0.takes(e.From, e.To)})
		}
		d.Edges[i].V1 = &V1Arrow{Edge: e.Kind, Next: e.Next}
	}
	return d
}

// NewV1Drawing returns the graph of channel c of p as OLM v1 takes it. Nothing orders a channel there: its head is what a new
// ClusterExtension gets.
func NewV1Drawing(p *catalog.Package, c *catalog.Channel, every bool) Drawing {
	d := NewDrawing(p, c, false)
	d.OLM, d.Problem, d.Head, d.Edges, d.More = OLMv1, "", "", []Arrow{}, 0
	g := NewV1(p, c.Name)
	if len(g.list) > 0 {
		d.Head = g.list[0].Name
	}
	next := map[string]string{}
	extra := 0
	for e := range g.edges() {
		if e.Next {
			next[e.From] = e.To
		}
		if !e.Declared && !e.Next {
			if extra++; !every || extra > mostExtra {
				if every {
					d.More++
				}
				continue
			}
		}
		d.Edges = append(d.Edges, Arrow{From: e.From, To: e.To, Edge: e.Kind, Declared: e.Declared, Effective: true, Next: e.Next})
	}
	for i := range d.Entries {
		entry := &d.Entries[i]
		entry.Next = next[entry.Name]
		entry.Chosen = slices.ContainsFunc(g.list, func(b *v1Bundle) bool { return b.Name == entry.Name })
	}
	return d
}

// takes reports whether OLM v0 upgrades along the edge from one entry to another, were that the only candidate.
func (g *Channel) takes(from, to string) bool {
	return g.err == nil && g.Has(from, to) && !g.byName[to].forbidden
}

// Taken says when a version of OLM upgrades along an edge.
type Taken string

// When it does: Never, Possible (OLM v0 from a catalog without anything newer, OLM v1 if the version is pinned), Always.
const (
	Never    Taken = "never"
	Possible Taken = "possible"
	Always   Taken = "always"
)

// Taken says when OLM v0 and OLM v1 upgrade along an arrow of a drawing of both.
func (a Arrow) Taken() (v0, v1 Taken) {
	v0, v1 = Never, Never
	if a.Effective {
		v0 = Possible
	}
	if a.Next {
		v0 = Always
	}
	if a.V1 != nil {
		v1 = Possible
		if a.V1.Next {
			v1 = Always
		}
	}
	return v0, v1
}

// label is what stands on an arrow: its kind, and of a drawing of both whose way it is unless both take it.
func (d *Drawing) label(a Arrow) string {
	v0, v1 := a.Taken()
	switch {
	case d.OLM != OLMBoth || v0 == Always && v1 == Always:
		return string(a.Edge)
	case v1 == Never:
		return string(a.Edge) + ", OLM v0"
	case v1 == Always:
		return string(a.Edge) + ", OLM v1"
	case v0 == Always:
		return string(a.Edge) + ", OLM v0, OLM v1 if pinned"
	}
	return string(a.Edge) + ", OLM v1 if pinned"
}

// taken reports whether users go along an arrow by themselves.
func (a Arrow) taken() bool { return a.Next || a.V1 != nil && a.V1.Next }

// wordsOfV1 says, in a drawing of both, where else OLM v1 takes the users of an entry whose edges are given, in words that a line may
// be broken between; none where it takes what OLM v0 takes.
func (d *Drawing) wordsOfV1(edges []Arrow, skip int) []string {
	if d.OLM != OLMBoth {
		return nil
	}
	var next string
	var pinned []string
	same := true
	for _, a := range edges {
		v0, v1 := a.Taken()
		same = same && (v0 == Always) == (v1 == Always)
		switch v1 {
		case Always:
			next = "→ " + a.To[skip:] + "  " + string(a.V1.Edge)
		case Possible:
			pinned = append(pinned, fmt.Sprintf("%s (%s)", a.To[skip:], a.V1.Edge))
		}
	}
	words := []string{"OLM v1: goes nowhere"}
	switch {
	case same && len(pinned) == 0:
		return nil
	case next != "" && same:
		words[0] = "OLM v1: the same"
	case next != "":
		words[0] = "OLM v1: " + next
	}
	for i := range pinned {
		if i < len(pinned)-1 {
			pinned[i] += ","
		}
	}
	if len(pinned) > 0 {
		words[0] += ","
		pinned[0] = "if pinned " + pinned[0]
	}
	return append(words, pinned...)
}
