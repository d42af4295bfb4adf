package report

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
)

// Walk is one of several walks of a plan, under a version of OLM, on one of Kubernetes.
type Walk struct {
	OLM        string   `json:"olm"`                  // v0 or v1; the release of OLM v0 where several are compared
	Kubernetes string   `json:"kubernetes,omitempty"` // the release, where several are compared
	Seconds    float64  `json:"seconds,omitempty"`
	Cluster    *Cluster `json:"cluster,omitempty"`
}

// Label names what tells the walk from the others it is compared with.
func (w Walk) Label() string { return label(w.OLM, w.Kubernetes) }

// label is Label of what bears the versions of its walk; "" where there is only one walk.
func label(olm, kubernetes string) string {
	var parts []string
	if olm != "" {
		parts = append(parts, "OLM "+olm)
	}
	if kubernetes != "" {
		parts = append(parts, "Kubernetes "+kubernetes)
	}
	return strings.Join(parts, ", ")
}

// Compared is one upgrade under every version of OLM that a report is about.
type Compared struct {
	Package string `json:"package"`
	Channel string `json:"channel"`
	From    string `json:"from"`
	To      string `json:"to"`
	Sides   []Side `json:"sides"` // in the order of the report's walks
}

// Side is an upgrade under one version of OLM.
type Side struct {
	OLM string `json:"olm"`

	Kubernetes string `json:"kubernetes,omitempty"`

	Takes  graph.Taken `json:"takes"`
	Edge   string      `json:"edge,omitempty"`   // of a hop that is planned
	Result Result      `json:"result,omitempty"` // of a hop that was walked; the worst, if it was several times
	// Seconds, and for how many of them which operation on objects failed, are those of the first time.
	Seconds float64  `json:"seconds,omitempty"`
	Read    float64  `json:"readOutage,omitempty"`
	Write   float64  `json:"writeOutage,omitempty"`
	Codes   []string `json:"codes,omitempty"` // of its errors and warnings
	// Rollback is what came of going back after it failed, where that was asked for.
	Rollback Result `json:"rollback,omitempty"`

	hop *Hop // the worst; nil if it is not planned
}

// Beside lays the reports of one plan in several walks side by side: under each of several versions of OLM, or on each of several
// versions of Kubernetes. It takes over the reports.
func Beside(walks []Walk, reports []*Report, drawings []graph.Drawing) *Report {
	sum := &Report{APIVersion: APIVersion, Kind: reports[0].Kind, Result: Passed, Graph: drawings, Files: reports[0].Files}
	var rests []iter.Seq[Hop]
	for i, r := range reports {
		w := walks[i]
		w.Seconds, w.Cluster = r.Seconds, r.Cluster
		sum.Walks = append(sum.Walks, w)
		sum.Seconds += r.Seconds
		if r.Result == Failed {
			sum.Result = Failed
		}
		for _, f := range r.Findings {
			f.Subject.OLM, f.Subject.Kubernetes = w.OLM, w.Kubernetes
			sum.Findings = append(sum.Findings, f)
		}
		for _, in := range r.Installations {
			in.OLM, in.Kubernetes = w.OLM, w.Kubernetes
			sum.Installations = append(sum.Installations, in)
		}
		sum.Hops = append(sum.Hops, under(w, r.Hops)...)
		sum.LeftOut = append(sum.LeftOut, under(w, r.LeftOut)...)
		sum.LeftOutCount += r.leftOut()
		sum.MoreHops += r.MoreHops
		if r.Rest != nil {
			rests = append(rests, w.rest(r.Rest))
		}
		for _, a := range r.Access {
			a.OLM, a.Kubernetes = w.OLM, w.Kubernetes
			sum.Access = append(sum.Access, a)
		}
		sum.Resolved = append(sum.Resolved, r.Resolved...)
	}
	if len(rests) > 0 {
		sum.Rest = joined(rests)
	}
	finding.Sort(sum.Findings)
	return sum
}

// rest are hops of w.
func (w Walk) rest(hops iter.Seq[Hop]) iter.Seq[Hop] {
	return func(yield func(Hop) bool) {
		for h := range hops {
			h.OLM, h.Kubernetes = w.OLM, w.Kubernetes
			if !yield(h) {
				return
			}
		}
	}
}

func under(w Walk, hops []Hop) []Hop {
	list := slices.Clone(hops)
	for i := range list {
		list[i].OLM, list[i].Kubernetes = w.OLM, w.Kubernetes
	}
	return list
}

// walkOf is the number of the walk that h is of.
func (r *Report) walkOf(h Hop) int { return slices.Index(r.versions(), label(h.OLM, h.Kubernetes)) }

func joined(all []iter.Seq[Hop]) iter.Seq[Hop] {
	return func(yield func(Hop) bool) {
		for _, seq := range all {
			for h := range seq {
				if !yield(h) {
					return
				}
			}
		}
	}
}

// grounds are the clusters that r is of, and under which version of OLM each was, "" where there was only one.
func (r *Report) grounds() []Walk {
	if r.Cluster != nil {
		return []Walk{{Cluster: r.Cluster}}
	}
	return slices.DeleteFunc(slices.Clone(r.Walks), func(w Walk) bool { return w.Cluster == nil })
}

// versions name the walks that r compares, or are "" alone.
func (r *Report) versions() []string {
	if len(r.Walks) == 0 {
		return []string{""}
	}
	var list []string
	for _, w := range r.Walks {
		list = append(list, w.Label())
	}
	return list
}

// compared lays the upgrades of r under each of its versions of OLM side by side, in the order in which they were planned;
// none if there is only one version.
func (r *Report) compared() []Compared {
	if len(r.Walks) < 2 {
		return nil
	}
	var rows []Compared
	at := map[drawnEdge]int{}
	for i := range r.Hops {
		h := &r.Hops[i]
		e := drawnEdge{h.Package, h.Channel, h.From, h.To}
		n, known := at[e]
		if !known {
			n = len(rows)
			at[e] = n
			row := Compared{Package: h.Package, Channel: h.Channel, From: h.From, To: h.To}
			for _, w := range r.Walks {
				row.Sides = append(row.Sides, Side{OLM: w.OLM, Kubernetes: w.Kubernetes, Takes: r.taken(w.OLM, e)})
			}
			rows = append(rows, row)
		}
		if s := slices.IndexFunc(rows[n].Sides, func(s Side) bool { return s.OLM == h.OLM && s.Kubernetes == h.Kubernetes }); s >= 0 {
			rows[n].Sides[s].add(h)
		}
	}
	return rows
}

// taken says when a version of OLM goes along e, by the graph.
func (r *Report) taken(olm string, e drawnEdge) graph.Taken {
	for _, d := range r.Graph {
		if d.Package != e.pkg || d.Channel != e.channel {
			continue
		}
		for _, a := range d.Edges {
			if a.From != e.from || a.To != e.to {
				continue
			}
			v0, v1 := a.Taken()
			switch {
			case olm == graph.OLMv1 && d.OLM == graph.OLMBoth:
				return v1
			case d.Problem != "": // OLM v0 upgrades nobody in the channel
				return graph.Never
			}
			return v0
		}
	}
	return graph.Never
}

// add adds one walk along the edge of s.
func (s *Side) add(h *Hop) {
	if s.hop == nil {
		s.Edge, s.Seconds = h.Edge, h.Seconds
		for _, o := range h.Outages {
			if o.Operation == "read" {
				s.Read += o.Seconds
			} else {
				s.Write += o.Seconds
			}
		}
	}
	if s.hop == nil || badness(verdictOf(*h)) > badness(verdictOf(*s.hop)) {
		s.hop, s.Result = h, h.Result
	}
	if h.Rollback != nil && s.Rollback != Failed {
		s.Rollback = h.Rollback.Result
	}
	for _, f := range finding.Open(h.All()) {
		if f.Severity.AtLeast(finding.Warning) && !slices.Contains(s.Codes, f.Code) {
			s.Codes = append(s.Codes, f.Code)
		}
	}
	slices.Sort(s.Codes)
}

// says tells s in some words.
func (s Side) says() string {
	if s.hop == nil {
		if s.Takes == graph.Never {
			return "refused"
		}
		return s.takes() + ", not planned"
	}
	if s.Result == "" {
		return s.takes()
	}
	return strings.Join(append([]string{string(s.Result)}, s.details()...), ", ")
}

// details tell of a hop that was walked all but its result.
func (s Side) details() []string {
	var parts []string
	if s.Seconds > 0 {
		parts = append(parts, fmt.Sprintf("%.1fs", s.Seconds))
	}
	if s.Takes != graph.Always {
		parts = append(parts, s.takes())
	}
	if s.Read > 0 {
		parts = append(parts, fmt.Sprintf("no read for %.1fs", s.Read))
	}
	if s.Write > 0 {
		parts = append(parts, fmt.Sprintf("no write for %.1fs", s.Write))
	}
	if s.Rollback != "" {
		parts = append(parts, "rollback "+string(s.Rollback))
	}
	return append(parts, s.Codes...)
}

// takes tells when users go there.
func (s Side) takes() string {
	switch {
	case s.Takes == graph.Always:
		return "taken"
	case s.Takes == graph.Never:
		return "refused"
	case s.OLM == graph.OLMv1:
		return "taken if pinned"
	}
	return "not taken while there is something newer"
}

// differences are the upgrades that only one version takes, or that came to another end under one, a sentence for each kind.
func differences(r *Report) []string {
	var list []string
	rows := r.compared()
	for i, w := range r.Walks {
		name := w.Label()
		only := func(is func(s Side) bool) (n int) {
			for _, row := range rows {
				others := slices.Delete(slices.Clone(row.Sides), i, i+1)
				n += one(is(row.Sides[i]) && !slices.ContainsFunc(others, is))
			}
			return n
		}
		for _, kind := range []struct {
			words string
			is    func(s Side) bool
		}{
			{"users take only under " + name, func(s Side) bool { return s.Takes == graph.Always }},
			{"refused only under " + name, func(s Side) bool { return s.Takes == graph.Never }},
			{"failed only under " + name, func(s Side) bool { return s.Result == Failed }},
			{"had an outage only under " + name, func(s Side) bool { return s.Read+s.Write > 0 }},
		} {
			if n := only(kind.is); n > 0 {
				list = append(list, fmt.Sprintf("%s %s", count(n, "upgrade"), kind.words))
			}
		}
	}
	pinned := 0
	for _, row := range rows {
		isPinned := func(s Side) bool { return s.OLM == graph.OLMv1 && s.Takes == graph.Possible }
		taken := func(s Side) bool { return s.Takes == graph.Always }
		pinned += one(slices.ContainsFunc(row.Sides, isPinned) && !slices.ContainsFunc(row.Sides, taken))
	}
	if pinned > 0 {
		list = append(list, fmt.Sprintf("%s users take only under OLM v1, by pinning the version", count(pinned, "upgrade")))
	}
	return list
}

// sideBySide prints each upgrade under every version of OLM.
func (t *text) sideBySide(r *Report) {
	rows := r.compared()
	if len(rows) == 0 {
		return
	}
	t.gap()
	t.line("%s", t.paint(bold, "side by side"))
	for _, row := range rows {
		title := Hop{From: row.From, To: row.To}.Title()
		if said := row.Sides[0].says(); !slices.ContainsFunc(row.Sides, func(s Side) bool { return s.says() != said }) {
			t.line("  %s: %s %s", title, map[bool]string{true: "both", false: "all"}[len(row.Sides) == 2], said)
			continue
		}
		t.line("  %s", title)
		for _, s := range row.Sides {
			t.paragraph("    "+label(s.OLM, s.Kubernetes)+": ", s.says())
		}
	}
	for _, d := range differences(r) {
		t.paragraph("  ", d)
	}
}

// sideBySide tabulates each upgrade under every version of OLM.
func (m *markdown) sideBySide(r *Report) {
	rows := r.compared()
	if len(rows) == 0 {
		return
	}
	head, line := "| upgrade |", "|---|"
	for _, w := range r.Walks {
		head, line = head+" "+w.Label()+" |", line+"---|"
	}
	var table []string
	for _, row := range rows {
		cells := []string{cell(Hop{From: row.From, To: row.To}.Title())}
		for _, s := range row.Sides {
			cells = append(cells, signs[s.Result]+cell(s.says()))
		}
		table = append(table, tableRow(cells...))
	}
	for _, d := range differences(r) {
		m.line("")
		m.line("%s", cell(d))
	}
	m.folded("side by side", true, head+"\n"+line, table)
}
