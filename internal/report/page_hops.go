package report

import (
	"fmt"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// hops are the installations and hops, and what is said of those that are not shown.
func (p page) hops() g.Node {
	if len(p.Hops) == 0 {
		return nil
	}
	return section("hops",
		h.Div(h.Class("bar"), heading("hops", p.HopCount), toolbox(
			h.Button(h.Type("button"), h.Data("all", "open"), g.Text("Open all")),
			h.Button(h.Type("button"), h.Data("all", "close"), g.Text("Close all")),
		)),
		g.Map(p.Hops, hopView.details),
		g.If(p.MoreHops != 0, h.P(h.Class("muted"), g.Text("… and "+count(p.MoreHops, "hop")+" more, which only text and JSON list"))),
		g.If(len(p.LeftOut) > 0, p.leftOut()),
	)
}

// leftOut are the hops that a cut of the plan left out, the first of them if they are many.
func (p page) leftOut() g.Node {
	return folded(count(p.LeftOutCount, "hop")+" left out", h.Ul(h.Class("plain"),
		g.Map(p.LeftOut, func(hop Hop) g.Node { return h.Li(g.Text(hop.From+" → "+hop.To+" "), muted(hop.Edge)) }),
		g.If(p.LeftOutCount > len(p.LeftOut), h.Li(g.Text("…"))),
	))
}

// details is the hop: a line, and below it all that is known.
func (v hopView) details() g.Node {
	return h.Details(classes("hop", v.Verdict), h.ID(v.ID), g.If(v.Open, opened()),
		v.line(),
		g.If(len(v.Findings) > 0, h.Ul(h.Class("findings"), g.Map(v.Findings, findingView.itemOfHop))),
		g.If(len(v.Rows) > 0, v.timeline()),
		g.If(len(v.Verification) > 0, v.verification()),
		g.If(len(v.Outages) > 0, folded(count(len(v.Outages), "outage")+", with causes", plainList(v.Outages, Outage.told))),
		g.If(len(v.Faults) > 0, folded(count(len(v.Faults), "fault")+", made on purpose", plainList(v.Faults, func(f Fault) g.Node { return g.Text(f.String()) }))),
		g.If(len(v.Events) > 0, v.events()),
		g.Map(v.Logs, func(l Log) g.Node {
			return folded("Log of "+l.Source, h.Pre(h.TabIndex("0"), h.Class("log"), g.Text(l.Text)))
		}),
		g.If(len(v.Simulated) > 0, folded(count(len(v.Simulated), "image")+" simulated, not really run", plainList(v.Simulated, code))),
		g.If(len(v.NotVerified) > 0, folded(count(len(v.NotVerified), "object")+": "+unverified, plainList(v.NotVerified, code))),
		v.nothing(),
	)
}

// line is what is seen of a hop that is closed.
func (v hopView) line() g.Node {
	sign, ok := map[Result]string{Passed: "✓", Failed: "✗", Skipped: "–"}[v.Result]
	if !ok {
		sign = "•"
	}
	way := g.Group{h.Span(h.Class("n"), g.Text(v.From)), g.Text(" →")}
	if v.From == "" {
		way = g.Group{g.Text("install")}
	}
	parts := []g.Node{
		h.Span(h.Class("sign"), unread(), g.Text(sign)),
		h.Span(h.Class("way"), way, g.Text(" "), h.Span(h.Class("n"), g.Text(v.To))),
		muted(v.Edge + when(!v.Effective, ", not taken by OLM")),
		g.If(v.Of() != "", pill("", v.Of())),
	}
	for _, f := range v.Faults {
		parts = append(parts, pill("", "fault "+f.Name))
	}
	return h.Summary(spaced(append(parts, v.tail())...))
}

// tail is what the hop came to.
func (v hopView) tail() g.Node {
	parts := []g.Node{g.If(v.Result != "", pill(string(v.Result), string(v.Result)))}
	for _, c := range v.Counts {
		parts = append(parts, pill(string(c.Severity), count(c.N, c.Noun)))
	}
	return h.Span(h.Class("tail"), spaced(append(parts,
		g.If(v.Lost != 0, pill("", tellSeconds(v.Lost)+" outage")),
		g.If(len(v.Simulated) > 0, pill("", "simulated pods")),
		g.If(len(v.NotVerified) > 0, pill("", "reconciling not verified")),
		g.If(v.Seconds != 0, h.Span(h.Class("time"), g.Text(tellSeconds(v.Seconds)))),
	)...))
}

// timeline shows what happened when. Its grid has a name of its own on the page.
func (v hopView) timeline() g.Node {
	grid := fmt.Sprintf("grid-%d", v.Number)
	ticks := h.SVG(h.Width("100%"), h.Height("16"),
		g.El("pattern", h.ID(grid), g.Attr("patternUnits", "userSpaceOnUse"), h.Width(percent(v.Step)), h.Height("18"), g.El("path", g.Attr("d", "M.5 0V18"))),
		g.Map(v.Ticks, func(t tick) g.Node {
			return g.El("text", g.Attr("x", percent(t.At)), g.Attr("y", "12"), g.Text(t.Says))
		}),
	)
	return scroll("Timeline of "+v.Title(), h.Table(h.Class("timeline"),
		h.Caption(h.Class("only-read"), g.Text("What happened when, from the publishing of "+v.To)),
		h.THead(h.Tr(columnHead(unseen("What")), h.Td(unread(), ticks), columnHead(unseen("How long, or how many")))),
		h.TBody(g.Map(v.Rows, func(r row) g.Node { return r.node(grid) })),
	))
}

// node is the row on top of the grid.
func (r row) node(grid string) g.Node {
	return h.Tr(h.Class(r.Group), rowHead(g.Text(r.Name)),
		h.Td(unread(), h.SVG(h.Width("100%"), h.Height("18"),
			g.El("rect", h.Width("100%"), h.Height("18"), g.Attr("fill", "url(#"+grid+")")),
			g.Map(r.Bars, bar.node),
		)),
		h.Td(h.Class("value"), g.Text(r.Value)),
	)
}

func (b bar) node() g.Node {
	says := h.TitleEl(g.Text(b.Says))
	if b.Width == 0 {
		return g.El("circle", h.Class(b.Class), g.Attr("cx", percent(b.Left)), g.Attr("cy", "9"), g.Attr("r", "4"), says)
	}
	return g.El("rect", h.Class(b.Class), g.Attr("x", percent(b.Left)), h.Width(percent(b.Width)), g.Attr("y", "3"), h.Height("12"), g.Attr("rx", "2"), says)
}

// verification is what olmkit did besides, and how long it took.
func (v hopView) verification() g.Node {
	var parts []string
	for _, p := range v.Verification {
		parts = append(parts, p.Name+" "+tellSeconds(p.Seconds))
	}
	return h.P(h.Class("muted"), g.Text("olmkit's own share besides, "+tellSeconds(sumOf(v.Verification))+": "+strings.Join(parts, ", ")))
}

// told is the outage with its cause and the first error.
func (o Outage) told() g.Node {
	return g.Group{
		h.B(g.Text("no " + o.Operation + " through " + o.Of())), g.Text(" for " + tellSeconds(o.Seconds) + ", " + count(o.Errors, "failed attempt")),
		g.If(o.Cause != "", g.Group{h.Br(), g.Text(o.Cause)}),
		g.If(o.First != "", g.Group{h.Br(), code(o.First)}),
	}
}

// events is the table of them.
func (v hopView) events() g.Node {
	cell := func(says string) g.Node { return h.Td(g.Text(says)) }
	return folded(count(len(v.Events), "event"), scroll("Events of "+v.Title(), h.Table(h.Class("events"),
		h.THead(h.Tr(column("At"), column("Kind"), column("Name"), column("Became"), column("In its words"))),
		h.TBody(g.Map(v.Events, func(e Event) g.Node {
			return h.Tr(h.Td(h.Class("value"), g.Text(tellSeconds(e.At))), cell(e.Kind), cell(e.Name), cell(e.State), cell(e.Detail))
		})),
	)))
}

// nothing says why there is nothing to tell, if so.
func (v hopView) nothing() g.Node {
	if len(v.Findings)+len(v.Rows)+len(v.Outages)+len(v.Events)+len(v.Logs)+len(v.Simulated)+len(v.NotVerified) > 0 {
		return nil
	}
	says := "Nothing to tell."
	switch v.Result {
	case Skipped:
		says = "It was not walked."
	case "":
		says = "To be walked by ‘olmkit upgrade test’."
	}
	return h.P(h.Class("muted"), g.Text(says))
}
