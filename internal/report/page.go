package report

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/olmkit/olmkit/internal/finding"
)

// document is the page as a file of its own.
func (p page) document() g.Node {
	return h.Doctype(h.HTML(h.Lang("en"),
		p.head(),
		h.Body(
			h.A(h.Class("skip"), anchor("main"), g.Text("Skip to the report")),
			p.top(),
			h.Main(h.ID("main"), h.Class("wide"),
				h.H1(g.Text(p.Title)),
				p.verdict(),
				p.first(),
				p.graph(),
				p.beside(),
				p.hops(),
				p.findings(),
				p.history(),
				p.cluster(),
			),
			h.Script(g.Raw(pageScript)),
		),
	))
}

// head has the page's style, and the policy by which only the style and the script may work, and nothing may be loaded.
func (p page) head() g.Node {
	name := p.Title
	if p.Verdict != "" {
		name += ": " + p.Verdict
	}
	return h.Head(
		h.Meta(h.Charset("utf-8")),
		h.Meta(g.Attr("http-equiv", "Content-Security-Policy"), h.Content(policy())),
		h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
		h.Meta(h.Name("referrer"), h.Content("no-referrer")),
		h.TitleEl(g.Text(name+" – olmkit")),
		h.StyleEl(g.Raw(pageStyle)),
	)
}

// top stays in sight, and leads to the parts of the page.
func (p page) top() g.Node {
	return h.Header(h.Class("top"), h.Div(h.Class("wide"),
		h.Strong(h.Class("brand"), g.Text("olmkit")),
		h.Nav(h.Aria("label", "Parts of the report"),
			g.If(p.Graph, link("graph", "Graph")),
			g.If(len(p.Compared) > 0, link("beside", "Side by side")),
			g.If(len(p.Hops) > 0, link("hops", "Hops")),
			g.If(len(p.Codes) > 0, link("findings", "Findings")),
			g.If(len(p.Clusters) > 0, link("cluster", "Cluster")),
		),
		h.Button(h.Type("button"), h.ID("theme"), hidden(), g.Text("Theme: auto")),
	))
}

// verdict says what all came to.
func (p page) verdict() g.Node {
	if p.Summary == "" {
		return nil
	}
	sign := map[Result]string{Failed: "✗", Passed: "✓"}[p.Result]
	return h.P(classes("verdict", string(p.Result)), spaced(
		h.B(spaced(g.If(sign != "", h.Span(unread(), g.Text(sign))), g.Text(p.Verdict))),
		h.Span(g.Text(p.Summary)),
	))
}

// first is the first failure, with what to do.
func (p page) first() g.Node {
	f := p.First
	if f == nil {
		return nil
	}
	return h.Div(h.Class("first"),
		h.P(spaced(h.B(g.Text("First failure")), link(f.Anchor, f.Where), g.If(f.Code != "", codeLink(f.Code)))),
		g.If(f.Message != "", h.P(h.Class("says"), g.Text(f.Message))),
		because(f.Finding),
	)
}

// beside has the upgrades under each version of OLM, or of Kubernetes, next to each other.
func (p page) beside() g.Node {
	if len(p.Compared) == 0 {
		return nil
	}
	return section("beside",
		heading("beside", "Side by side"),
		g.If(len(p.Differences) > 0, plainList(p.Differences, g.Text)),
		scroll("Upgrades under each version of OLM", h.Table(h.Class("beside"),
			h.THead(h.Tr(column("Upgrade"), g.Map(p.Versions, column))),
			h.TBody(g.Map(p.Compared, comparedView.row)),
		)),
	)
}

func (v comparedView) row() g.Node {
	return h.Tr(rowHead(g.Text(v.Title)), g.Map(v.Sides, sideView.cell))
}

func (v sideView) cell() g.Node {
	says := muted(v.Says)
	if v.Hop != nil {
		says = link(v.Hop.ID, v.Says)
	}
	return h.Td(spaced(g.If(v.Verdict != "", pill(v.Verdict, v.Verdict)), says))
}

// findings has them by their codes.
func (p page) findings() g.Node {
	if len(p.Codes) == 0 {
		return g.If(p.Summary != "", h.P(h.Class("muted"), g.Text("No findings.")))
	}
	return section("findings",
		h.Div(h.Class("bar"), heading("findings", "Findings"), toolbox(
			g.Map(p.Severities, func(s severityCount) g.Node {
				return h.Button(h.Type("button"), h.Aria("pressed", "true"), h.Data("severity", string(s.Severity)), g.Text(count(s.N, s.Noun)))
			}),
			h.Label(h.Class("search"), unseen("Search the findings"),
				h.Input(h.Type("search"), h.ID("search"), h.Placeholder("Search"), h.AutoComplete("off"))),
		)),
		h.P(h.ID("found"), h.Class("muted"), h.Role("status")),
		g.Map(p.Codes, codeView.article),
	)
}

// article has the findings of a code.
func (c codeView) article() g.Node {
	list := h.Ul(h.Class("findings"), g.Map(c.Findings, findingView.item))
	if c.Folded {
		list = folded(count(c.Count, "place"), list)
	}
	return h.Article(classes("group", string(c.Severity)), h.ID(c.Code), h.Data("severity", string(c.Severity)),
		h.H3(spaced(severityPill(c.Severity), codeLink(c.Code), g.Text(c.Title))),
		g.Iff(c.Common != nil, func() g.Node { return explained(*c.Common) }),
		list,
	)
}

// item is the finding below its code.
func (f findingView) item() g.Node {
	return f.listed(
		h.P(h.Class("what"), spaced(
			g.Iff(f.Hop != nil, func() g.Node { return h.A(h.Class("of"), anchor(f.Hop.ID), g.Text(f.Hop.Title())) }),
			f.says(),
		)),
		g.If(f.Within != "", h.P(h.Class("about"), g.Text(f.Within))),
		g.If(f.Source != "", h.Pre(h.Class("source"), h.TabIndex("0"), g.Text(f.Source))),
		g.If(f.Same != "", folded(f.Same, plainList(f.Others, other.name))),
	)
}

// itemOfHop is the finding below its hop.
func (f findingView) itemOfHop() g.Node {
	return f.listed(h.P(h.Class("what"), spaced(severityPill(f.Severity), codeLink(f.Code), f.says())))
}

// listed is an item of a list: what is said about the finding, and what follows wherever it stands.
func (f findingView) listed(about ...g.Node) g.Node {
	suppressed := ""
	var until g.Node
	if s := f.Suppressed; s != nil {
		suppressed = "suppressed"
		until = h.P(h.Class("about"), g.Text("suppressed until "+s.Until+": "+s.Reason))
	}
	return h.Li(classes("finding", string(f.Severity), suppressed), g.Group(about), until, g.If(f.Explain, explained(f.Finding)))
}

// says is where the finding stands, what it is about, and its message.
func (f findingView) says() g.Node {
	return spaced(
		g.If(f.Place != "", code(f.Place)),
		g.If(f.About != "", h.Span(h.Class("about"), g.Text(f.About))),
		h.Span(h.Class("says"), g.Text(f.Message)),
	)
}

// name is the other's, which leads to its hop.
func (o other) name() g.Node {
	if o.Hop == nil {
		return g.Text(o.Name)
	}
	return link(o.Hop.ID, o.Name)
}

// explained is why f is so, what to do, and where to read on.
func explained(f finding.Finding) g.Node {
	return g.Group{because(f), g.If(len(f.References) > 0, h.P(h.Class("see"), spaced(g.Map(f.References, reference)...)))}
}

// because is why f is so, and what to do.
func because(f finding.Finding) g.Node {
	part := func(class, title, says string) g.Node {
		return g.If(says != "", h.P(h.Class(class), spaced(h.B(g.Text(title)), h.Span(g.Text(says)))))
	}
	return g.Group{part("cause", "Why", f.Cause), part("fix", "What to do", f.Fix)}
}

// reference is a link if it leads to the web. Anything else stays text: as a link it could run a script.
func reference(to string) g.Node {
	if !strings.HasPrefix(to, "https://") && !strings.HasPrefix(to, "http://") {
		return g.Text(to)
	}
	return h.A(h.Href(to), h.Rel("noreferrer"), g.Text(to))
}

// history sums up what was found on published releases.
func (p page) history() g.Node {
	if len(p.History) == 0 {
		return nil
	}
	return section("history",
		heading("history", "Published before"),
		folded(count(p.HistoryCount, "finding")+" on published releases, which fail nothing", plainList(p.History, func(l historyLine) g.Node {
			return spaced(g.If(l.Subject.Package != "", g.Text(l.Subject.Package+":")), severityPill(l.Severity), g.Text(l.String()), muted(l.Title))
		})),
	)
}

// cluster says where the hops ran, what rights were used there, and what a pass there does not show.
func (p page) cluster() g.Node {
	if len(p.Clusters) == 0 {
		return nil
	}
	var parts g.Group
	for i, c := range p.Clusters {
		parts = append(parts,
			h.P(g.Text("A cluster of kind "), h.B(g.Text(c.Kind)), g.Text(", Kubernetes "+c.Kubernetes+", OLM "+c.OLM+".")),
			g.If(i == 0 && len(p.Access) > 0, g.Group{h.H3(g.Text("Rights that were used")), plainList(p.Access, accessView.item)}),
			g.If(len(c.Limitations) > 0, g.Group{h.H3(g.Text("Not covered by this cluster")), plainList(c.Limitations, g.Text)}),
		)
	}
	return section("cluster", heading("cluster", "Where it ran"), parts)
}

func (a accessView) item() g.Node {
	return g.Group{g.Text(a.Summary), g.If(len(a.Lists) > 0, folded("never used, denied", plainList(a.Lists, g.Text)))}
}

// section is the part of the page called id, with a title and what is beside it.
func section(id string, titled g.Node, children ...g.Node) g.Node {
	return h.Section(h.ID(id), h.Aria("labelledby", id+"-title"), titled, g.Group(children))
}

// heading is the title of the section called id.
func heading(id, title string) g.Node { return h.H2(h.ID(id+"-title"), g.Text(title)) }

// toolbox has what needs the page's script, which shows it.
func toolbox(tools ...g.Node) g.Node { return h.Span(h.Class("tools"), hidden(), g.Group(tools)) }

// folded shows only its summary until it is opened.
func folded(summary string, children ...g.Node) g.Node {
	return h.Details(h.Summary(g.Text(summary)), g.Group(children))
}

// plainList is a list without bullets.
func plainList[T any](list []T, item func(T) g.Node) g.Node {
	return h.Ul(h.Class("plain"), g.Map(list, func(t T) g.Node { return h.Li(item(t)) }))
}

// scroll lets a table that is too wide be moved, also by the keyboard.
func scroll(label string, table g.Node) g.Node {
	return h.Div(h.Class("scroll"), h.Role("region"), h.TabIndex("0"), h.Aria("label", label), table)
}

// column is the head of a table's column.
func column(title string) g.Node { return columnHead(g.Text(title)) }

func columnHead(title g.Node) g.Node { return h.Th(h.Scope("col"), title) }

// rowHead is the head of a table's row.
func rowHead(title g.Node) g.Node { return h.Th(h.Scope("row"), title) }

// anchor leads to the element of the page called id, which may be any text: browsers, and the page's script, decode it.
func anchor(id string) g.Node { return h.Href("#" + url.PathEscape(id)) }

func link(id, says string) g.Node { return h.A(anchor(id), g.Text(says)) }

// codeLink is a finding's code, which leads to what is told of it.
func codeLink(code string) g.Node { return h.A(h.Class("code"), anchor(code), g.Text(code)) }

// pill is a word in a frame, coloured as class says.
func pill(class, says string) g.Node { return h.Span(classes("pill", class), g.Text(says)) }

func severityPill(s finding.Severity) g.Node {
	if s == finding.Info {
		return pill(string(s), "note")
	}
	return pill(string(s), string(s))
}

func muted(says string) g.Node { return h.Span(h.Class("muted"), g.Text(says)) }

// unseen is only for those who have the page read to them, unread for all others.
func unseen(says string) g.Node { return h.Span(h.Class("only-read"), g.Text(says)) }

func unread() g.Node { return h.Aria("hidden", "true") }

func hidden() g.Node { return g.Attr("hidden") }

func opened() g.Node { return g.Attr("open") }

func code(says string) g.Node { return h.Code(g.Text(says)) }

// when is s, or nothing.
func when(is bool, s string) string {
	if is {
		return s
	}
	return ""
}

func percent(x float64) string { return fmt.Sprintf("%.2f%%", x) }

// classes is a class attribute of the names that are not empty.
func classes(names ...string) g.Node {
	return h.Class(strings.Join(slices.DeleteFunc(names, func(s string) bool { return s == "" }), " "))
}

// spaced puts spaces between the nodes that are there.
func spaced(nodes ...g.Node) g.Group {
	var all g.Group
	for _, n := range nodes {
		if n != nil && len(all) > 0 {
			all = append(all, g.Text(" "))
		}
		if n != nil {
			all = append(all, n)
		}
	}
	return all
}
