package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chain is a channel of n versions, each of which replaces the one before; every fifth is skipped by the next.
func chain(n int) Drawing {
	d := Drawing{Package: "tea", Channel: "stable", Head: fmt.Sprintf("tea.v1.%d.0", n-1)}
	name := func(i int) string { return fmt.Sprintf("tea.v1.%d.0", i) }
	last := 0
	for i := range n {
		skipped := i%5 == 3 && i < n-1
		d.Entries = append(d.Entries, Entry{Name: name(i), Chosen: !skipped})
		if i > 0 {
			d.Edges = append(d.Edges, Arrow{From: name(last), To: name(i), Edge: Replaces, Declared: true, Effective: true, Next: !skipped})
		}
		if i%5 == 4 {
			d.Edges = append(d.Edges, Arrow{From: name(i - 1), To: name(i), Edge: Skips, Declared: true, Effective: true, Next: true})
		}
		if i >= 10 {
			d.Edges = append(d.Edges, Arrow{From: name(i - 10), To: name(i), Edge: SkipRange, Effective: true})
		}
		if !skipped {
			last = i
		}
	}
	return d
}

func TestLay(t *testing.T) {
	for _, n := range []int{1, 2, 20, 100} {
		d := chain(n)
		l := d.Lay()
		if len(l.Boxes) != n || len(l.Curves) != len(d.Edges) {
			t.Fatalf("%d versions: %d boxes and %d curves for %d edges", n, len(l.Boxes), len(l.Curves), len(d.Edges))
		}
		for i, b := range l.Boxes {
			if b.X-b.Width/2 < 0 || b.X+b.Width/2 > l.Width || b.Y-b.Height/2 < 0 || b.Y+b.Height/2 > l.Height {
				t.Errorf("%d versions: %s lies outside", n, b.Label)
			}
			if i > 0 && l.Boxes[i-1].X+l.Boxes[i-1].Width/2 >= b.X-b.Width/2 {
				t.Errorf("%d versions: %s lies over %s", n, l.Boxes[i-1].Label, b.Label)
			}
			if rows := b.Y - l.Boxes[0].Y; (rows > 0) == b.Chosen {
				t.Errorf("%d versions: %s stands %d below the first row, chosen: %t", n, b.Label, rows, b.Chosen)
			}
		}
		for _, c := range l.Curves {
			if c.MidX < 0 || c.MidX > l.Width || c.MidY < 0 || c.MidY > l.Height {
				t.Errorf("%d versions: the edge %s → %s leaves the drawing: %d %d of %d %d", n, c.From, c.To, c.MidX, c.MidY, l.Width, l.Height)
			}
		}
		if diff := cmp.Diff(l, d.Lay()); diff != "" {
			t.Errorf("laid out again it differs:\n%s", diff)
		}
	}
}

// A new release moves nothing that was drawn before it.
func TestLayIsStable(t *testing.T) {
	before, after := chain(19).Lay(), chain(20).Lay()
	for i, b := range before.Boxes {
		if a := after.Boxes[i]; a.X != b.X || a.Width != b.Width {
			t.Errorf("%s was at %d and is at %d", b.Label, b.X, a.X)
		}
	}
}

// Between neighbours of one row an edge is a straight line, and no box of the row lies under it.
func TestLayStraight(t *testing.T) {
	l := chain(20).Lay()
	for _, c := range l.Curves {
		var from, to Box
		for _, b := range l.Boxes {
			switch b.Name {
			case c.From:
				from = b
			case c.To:
				to = b
			}
		}
		between := false
		for _, b := range l.Boxes {
			between = between || b.Y == from.Y && b.X > from.X && b.X < to.X
		}
		if straight := !strings.Contains(c.Path, "C"); straight != (from.Y == to.Y && !between) {
			t.Errorf("%s → %s: %s", c.From, c.To, c.Path)
		}
	}
}

// Edges of entries that are not there, entries told twice and channels in disorder are drawn as far as they can be.
func TestLayTolerant(t *testing.T) {
	d := Drawing{
		Problem: "two heads", Entries: []Entry{{Name: "a"}, {Name: "b"}, {Name: "b"}},
		Edges: []Arrow{{From: "a", To: "b"}, {From: "b", To: "a"}, {From: "a", To: "gone"}},
	}
	l := d.Lay()
	if len(l.Boxes) != 2 || len(l.Curves) != 2 {
		t.Errorf("%d boxes and %d curves", len(l.Boxes), len(l.Curves))
	}
	if l := (Drawing{}).Lay(); l.Width <= 0 || l.Height <= 0 {
		t.Errorf("nothing takes %d by %d", l.Width, l.Height)
	}
}
