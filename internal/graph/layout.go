package graph

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Layout is where a drawing's entries and edges lie on a plane whose y grows downwards, in units of which a letter takes
// about seven.
//
// Versions rise from the left to the right, a column for each entry, so that a new release changes nothing that was drawn
// before it. What OLM chooses from stands in one row, and what it passes over (see Order) in another below. Between
// neighbours an edge is a straight line; it arches over entries of its own row, and else runs between the rows.
type Layout struct {
	Width, Height int
	Boxes         []Box
	Curves        []Curve
}

// Box is where an entry lies; X and Y are its middle.
type Box struct {
	Entry
	Label         string // the entry's name without what all names share
	X, Y          int
	Width, Height int
}

// Curve is how an edge runs.
type Curve struct {
	Arrow
	Path       string // of an SVG path
	Tip        string // of the SVG path that is its arrow's head
	MidX, MidY int    // a point on it about half way
}

const (
	boxHeight  = 30
	boxGap     = 40 // between boxes
	rowGap     = 46 // between rows
	tipLength  = 7
	tipWidth   = 4
	letter     = 7.3
	margin     = 14
	archLow    = 16  // height of an arch's control points over the boxes, and
	archGrowth = 15. // what the square root of its span adds
)

// Lay lays d out.
func (d Drawing) Lay() Layout {
	prefix := commonName(d.Entries)
	l := Layout{}
	seats := map[string]seat{}
	filled := [2]int{}
	right := margin
	for i, e := range d.Entries {
		if _, twice := seats[e.Name]; twice {
			continue
		}
		row := 0
		if d.Head != "" && !e.Chosen {
			row = 1
		}
		seats[e.Name] = seat{i, row, filled[row]}
		filled[row]++
		b := Box{Entry: e, Label: strings.TrimPrefix(e.Name, prefix), Y: row * (boxHeight + rowGap), Height: boxHeight}
		b.Width = max(44, int(letter*float64(utf8.RuneCountInString(b.Label)))+22)
		b.X = right + b.Width/2
		right += b.Width + boxGap
		l.Boxes = append(l.Boxes, b)
	}
	boxes := map[string]Box{}
	for _, b := range l.Boxes {
		boxes[b.Name] = b
	}
	top, bottom := 0, 0
	for _, a := range d.Edges {
		if from, to := seats[a.From], seats[a.To]; from.row == to.row && to.place != from.place+1 {
			top = max(top, (1-from.row)*arch(from, to)*3/4)
			bottom = max(bottom, from.row*arch(from, to)*3/4)
		}
	}
	for i := range l.Boxes {
		l.Boxes[i].Y += margin + top + boxHeight/2
		boxes[l.Boxes[i].Name] = l.Boxes[i]
	}
	for _, a := range d.Edges {
		b, known := boxes[a.From]
		t, there := boxes[a.To]
		if !known || !there {
			continue
		}
		l.Curves = append(l.Curves, curve(a, b, t, seats[a.From], seats[a.To]))
	}
	l.Width = max(right-boxGap, margin) + margin
	l.Height = 2*margin + top + boxHeight + bottom
	if filled[1] > 0 {
		l.Height += boxHeight + rowGap
	}
	return l
}

// seat is where an entry stands; the place counts within the row.
type seat struct{ column, row, place int }

// arch is how high an edge between two entries of a row arches.
func arch(from, to seat) int {
	return archLow + int(archGrowth*math.Sqrt(math.Abs(float64(to.column-from.column))))
}

// curve is how the edge a runs from the box b to the box t.
func curve(a Arrow, b, t Box, from, to seat) Curve {
	c := Curve{Arrow: a}
	switch {
	case from.row == to.row && to.place == from.place+1:
		x, y := t.X-t.Width/2, t.Y
		c.Path = fmt.Sprintf("M%d %dH%d", b.X+b.Width/2, b.Y, x-tipLength)
		c.Tip = fmt.Sprintf("M%d %dl-%d -%dv%dz", x, y, tipLength, tipWidth, 2*tipWidth)
		c.MidX, c.MidY = (b.X+b.Width/2+x)/2, y
	case from.row == to.row:
		side := 2*from.row - 1 // over the upper row, under the lower one
		x1, x2 := b.X+b.Width/5, t.X-t.Width/5
		if to.column < from.column {
			x1, x2 = b.X-b.Width/5, t.X+t.Width/5
		}
		y := b.Y + side*boxHeight/2
		h := side * arch(from, to)
		c.Path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y, x1, y+h, x2, y+h, x2, y+side*tipLength)
		c.Tip = tip(x2, y, -side)
		c.MidX, c.MidY = (x1+x2)/2, y+h*3/4
	default:
		side := to.row - from.row // 1 downwards
		y1, y2 := b.Y+side*boxHeight/2, t.Y-side*boxHeight/2
		middle := (y1 + y2) / 2
		x1, x2 := b.X+b.Width/5, t.X-t.Width/5
		c.Path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1, middle, x2, middle, x2, y2-side*tipLength)
		c.Tip = tip(x2, y2, side)
		c.MidX, c.MidY = (x1+x2)/2, middle
	}
	return c
}

// tip is the head of an arrow that ends in x, y and comes from above if down is 1, from below if it is -1.
func tip(x, y, down int) string {
	return fmt.Sprintf("M%d %dl-%d %dh%dz", x, y, tipWidth, -down*tipLength, 2*tipWidth)
}
