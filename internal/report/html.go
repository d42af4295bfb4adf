package report

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
)

// The page is one file: it loads nothing, and may load nothing (see policy).
var (
	//go:embed page/page.css
	pageStyle string
	//go:embed page/page.js
	pageScript string
)

// HTML renders r as a page of its own, for people: the graph, each hop on a timeline, the findings by code.
func HTML(w io.Writer, r *Report) error {
	out := bufio.NewWriter(w) // the page is written in small pieces
	err := newPage(shown(r)).document().Render(out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// page is what is shown.
type page struct {
	Title           string
	Result          Result
	Verdict         string
	Summary         string
	First           *failure
	Channels        []channelView
	Hops            []hopView // installations first
	HopCount        string
	LeftOut         []Hop
	LeftOutCount    int
	MoreHops        int
	Codes           []codeView
	History         []historyLine
	HistoryCount    int
	Severities      []severityCount
	Clusters        []*Cluster
	Versions        []string // of OLM, or Kubernetes, where several are compared
	Compared        []comparedView
	Differences     []string
	Access          []accessView
	Graph, Verdicts bool // whether there is a graph, and whether anything is known of its edges
}

type channelView struct {
	ID string
	graph.Drawing
	Width, Height int
	Nodes         []nodeView
	Edges         []edgeView
}

type nodeView struct {
	graph.Box
	ID            string // of its row in the table
	Left, Top     int
	Mark          string // what is to say of the entry besides its name
	Takes         *edgeView
	Others        []edgeView
	UnderV1       []edgeView // those that OLM v1 takes, of a graph of both
	Head, Nowhere bool
}

type edgeView struct {
	graph.Curve
	Verdict string // of the hop that walked it, "" if none did
	Hop     string // its anchor, or that of the finding that says the verdict
	Says    string // all of it in a sentence
	By      string // in a graph of both versions of OLM the one that alone takes it, "v0" or "v1"; else ""
}

// comparedView is an upgrade under each version of OLM.
type comparedView struct {
	Title string
	Sides []sideView
}

type sideView struct {
	Verdict, Says string
	Hop           *hopView // nil if it is not planned
}

type hopView struct {
	Hop
	Number   int
	ID       string
	Verdict  string
	Findings []findingView
	Counts   []severityCount
	Rows     []row // of the timeline
	Ticks    []tick
	Step     float64 // between ticks
	Lost     float64 // seconds of outages, the sum
	Open     bool
}

// row is a line of a timeline.
type row struct {
	Group, Name string
	Bars        []bar
	Value       string
}

// bar is a stretch of a timeline's axis in per cent of it, or a moment if its width is nothing.
type bar struct {
	Left, Width float64
	Class, Says string
}

type tick struct {
	At   float64 // per cent
	Says string
}

type findingView struct {
	finding.Finding
	Place   string   // in a file
	About   string   // what it is about, unless what it stands in tells
	Hop     *hopView // whose finding it is, if one's
	Source  string   // the line it stands in, with a caret below
	Within  string   // the field and object, where those are encoded
	Same    string   // of how many others the page says the same
	Others  []other  // those
	Explain bool     // whether its own cause and fix are shown: not where all of a code have the same
}

// other is a bundle or an upgrade of which a finding says the same.
type other struct {
	Name string
	Hop  *hopView // if it was walked
}

type codeView struct {
	Code, Title string
	Severity    finding.Severity
	Findings    []findingView    // each of those that say the same once
	Count       int              // of all
	Common      *finding.Finding // cause, fix and references that all of them share
	Folded      bool
}

type severityCount struct {
	Severity finding.Severity
	Noun     string
	N        int
}

// failure is the first thing that made the verdict.
type failure struct {
	Anchor, Where string
	finding.Finding
}

func newPage(r *Report) page {
	p := page{
		Result: r.Result, Verdict: verdict(r), LeftOut: r.LeftOut, LeftOutCount: r.leftOut(), MoreHops: r.MoreHops, Access: accessViews(r),
		Severities: countSeverities(r.All()), History: historyLines(r), HistoryCount: len(finding.Open(r.History)),
	}
	if r.Kind != KindGraph {
		p.Summary = summary(r)
	}
	p.Hops = hopViews(r)
	p.HopCount = hopCount(r)
	p.Channels = channelViews(r, p.Hops)
	p.Graph = len(p.Channels) > 0
	p.Verdicts = slices.ContainsFunc(p.Channels, func(c channelView) bool {
		return slices.ContainsFunc(c.Edges, func(e edgeView) bool { return badness(e.Verdict) > badness(string(Skipped)) })
	})
	for _, w := range r.grounds() {
		p.Clusters = append(p.Clusters, w.Cluster)
	}
	if len(r.Walks) > 0 {
		p.Versions, p.Compared, p.Differences = r.versions(), comparedViews(r, p.Hops), differences(r)
	}
	p.Codes = codeViews(r, p.Hops)
	p.First = firstOnPage(r, p.Hops)
	p.Title = title(r)
	return p
}

// policy lets the page use its own style and script, and reach nothing.
func policy() string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; style-src " + hash(pageStyle) + "; script-src " + hash(pageScript) + "; base-uri 'none'; form-action 'none'"
}

// hopCount says how many installations and hops there are.
func hopCount(r *Report) string {
	var parts []string
	if n := len(r.Installations); n > 0 {
		parts = append(parts, count(n, "installation"))
	}
	if n := len(r.Hops) + r.MoreHops; n > 0 {
		parts = append(parts, count(n, "hop"))
	}
	return strings.Join(parts, ", ")
}

// title names what was judged.
func title(r *Report) string {
	var about []string
	add := func(name string) {
		if name != "" && !slices.Contains(about, name) {
			about = append(about, name)
		}
	}
	for _, h := range r.Steps() {
		add(h.Package)
	}
	for _, d := range r.Graph {
		add(d.Package)
	}
	for _, f := range r.Findings {
		add(f.Subject.Package)
	}
	switch n := len(about); {
	case n == 0:
		return "olmkit"
	case n > 3:
		return fmt.Sprintf("%s and %d more packages", about[0], n-1)
	}
	return strings.Join(about, ", ")
}

// anchors makes identifiers that a URL's fragment can be, each once.
type anchors map[string]bool

func (a anchors) of(parts ...string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._", r) {
			return r
		}
		return '_'
	}, strings.Join(parts, "-"))
	id := clean
	for n := 2; a[id]; n++ {
		id = fmt.Sprintf("%s_%d", clean, n)
	}
	a[id] = true
	return id
}

// hopViews are the installations and hops of r.
func hopViews(r *Report) []hopView {
	used := anchors{}
	steps := r.Steps()
	views := make([]hopView, len(steps))
	failed := 0
	for i, h := range steps {
		id := []string{"hop", h.From, h.To}
		if h.From == "" {
			id = []string{"install", h.To}
		}
		for _, version := range []string{h.OLM, h.Kubernetes} {
			if version != "" {
				id = append(id, version)
			}
		}
		v := hopView{Hop: h, Number: i + 1, ID: used.of(id...), Verdict: verdictOf(h), Counts: countSeverities(h.All())}
		for _, o := range h.Outages {
			v.Lost += o.Seconds
		}
		v.Rows, v.Ticks = timeline(h)
		if len(v.Ticks) > 1 {
			v.Step = v.Ticks[1].At
		}
		if h.Result == Failed {
			failed++
			v.Open = failed <= 3
		}
		for _, f := range h.All() {
			v.Findings = append(v.Findings, findingView{Finding: f, Place: place(f), About: f.Subject.Object, Explain: true})
		}
		slices.SortStableFunc(v.Findings, func(a, b findingView) int { return rank(a.Severity) - rank(b.Severity) })
		views[i] = v
	}
	if len(views) == 1 {
		views[0].Open = true
	}
	return views
}

// verdictOf is how a hop's edge is coloured.
func verdictOf(h Hop) string {
	worst, any := finding.Worst(h.Findings)
	if h.Result == Passed && any && worst.AtLeast(finding.Warning) {
		return "warned"
	}
	return string(h.Result)
}

// badness orders verdicts: of an edge that was walked several times, under faults, the worst counts.
func badness(verdict string) int {
	return slices.Index([]string{"", string(Skipped), string(Passed), "warned", string(Failed)}, verdict)
}

func countSeverities(findings []finding.Finding) []severityCount {
	open := finding.Open(findings)
	var counts []severityCount
	for _, s := range []severityCount{{finding.Error, "error", 0}, {finding.Warning, "warning", 0}, {finding.Info, "note", 0}} {
		for _, f := range open {
			if f.Severity == s.Severity {
				s.N++
			}
		}
		if s.N > 0 {
			counts = append(counts, s)
		}
	}
	return counts
}

// timeline lays what happened in h on one axis: phases, what could not be read or written, restarts, and the rest.
func timeline(h Hop) ([]row, []tick) {
	var rows []row
	at, end := 0., h.Seconds
	for _, p := range h.Phases {
		at += p.Seconds
		end = max(end, at)
	}
	for _, o := range h.Outages {
		if !h.Start.IsZero() {
			end = max(end, o.Start.Sub(h.Start).Seconds()+o.Seconds)
		}
	}
	for _, e := range h.Events {
		end = max(end, e.At)
	}
	if end <= 0 {
		return nil, nil
	}
	stretch := func(from, length float64, class, says string) bar {
		from = max(from, 0)
		return bar{Left: 100 * from / end, Width: max(100*min(length, end-from)/end, 0.25), Class: class, Says: says}
	}
	at = 0
	for _, p := range h.Phases {
		rows = append(rows, row{"phase", p.Name, []bar{stretch(at, p.Seconds, "phase", fmt.Sprintf("%s: %s, from %s to %s", p.Name, tellSeconds(p.Seconds), tellSeconds(at), tellSeconds(at+p.Seconds)))}, tellSeconds(p.Seconds)})
		at += p.Seconds
	}
	for _, t := range totals(h.Outages) {
		out := row{"outage", "no " + t.operation + " " + t.version, nil, tellSeconds(t.seconds)}
		for _, o := range h.Outages {
			if o.Operation == t.operation && o.Of() == t.version && !h.Start.IsZero() {
				began := o.Start.Sub(h.Start).Seconds()
				out.Bars = append(out.Bars, stretch(began, o.Seconds, "outage "+o.Operation,
					fmt.Sprintf("no %s through %s from %s for %s: %s", o.Operation, o.Of(), tellSeconds(began), tellSeconds(o.Seconds), o.First)))
			}
		}
		rows = append(rows, out)
	}
	for _, f := range h.Faults {
		rows = append(rows, row{"fault", "fault " + f.Name, []bar{stretch(f.At, f.Seconds, "fault", f.String())}, f.Outcome})
	}
	return append(rows, eventRows(h.Events, end)...), ticksTo(end)
}

// eventRows are the rows of events on a timeline that ends at end, one for each kind, restarts first.
func eventRows(events []Event, end float64) []row {
	var rows []row
	var kinds []string
	byKind := map[string][]bar{}
	for _, e := range events {
		kind, class := e.Kind, "event"
		if e.State == "restarted" {
			kind, class = "restarts", "restart"
		}
		if byKind[kind] == nil {
			kinds = append(kinds, kind)
		}
		byKind[kind] = append(byKind[kind], bar{Left: 100 * e.At / end, Class: class, Says: fmt.Sprintf("%s %s", tellSeconds(e.At), e)})
	}
	slices.SortStableFunc(kinds, func(a, b string) int {
		return cmp.Or(one(b == "restarts")-one(a == "restarts"), strings.Compare(a, b))
	})
	for _, kind := range kinds {
		rows = append(rows, row{"event", kind, byKind[kind], fmt.Sprint(len(byKind[kind]))})
	}
	return rows
}

// ticksTo are the ticks of a timeline that ends at end.
func ticksTo(end float64) []tick {
	var ticks []tick
	step := tickStep(end)
	for t := 0.; t <= end; t += step {
		ticks = append(ticks, tick{100 * t / end, fmt.Sprintf("%gs", math.Round(t*10)/10)})
	}
	return ticks
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// tickStep is a round number of seconds by which an axis of so many gets about eight marks.
func tickStep(end float64) float64 {
	for _, step := range []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300} {
		if end/step <= 9 {
			return step
		}
	}
	return math.Ceil(end / 8)
}

// String tells the event in a line.
func (e Event) String() string {
	return strings.Join(slices.DeleteFunc([]string{e.Kind, e.Name, e.State, e.Detail}, func(s string) bool { return s == "" }), " ")
}

func tellSeconds(s float64) string {
	if s >= 100 {
		return fmt.Sprintf("%d min %02d s", int(s)/60, int(s)%60)
	}
	return fmt.Sprintf("%.1f s", s)
}

// drawings are the graphs of r; where it brings none, what its hops tell of one.
func drawings(r *Report) []graph.Drawing {
	if len(r.Graph) > 0 || len(r.Hops)+len(r.LeftOut) == 0 {
		return r.Graph
	}
	var list []graph.Drawing
	for _, h := range slices.Concat(r.Hops, r.LeftOut) {
		i := slices.IndexFunc(list, func(d graph.Drawing) bool { return d.Package == h.Package && d.Channel == h.Channel })
		if i < 0 {
			i = len(list)
			list = append(list, graph.Drawing{Package: h.Package, Channel: h.Channel})
		}
		d := &list[i]
		for _, name := range []string{h.From, h.To} {
			if !slices.ContainsFunc(d.Entries, func(e graph.Entry) bool { return e.Name == name }) {
				d.Entries = append(d.Entries, graph.Entry{Name: name})
			}
		}
	}
	return list
}

// drawnEdge is an edge of a channel.
type drawnEdge struct{ pkg, channel, from, to string }

func channelViews(r *Report, hops []hopView) []channelView {
	walked := map[drawnEdge]*hopView{}
	for i := range hops {
		h := &hops[i]
		e := drawnEdge{h.Package, h.Channel, h.From, h.To} // of an installation one that the graph has not
		if known := walked[e]; known == nil || badness(h.Verdict) > badness(known.Verdict) {
			walked[e] = h
		}
	}
	used := anchors{}
	var views []channelView
	for _, d := range drawings(r) {
		d.Edges = withHops(r, d)
		l := d.Lay()
		v := channelView{ID: used.of("graph", d.Package, d.Channel), Drawing: d, Width: l.Width, Height: l.Height}
		for _, c := range l.Curves {
			v.Edges = append(v.Edges, edgeViewOf(r, d, c, walked))
		}
		// What is walked, and what OLM takes, is drawn over the rest.
		slices.SortStableFunc(v.Edges, func(a, b edgeView) int { return weight(a) - weight(b) })
		for _, b := range l.Boxes {
			n := nodeViewOf(d, b, v.Edges)
			n.ID = used.of("entry", d.Package, d.Channel, b.Name)
			v.Nodes = append(v.Nodes, n)
		}
		views = append(views, v)
	}
	return views
}

// withHops returns d's edges, and the hops of r that are none of them.
func withHops(r *Report, d graph.Drawing) []graph.Arrow {
	drawn := map[drawnEdge]bool{}
	for _, a := range d.Edges {
		drawn[drawnEdge{d.Package, d.Channel, a.From, a.To}] = true
	}
	edges := slices.Clone(d.Edges)
	for _, h := range slices.Concat(r.Hops, r.LeftOut) {
		e := drawnEdge{h.Package, h.Channel, h.From, h.To}
		if e.pkg == d.Package && e.channel == d.Channel && !drawn[e] {
			drawn[e] = true
			edges = append(edges, graph.Arrow{From: h.From, To: h.To, Edge: graph.Kind(h.Edge), Declared: h.Edge != string(graph.SkipRange), Effective: h.Effective, Next: len(r.Graph) == 0 && h.Effective})
		}
	}
	return edges
}

// edgeViewOf is the curve c of d, with what became of the hop along it, or what was found of it.
func edgeViewOf(r *Report, d graph.Drawing, c graph.Curve, walked map[drawnEdge]*hopView) edgeView {
	e := edgeView{Curve: c, Says: says(d, c.Arrow), By: takenBy(d, c.Arrow)}
	if h := walked[drawnEdge{d.Package, d.Channel, c.From, c.To}]; h != nil {
		e.Verdict, e.Hop = cmp.Or(h.Verdict, "planned"), h.ID
		if h.Result != "" {
			e.Says += ": " + string(h.Result)
		}
	} else if f, ok := worstOf(r.Findings, d, c.Arrow); ok {
		e.Verdict, e.Hop = map[finding.Severity]string{finding.Error: "failed", finding.Warning: "warned"}[f.Severity], f.Code
		e.Says += ": " + f.Code
	}
	return e
}

// takenBy names the version of OLM that alone takes a in a drawing of both, at least if the version is pinned.
func takenBy(d graph.Drawing, a graph.Arrow) string {
	v0, v1 := a.Taken()
	switch {
	case d.OLM != graph.OLMBoth || (v0 == graph.Always) == (v1 != graph.Never):
		return ""
	case v0 == graph.Always:
		return "v0"
	}
	return graph.OLMv1
}

// comparedViews are the upgrades of r under each version of OLM.
func comparedViews(r *Report, hops []hopView) []comparedView {
	byStep := map[drawnEdge]map[string]*hopView{}
	for i := range hops {
		h := &hops[i]
		e := drawnEdge{h.Package, h.Channel, h.From, h.To}
		if byStep[e] == nil {
			byStep[e] = map[string]*hopView{}
		}
		on := label(h.OLM, h.Kubernetes)
		if known := byStep[e][on]; known == nil || badness(h.Verdict) > badness(known.Verdict) {
			byStep[e][on] = h
		}
	}
	var views []comparedView
	for _, row := range r.compared() {
		v := comparedView{Title: Hop{From: row.From, To: row.To}.Title()}
		for _, s := range row.Sides {
			side := sideView{Says: s.says(), Hop: byStep[drawnEdge{row.Package, row.Channel, row.From, row.To}][label(s.OLM, s.Kubernetes)]}
			if side.Hop != nil && side.Hop.Result != "" {
				side.Verdict, side.Says = side.Hop.Verdict, cmp.Or(strings.Join(s.details(), ", "), "details")
			}
			v.Sides = append(v.Sides, side)
		}
		views = append(views, v)
	}
	return views
}

// nodeViewOf is the box b of d, with its edges among all of them.
func nodeViewOf(d graph.Drawing, b graph.Box, edges []edgeView) nodeView {
	n := nodeView{
		Box: b, Left: b.X - b.Width/2, Top: b.Y - b.Height/2,
		Head: b.Name == d.Head, Nowhere: d.Head != "" && b.Name != d.Head && b.Next == "",
	}
	for i, e := range edges {
		if e.From == b.Name && e.V1 != nil {
			n.UnderV1 = append(n.UnderV1, e)
		}
		switch {
		case e.From != b.Name, d.OLM == graph.OLMBoth && !e.Effective && !e.Declared:
		case e.Next:
			n.Takes = &edges[i]
		default:
			n.Others = append(n.Others, e)
		}
	}
	var marks []string
	for _, m := range []struct {
		is   bool
		says string
	}{{n.Head, "head"}, {n.Deprecated, "deprecated"}, {n.Nowhere, "goes nowhere"}, {d.Head != "" && !n.Chosen, "passed over"}} {
		if m.is {
			marks = append(marks, m.says)
		}
	}
	n.Mark = strings.Join(marks, ", ")
	return n
}

// worstOf is the worst finding about an edge that nothing walked, notes apart.
func worstOf(findings []finding.Finding, d graph.Drawing, a graph.Arrow) (worst finding.Finding, ok bool) {
	for _, f := range findings {
		s := f.Subject
		about := s.Package == d.Package && (s.Channel == "" || s.Channel == d.Channel) && s.From == a.From && s.To == a.To
		if about && f.Suppressed == nil && f.Severity.AtLeast(finding.Warning) && (!ok || rank(f.Severity) < rank(worst.Severity)) {
			worst, ok = f, true
		}
	}
	return worst, ok
}

func weight(e edgeView) int {
	return one(e.Next || e.V1 != nil && e.V1.Next) + 2*one(e.Verdict != "") + 4*one(e.Verdict == string(Failed))
}

// says tells an edge of d in a sentence.
func says(d graph.Drawing, a graph.Arrow) string {
	s := fmt.Sprintf("%s → %s, %s", a.From, a.To, a.Edge)
	if d.OLM == graph.OLMBoth {
		v0, v1 := a.Taken()
		return s + "; OLM v0: " + Side{OLM: "v0", Takes: v0}.takes() + "; OLM v1: " + Side{OLM: graph.OLMv1, Takes: v1}.takes()
	}
	switch {
	case a.Next:
		return s + ", taken by OLM"
	case a.Effective && d.OLM == graph.OLMv1:
		return s + ", taken by OLM v1 if its version is pinned"
	case a.Effective:
		return s + ", not taken while there is something newer"
	}
	return s + ", refused by OLM"
}

// manyInstances is from how many findings on those of a code that are only notes are folded away.
const manyInstances = 5

func codeViews(r *Report, hops []hopView) []codeView {
	var all []findingView
	for _, f := range r.Findings {
		all = append(all, findingView{Finding: f, Place: placeOnPage(f), About: about(f.Subject), Source: sourceOf(r, f), Within: within(f)})
	}
	for i := range hops {
		for _, f := range hops[i].Findings {
			f.Hop = &hops[i]
			all = append(all, f)
		}
	}
	var codes []codeView
	for _, same := range equal(all, func(f findingView) finding.Finding { return f.ofHop() }) {
		f := merged(same)
		i := slices.IndexFunc(codes, func(c codeView) bool { return c.Code == f.Code })
		if i < 0 {
			i = len(codes)
			codes = append(codes, codeView{Code: f.Code, Title: r.Titles[f.Code], Severity: f.Severity})
		}
		c := &codes[i]
		if rank(f.Severity) < rank(c.Severity) {
			c.Severity = f.Severity
		}
		c.Findings = append(c.Findings, f)
		c.Count += len(same)
	}
	slices.SortStableFunc(codes, func(a, b codeView) int {
		return cmp.Or(rank(a.Severity)-rank(b.Severity), strings.Compare(a.Code, b.Code))
	})
	for i := range codes {
		c := &codes[i]
		c.Folded = c.Severity == finding.Info && len(c.Findings) >= manyInstances
		f := c.Findings[0].Finding
		if !slices.ContainsFunc(c.Findings, func(o findingView) bool {
			return o.Cause != f.Cause || o.Fix != f.Fix || !slices.Equal(o.References, f.References)
		}) {
			c.Common = &f
		}
		for j := range c.Findings {
			c.Findings[j].Explain = c.Common == nil
		}
	}
	return codes
}

// ofHop is the finding as one of the report: that of a hop is about the hop.
func (f findingView) ofHop() finding.Finding {
	if f.Hop != nil && f.Subject.Package == "" {
		f.Subject = f.Hop.subject(f.Subject.Object)
	}
	return f.Finding
}

// merged is the first of findings that say the same, with the others' names.
func merged(same []findingView) findingView {
	first := same[0]
	g := make(group, len(same))
	hops := map[string]*hopView{}
	for i, f := range same {
		g[i] = f.ofHop()
		hops[g[i].Subject.From+" → "+g[i].Subject.To] = f.Hop
	}
	said, names := g.others()
	first.Same = said
	for _, name := range names {
		first.Others = append(first.Others, other{name, hops[name]})
	}
	return first
}

// placeOnPage is place, without the path of an encoded object, which is told besides.
func placeOnPage(f finding.Finding) string {
	if within(f) != "" {
		return f.Location.String()
	}
	return place(f)
}

// place is where in a file a finding stands, "" if it stands in none.
func place(f finding.Finding) string {
	if f.Location == nil {
		return ""
	}
	return strings.TrimSpace(f.Location.String() + " " + f.Location.Path)
}

// about says what a finding is about, by the package's name if nothing in it is meant.
func about(s finding.Subject) string { return cmp.Or(subject(s), s.Package) }

// sourceColumns is how much of a source line a page shows.
const sourceColumns = 140

// sourceOf is the line that f is about, with a caret below the field.
func sourceOf(r *Report, f finding.Finding) string {
	if f.Location != nil && f.Location.Excerpt != "" {
		return f.Location.Excerpt
	}
	if r.Source == nil || f.Location == nil || f.Location.Line == 0 || f.Location.Path != "" {
		return ""
	}
	line, ok := r.Source(f.Location.File, f.Location.Line)
	if !ok || strings.TrimSpace(line) == "" {
		return ""
	}
	shown, caret := excerpt(line, f.Location.Column, sourceColumns)
	if caret == "" {
		return shown
	}
	return shown + "\n" + caret
}

// firstOnPage is the first failure with the part of the page that tells of it.
func firstOnPage(r *Report, hops []hopView) *failure {
	f, ok := firstFailure(r)
	if !ok {
		return nil
	}
	if i := firstFailed(r.Steps()); i >= 0 {
		return &failure{Anchor: hops[i].ID, Where: hops[i].Title(), Finding: f}
	}
	return &failure{Anchor: f.Code, Where: cmp.Or(about(f.Subject), place(f)), Finding: f}
}
