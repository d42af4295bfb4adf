package report

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/olmkit/olmkit/internal/graph"
)

// graph has each channel's drawing, and the same as a table.
func (p page) graph() g.Node {
	if !p.Graph {
		return nil
	}
	return section("graph",
		h.Div(h.Class("bar"), heading("graph", "Upgrade graph"),
			g.If(len(p.Channels) > 1, h.Label(g.Text("Channel "), h.Select(h.ID("channel"), g.Map(p.Channels, channelView.option)))),
			toolbox(
				h.Button(h.Type("button"), h.Data("zoom", "in"), h.Aria("label", "Zoom in"), g.Text("+")),
				h.Button(h.Type("button"), h.Data("zoom", "out"), h.Aria("label", "Zoom out"), g.Text("−")),
				h.Button(h.Type("button"), h.Data("zoom", "fit"), g.Text("Fit")),
			),
		),
		g.Map(p.Channels, func(c channelView) g.Node {
			return h.Div(h.Class("channel"), h.ID(c.ID),
				h.H3(spaced(g.Text(c.Package+", channel "+c.Channel), g.If(c.Default, muted("default")))),
				g.If(c.Problem != "", h.P(h.Class("problem"), h.Role("note"), g.Text("OLM upgrades nobody here: "+c.Problem))),
				c.drawing(),
				g.If(c.More != 0, h.P(h.Class("muted"), g.Text("Without "+count(c.More, "more edge")+" by skipRange: they are too many to draw."))),
				c.legend(p.Verdicts),
				c.entries(),
			)
		}),
	)
}

// option chooses the channel.
func (c channelView) option() g.Node {
	name := c.Package + " / " + c.Channel
	if c.Default {
		name += " (default)"
	}
	return h.Option(h.Value(c.ID), g.Text(name))
}

// drawing is the channel as a picture.
func (c channelView) drawing() g.Node {
	width, height := strconv.Itoa(c.Width), strconv.Itoa(c.Height)
	return h.Div(h.Class("view"), h.TabIndex("0"), h.Role("group"),
		h.Aria("label", "Graph of channel "+c.Channel+". Arrow keys move it, plus and minus zoom, 0 fits it. The table below says the same."),
		h.SVG(h.Width(width), h.Height(height), g.Attr("viewBox", "0 0 "+width+" "+height), unread(), g.Attr("focusable", "false"),
			g.El("g", h.Class("world"), g.Map(c.Edges, edgeView.arrow), g.Map(c.Nodes, nodeView.box)),
		),
	)
}

// arrow is the edge in the drawing. If there is more to tell of it, it leads there.
func (e edgeView) arrow() g.Node {
	taken, by := "refused", ""
	switch {
	case e.Next:
		taken = "next"
	case e.Effective:
		taken = "other"
	}
	if e.By != "" {
		by = "only-" + e.By
	}
	path := func(class, d string) g.Node { return g.El("path", h.Class(class), g.Attr("d", d)) }
	var drawn g.Node = g.Group{h.TitleEl(g.Text(e.Says)), path("hit", e.Path), path("line", e.Path), path("tip", e.Tip), e.mark()}
	if e.Hop != "" {
		drawn = h.A(anchor(e.Hop), h.TabIndex("-1"), drawn)
	}
	return g.El("g", classes("edge", taken, by, e.Verdict), h.Data("from", e.From), h.Data("to", e.To), drawn)
}

// mark is what became of the hop along the edge, as a sign on its middle.
func (e edgeView) mark() g.Node {
	sign, radius := "", "8"
	switch e.Verdict {
	case string(Failed):
		sign = "✗"
	case "warned":
		sign = "!"
	case string(Passed):
		sign, radius = "✓", "7"
	default:
		return nil
	}
	x, y := strconv.Itoa(e.MidX), strconv.Itoa(e.MidY)
	return g.El("g", h.Class("mark"),
		g.El("circle", g.Attr("cx", x), g.Attr("cy", y), g.Attr("r", radius)),
		g.El("text", g.Attr("x", x), g.Attr("y", y), g.Text(sign)),
	)
}

// box is the entry in the drawing, which leads to its row in the table.
func (n nodeView) box() g.Node {
	says := n.Name
	if n.Mark != "" {
		says += ": " + n.Mark
	}
	return h.A(classes("node", when(n.Head, "head"), when(n.Deprecated, "deprecated"), when(n.Nowhere, "nowhere")),
		anchor(n.ID), h.TabIndex("-1"), h.Data("name", n.Name),
		h.TitleEl(g.Text(says)),
		g.El("rect", g.Attr("x", strconv.Itoa(n.Left)), g.Attr("y", strconv.Itoa(n.Top)), h.Width(strconv.Itoa(n.Width)), h.Height(strconv.Itoa(n.Height)), g.Attr("rx", "7")),
		g.El("text", g.Attr("x", strconv.Itoa(n.X)), g.Attr("y", strconv.Itoa(n.Y)), g.Text(n.Label)),
	)
}

// legend says what lines and colours mean; those of verdicts only if there are any.
func (c channelView) legend(verdicts bool) g.Node {
	key := func(class, says string) g.Node { return h.Span(classes("k", class), g.Text(says)) }
	return h.P(h.Class("legend"), unread(),
		key("next", "OLM takes it"), key("other", "possible, not taken"), key("refused", "refused by OLM"),
		g.If(verdicts, g.Group{key("passed", "passed"), key("warned", "passed with warnings"), key("failed", "failed")}),
		g.If(c.OLM == graph.OLMBoth, g.Group{key("only-v0", "only OLM v0"), key("only-v1", "only OLM v1, or OLM v1 if pinned")}),
		key("head", "head"),
	)
}

// entries is the channel as a table. A long one is folded.
func (c channelView) entries() g.Node {
	both := c.OLM == graph.OLMBoth
	takes := "OLM takes its users to"
	if both {
		takes = "OLM v0 takes its users to"
	}
	return h.Details(h.Class("entries"), g.If(len(c.Nodes) <= 8, opened()), h.Summary(g.Text(count(len(c.Nodes), "version")+" as a table")),
		scroll("Versions of channel "+c.Channel, h.Table(
			h.THead(h.Tr(column("Version"), column(takes), column("Declared besides, and not taken"), g.If(both, column("OLM v1 takes them to")))),
			h.TBody(g.Map(c.Nodes, func(n nodeView) g.Node { return n.row(both) })),
		)),
	)
}

// row has the entry, and where it leads: if there are both versions of OLM, under OLM v1 as well.
func (n nodeView) row(both bool) g.Node {
	takes, under1 := muted("–"), muted("–")
	if n.Takes != nil {
		takes = n.Takes.to("")
	}
	others := g.Map(n.Others, func(e edgeView) g.Node { return e.to(when(!e.Effective, ", refused by OLM")) })
	if len(n.UnderV1) > 0 {
		under1 = spaced(g.Map(n.UnderV1, func(e edgeView) g.Node {
			return spaced(g.Text(e.To), muted(string(e.V1.Edge)+when(!e.V1.Next, ", if pinned")))
		})...)
	}
	return h.Tr(h.ID(n.ID),
		rowHead(spaced(g.Text(n.Name), g.If(n.Mark != "", pill("", n.Mark)))),
		h.Td(takes), h.Td(spaced(others...)), g.If(both, h.Td(under1)),
	)
}

// to says where the edge leads, of what kind it is, and what became of the hop along it.
func (e edgeView) to(besides string) g.Node {
	name := g.Text(e.To)
	if e.Hop != "" {
		name = link(e.Hop, e.To)
	}
	return spaced(name, muted(string(e.Edge)+besides), g.If(e.Verdict != "" && e.Verdict != "planned", pill(e.Verdict, e.Verdict)))
}
