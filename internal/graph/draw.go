package graph

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/safetext"
)

// Formats are the formats that Draw knows.
var Formats = []string{"text", "mermaid", "dot", "json"}

// Drawing is the graph of one channel.
type Drawing struct {
	Package string  `json:"package"`
	Channel string  `json:"channel"`
	Default bool    `json:"default"`
	Head    string  `json:"head,omitempty"`
	Problem string  `json:"problem,omitempty"` // why OLM cannot order the channel
	Entries []Entry `json:"entries"`
	Edges   []Arrow `json:"edges"`
	More    int     `json:"more,omitempty"` // edges by skipRange besides, which are too many to draw
	OLM     string  `json:"olm,omitempty"`  // OLMv1 or OLMBoth: of both, Next, Chosen, Effective and Head are OLM v0's
}

// Entry is a bundle in a channel, by rising version.
type Entry struct {
	Name       string `json:"name"`
	Version    string `json:"version,omitempty"`
	Deprecated bool   `json:"deprecated,omitempty"`
	Next       string `json:"next,omitempty"`   // where OLM takes its users
	Chosen     bool   `json:"chosen,omitempty"` // OLM chooses from it, see Order
}

// Arrow is an edge of a drawing.
type Arrow struct {
	From      string   `json:"from"`
	To        string   `json:"to"`
	Edge      Kind     `json:"edge"`
	Declared  bool     `json:"declared"`
	Effective bool     `json:"effective"`
	Next      bool     `json:"next"`
	V1        *V1Arrow `json:"v1,omitempty"` // of a drawing of both: nil if OLM v1 does not take it
}

// mostExtra is how many edges that nobody declared and OLM does not take a drawing has.
const mostExtra = 50_000

// NewDrawing returns the graph of channel c of p. Without every set it leaves out the edges that nobody declared and OLM
// does not take, which a skipRange makes in great numbers.
func NewDrawing(p *catalog.Package, c *catalog.Channel, every bool) Drawing {
	d := Drawing{Package: p.Name, Channel: c.Name, Default: c.Name == p.DefaultChannel, Entries: []Entry{}, Edges: []Arrow{}}
	g := New(p, c)
	if err := g.Err(); err != nil {
		d.Problem = err.Error()
	}
	d.Head = g.Head()
	edges := g.Main()
	if every {
		edges = g.All()
	}
	extra := 0
	for e := range edges {
		if !e.Declared && !e.Next {
			if extra++; extra > mostExtra {
				d.More++
				continue
			}
		}
		d.Edges = append(d.Edges, Arrow{From: e.From, To: e.To, Edge: e.Kind, Declared: e.Declared, Effective: e.Effective, Next: e.Next})
	}
	outdated := map[string]bool{}
	for _, d := range p.Deprecations {
		if d.Schema == catalog.SchemaBundle {
			outdated[d.Name] = true
		}
	}
	versions := map[string]*catalog.Bundle{}
	for _, e := range c.Entries {
		entry := Entry{Name: e.Name, Deprecated: outdated[e.Name], Chosen: g.byName[e.Name].place >= 0, Next: g.NextOf(e.Name)}
		if b := p.Bundle(e.Name); b != nil {
			entry.Version = b.Version.String()
			versions[e.Name] = b
		}
		d.Entries = append(d.Entries, entry)
	}
	slices.SortStableFunc(d.Entries, func(a, b Entry) int {
		x, y := versions[a.Name], versions[b.Name]
		if x == nil || y == nil {
			return strings.Compare(a.Name, b.Name)
		}
		if n := x.Version.Compare(y.Version); n != 0 {
			return n
		}
		return strings.Compare(a.Name, b.Name)
	})
	return d
}

// Draw writes drawings in one of Formats.
func Draw(w io.Writer, format string, drawings []Drawing) error {
	switch format {
	case "text":
		return drawText(w, safetext.Clean(drawings))
	case "mermaid":
		return drawMermaid(w, safetext.Clean(drawings))
	case "dot":
		return drawDot(w, safetext.Clean(drawings))
	case "json":
		return safetext.EncodeJSON(w, struct {
			APIVersion string    `json:"apiVersion"`
			Kind       string    `json:"kind"`
			Channels   []Drawing `json:"channels"`
		}{"olmkit/v1", "Graph", drawings})
	}
	return fmt.Errorf("graph format %q: there are %s", format, strings.Join(Formats, ", "))
}

// more says how many edges a drawing leaves out.
func (d *Drawing) more() string {
	return fmt.Sprintf("%d more edges by skipRange, which are too many to draw", d.More)
}

// textWidth is where lines of text are broken.
const textWidth = 80

// drawText writes a line for each entry, the newest first: where OLM takes its users, by which edge, and where else it is
// declared that they go. What the names have in common stands above them.
func drawText(w io.Writer, drawings []Drawing) error {
	var b strings.Builder
	for i, d := range drawings {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "package %s, channel %s", d.Package, d.Channel)
		if d.Default {
			b.WriteString(" (default)")
		}
		if d.More > 0 {
			fmt.Fprintf(&b, ", without %s", d.more())
		}
		prefix := commonName(d.Entries)
		if prefix != "" {
			fmt.Fprintf(&b, ": %s…", prefix)
		}
		b.WriteByte('\n')
		if d.Problem != "" {
			fmt.Fprintf(&b, "  ! %s\n", d.Problem)
		}
		labels, widest := make([]string, len(d.Entries)), 0
		from := map[string][]Arrow{}
		for _, a := range d.Edges {
			from[a.From] = append(from[a.From], a)
		}
		for j, e := range d.Entries {
			labels[j] = e.Name[len(prefix):]
			if e.Deprecated {
				labels[j] += " (deprecated)"
			}
			widest = max(widest, utf8.RuneCountInString(labels[j]))
		}
		for j := len(d.Entries) - 1; j >= 0; j-- {
			mark, words := " ", d.words(d.Entries[j], from[d.Entries[j].Name], len(prefix))
			if d.Entries[j].Name == d.Head {
				mark = "*"
			}
			if len(words) == 0 {
				fmt.Fprintf(&b, " %s %s\n", mark, labels[j])
				continue
			}
			line := fmt.Sprintf(" %s %-*s  ", mark, widest, labels[j])
			writeWrapped(&b, line, strings.Repeat(" ", widest+7), words)
			if words := d.wordsOfV1(from[d.Entries[j].Name], len(prefix)); len(words) > 0 {
				writeWrapped(&b, strings.Repeat(" ", widest+5), strings.Repeat(" ", widest+7), words)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// commonName returns what the names of several entries begin with, up to the v of their versions; "" if that differs.
func commonName(entries []Entry) string {
	prefix := ""
	for i, e := range entries {
		at := strings.Index(e.Name, ".v")
		if at < 0 || i > 0 && e.Name[:at+2] != prefix {
			return ""
		}
		prefix = e.Name[:at+2]
	}
	if len(entries) < 2 {
		return ""
	}
	return prefix
}

// words says where the users of e go, whose edges are given, in words that a line may be broken between. The first skip bytes
// of names are left out.
func (d *Drawing) words(e Entry, edges []Arrow, skip int) []string {
	var words, others []string
	for _, a := range edges {
		switch {
		case a.Next:
			words = []string{"→ " + a.To[skip:] + "  " + string(a.Edge)}
		case d.OLM == OLMBoth && !a.Effective && !a.Declared: // only OLM v1's
		case a.Effective:
			others = append(others, fmt.Sprintf("%s (%s)", a.To[skip:], a.Edge))
		default:
			others = append(others, fmt.Sprintf("%s (%s, refused by OLM)", a.To[skip:], a.Edge))
		}
	}
	if words == nil && e.Name != d.Head && d.Problem == "" {
		words = []string{"goes nowhere"}
	}
	for i := range others {
		if i < len(others)-1 {
			others[i] += ","
		}
	}
	if len(others) > 0 {
		if d.Problem != "" {
			others[0] = "declared: " + others[0]
		} else {
			if n := len(words); n > 0 {
				words[n-1] += ","
			}
			if d.OLM == OLMv1 {
				others[0] = "if pinned " + others[0]
			} else {
				others[0] = "not " + others[0]
			}
		}
	}
	return append(words, others...)
}

// writeWrapped writes words after line, and those for which it has no room on lines of their own after indent.
func writeWrapped(b *strings.Builder, line, indent string, words []string) {
	b.WriteString(line)
	width := utf8.RuneCountInString(line)
	for i, word := range words {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case width+1+n > textWidth:
			b.WriteString("\n" + indent)
			width = len(indent)
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += n
	}
	b.WriteByte('\n')
}

// mermaidEntities are for what has a meaning in the quotes, or in any line.
var mermaidEntities = strings.NewReplacer("#", "#35;", `"`, "#quot;", "%", "#37;", "<", "#lt;", ">", "#gt;", "&", "#amp;", "\n", " ", "\r", " ")

// mermaidText quotes a text.
func mermaidText(s string) string { return `"` + mermaidEntities.Replace(s) + `"` }

// drawMermaid draws taken edges with solid lines, others dotted; https://mermaid.js.org/syntax/flowchart.html.
func drawMermaid(w io.Writer, drawings []Drawing) error {
	var b strings.Builder
	b.WriteString("flowchart BT\n")
	for i, d := range drawings {
		fmt.Fprintf(&b, "  subgraph c%d[%s]\n", i, mermaidText(d.Package+" / "+d.Channel))
		id := map[string]string{}
		for j, e := range d.Entries {
			id[e.Name] = fmt.Sprintf("c%de%d", i, j)
			label := e.Name
			if e.Deprecated {
				label += " (deprecated)"
			}
			if e.Name == d.Head {
				fmt.Fprintf(&b, "    %s([%s])\n", id[e.Name], mermaidText(label))
			} else {
				fmt.Fprintf(&b, "    %s[%s]\n", id[e.Name], mermaidText(label))
			}
		}
		for _, a := range d.Edges {
			arrow := "-->"
			if !a.taken() {
				arrow = "-.->"
			}
			fmt.Fprintf(&b, "    %s %s|%s| %s\n", id[a.From], arrow, d.label(a), id[a.To])
		}
		if d.More > 0 {
			fmt.Fprintf(&b, "    %%%% without %s\n", d.more())
		}
		b.WriteString("  end\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func drawDot(w io.Writer, drawings []Drawing) error {
	var b strings.Builder
	b.WriteString("digraph upgrades {\n  rankdir=BT;\n  node [shape=box];\n")
	for i, d := range drawings {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%q;\n", i, d.Package+" / "+d.Channel)
		id := map[string]string{}
		for j, e := range d.Entries {
			id[e.Name] = fmt.Sprintf("c%de%d", i, j)
			style := ""
			if e.Name == d.Head {
				style = ", style=bold"
			}
			fmt.Fprintf(&b, "    %s [label=%q%s];\n", id[e.Name], e.Name, style)
		}
		for _, a := range d.Edges {
			style := ""
			if !a.taken() {
				style = ", style=dotted"
			}
			fmt.Fprintf(&b, "    %s -> %s [label=%q%s];\n", id[a.From], id[a.To], d.label(a), style)
		}
		if d.More > 0 {
			fmt.Fprintf(&b, "    // without %s\n", d.more())
		}
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}
