package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/safetext"
)

// Sequences of a terminal.
const (
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	blue   = "\x1b[34m"
	reset  = "\x1b[0m"
)

// text prints lines and remembers the first error.
type text struct {
	out    io.Writer
	colour bool
	source func(file string, line int) (string, bool) // nil when no source is shown
	lines  int                                        // so many are printed
	err    error
}

func (t *text) paint(sequence, s string) string {
	if !t.colour || s == "" {
		return s
	}
	return sequence + s + reset
}

func (t *text) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.out, format+"\n", args...)
		t.lines++
	}
}

// gap sets off what follows by an empty line from what was printed.
func (t *text) gap() {
	if t.lines > 0 {
		t.line("")
	}
}

// Text renders r for people: installations and hops with their phases and outages, then findings, the worst first, and the
// verdict. A validation has the verdict first, and again at the end if that is far.
func Text(w io.Writer, r *Report, colour bool) error {
	r = shown(r)
	buffer := bufio.NewWriter(w)
	t := &text{out: buffer, colour: colour, source: r.Source}
	if r.Kind == KindValidate {
		t.result(r)
	}
	steps := r.Steps()
	if len(r.Walks) > 0 { // what was installed under each version belongs to the hops under it
		slices.SortStableFunc(steps, func(a, b Hop) int { return r.walkOf(a) - r.walkOf(b) })
	}
	for i, h := range steps {
		if i == 0 || h.place() != steps[i-1].place() {
			t.line("%s", t.paint(bold, h.place()))
		}
		t.hop(h, r.Verbose)
	}
	t.rest(r)
	if len(r.LeftOut) > 0 {
		t.line("%s", t.paint(bold, fmt.Sprintf("left out: %s", count(r.leftOut(), "hop"))))
		for _, h := range r.LeftOut {
			t.line("  - %s → %s (%s)%s", h.From, h.To, h.Edge, of(h.OLM, h.Kubernetes))
		}
		if n := r.leftOut() - len(r.LeftOut); n > 0 {
			t.line("  … and %d more", n)
		}
	}
	t.resolved(r)
	t.sideBySide(r)
	t.findings(r)
	t.access(r)
	for _, w := range r.grounds() {
		t.line("")
		t.line("ran on a cluster of kind %s, Kubernetes %s, OLM %s", w.Cluster.Kind, w.Cluster.Kubernetes, w.Cluster.OLM)
		for i, s := range w.Cluster.Limitations {
			if i == 0 {
				t.line("not covered by this cluster:")
			}
			t.line("  - %s", s)
		}
	}
	t.end(r)
	if t.err == nil {
		t.err = buffer.Flush()
	}
	return t.err
}

// rest prints the hops of a plan that are too many to hold.
func (t *text) rest(r *Report) {
	if r.Rest == nil {
		return
	}
	r.MoreHops = 0 // there may be more than were counted
	for h := range r.Rest {
		if t.err != nil {
			return
		}
		h.From, h.To, h.FromChannel = safetext.Line(h.From), safetext.Line(h.To), safetext.Line(h.FromChannel)
		t.hop(h, false)
		r.MoreHops++
	}
}

// resolved prints what OLM's resolver takes.
func (t *text) resolved(r *Report) {
	if len(r.Resolved) > 0 {
		t.line("%s", t.paint(bold, "OLM's resolver, with dependencies and constraints"))
	}
	for _, s := range r.Resolved {
		mark := t.paint(green, "✓")
		if s.Differs {
			mark = t.paint(red, "✗")
		}
		line := cmp.Or(s.From, "new Subscription") + " → " + cmp.Or(s.To, "nothing")
		if s.Differs {
			line += ", and by the channel's edges " + cmp.Or(s.Planned, "nothing")
		}
		t.line("  %s %s", mark, line)
		for _, c := range s.Along {
			t.line("      with it: %s", Hop{From: c.From, To: c.To}.Title())
		}
		if s.Missing != "" {
			t.paragraph("      ", "without the dependencies of "+s.From+", which OLM would not install today: "+s.Missing)
		}
	}
}

// place says which package, channel and, where several are compared, versions h is of.
func (h Hop) place() string {
	channel := "channel " + h.Channel
	if h.Channel == "" { // of a ClusterExtension that names none
		channel = "all channels"
	}
	return fmt.Sprintf("package %s, %s%s", h.Package, channel, of(h.OLM, h.Kubernetes))
}

// Of names the walk that h is of, "" where only one is told of.
func (h Hop) Of() string { return label(h.OLM, h.Kubernetes) }

// of names the walk that something is of, after what else is said of it; "" where only one is told of.
func of(olm, kubernetes string) string { return after(label(olm, kubernetes)) }

func after(label string) string {
	if label == "" {
		return ""
	}
	return ", " + label
}

// planned says, of a hop that is only planned, that OLM takes another one, "" otherwise.
func (h Hop) planned() string {
	if h.Result != "" || !h.PassedOver {
		return ""
	}
	return ", passed over while there is something newer"
}

func (t *text) hop(h Hop, verbose bool) {
	mark, tail := "•", ""
	switch h.Result {
	case Passed:
		mark, tail = t.paint(green, "✓"), " passed"
	case Failed:
		mark, tail = t.paint(red, "✗"), " failed"
	case Skipped:
		mark, tail = t.paint(dim, "-"), " skipped"
	}
	if h.Seconds > 0 {
		tail += fmt.Sprintf(" (%.1fs)", h.Seconds)
	}
	kind := h.Edge
	if !h.Effective {
		kind += ", not taken by OLM"
	}
	kind += h.planned()
	if h.FromChannel != "" {
		kind += ", from channel " + h.FromChannel
	}
	if kind != "" {
		kind = "  " + t.paint(dim, kind)
	}
	t.line("  %s %s%s%s", mark, h.Title(), kind, tail)
	if len(h.Phases) > 0 {
		t.paragraph("      phases: ", listPhases(h.Phases))
	}
	if len(h.Verification) > 0 {
		t.paragraph(fmt.Sprintf("      olmkit's own share, %.1fs: ", sumOf(h.Verification)), listPhases(h.Verification))
	}
	for _, o := range totals(h.Outages) {
		gaps := ""
		if o.gaps > 1 {
			gaps = fmt.Sprintf(", %d times, for up to %.1fs", o.gaps, o.longest)
		}
		t.line("      %s", t.paint(yellow, fmt.Sprintf("outage: no %s through %s for %.1fs%s (%s)", o.operation, o.version, o.seconds, gaps, count(o.errors, "failed attempt"))))
	}
	for _, f := range h.Faults {
		t.line("      %s", f)
	}
	if len(h.Simulated) > 0 {
		t.paragraph("      ", "simulated, not really run: "+strings.Join(h.Simulated, ", "))
	}
	if len(h.NotVerified) > 0 {
		t.paragraph("      ", unverified+": "+strings.Join(h.NotVerified, ", "))
	}
	if b := h.Rollback; b != nil {
		t.line("      rollback to %s: %s (%.1fs)", b.To, b.Result, b.Seconds)
	}
	for _, f := range h.All() {
		if f.Suppressed != nil && !verbose {
			continue
		}
		f.Subject = finding.Subject{Object: f.Subject.Object} // the rest stands in the hop's line
		t.statement(f, "      ")
		t.explanation(f, "      ")
	}
	t.logs(h.Logs, verbose)
}

// listPhases says how long each of phases took.
func listPhases(phases []Phase) string {
	said := make([]string, len(phases))
	for i, p := range phases {
		said[i] = fmt.Sprintf("%s %.1fs", p.Name, p.Seconds)
	}
	return strings.Join(said, ", ")
}

// sumOf is how many seconds phases took in all.
func sumOf(phases []Phase) (seconds float64) {
	for _, p := range phases {
		seconds += p.Seconds
	}
	return seconds
}

// total sums up the outages of one operation on one version.
type total struct {
	operation, version string
	seconds, longest   float64
	gaps, errors       int
}

// totals sums outages up, in the order of versions and operations.
func totals(outages []Outage) []total {
	var sums []total
	for _, o := range outages {
		i := slices.IndexFunc(sums, func(s total) bool { return s.operation == o.Operation && s.version == o.Of() })
		if i < 0 {
			i = len(sums)
			sums = append(sums, total{operation: o.Operation, version: o.Of()})
		}
		sums[i].seconds += o.Seconds
		sums[i].longest = max(sums[i].longest, o.Seconds)
		sums[i].gaps++
		sums[i].errors += o.Errors
	}
	slices.SortFunc(sums, func(a, b total) int {
		return cmp.Or(strings.Compare(a.operation, b.operation), strings.Compare(a.version, b.version))
	})
	return sums
}

// rank puts the worst severity first.
func rank(s finding.Severity) int {
	return slices.Index([]finding.Severity{finding.Error, finding.Warning, finding.Info}, s)
}

func sameCode(a, b finding.Finding) bool {
	return a.Subject.Package == b.Subject.Package && a.Code == b.Code && a.Severity == b.Severity
}

// alike reports whether two findings are explained by the same words, so that these need be printed once only.
func alike(a, b finding.Finding) bool {
	return a.Subject.Package == b.Subject.Package && a.Code == b.Code && a.Cause == b.Cause && a.Fix == b.Fix && slices.Equal(a.References, b.References)
}

// statement prints what is wrong and where.
func (t *text) statement(f finding.Finding, indent string) {
	severity := string(f.Severity)
	switch {
	case f.Suppressed != nil:
		severity = t.paint(dim, "suppressed")
	case f.Severity == finding.Error:
		severity = t.paint(red+bold, severity)
	case f.Severity == finding.Warning:
		severity = t.paint(yellow+bold, severity)
	default:
		severity = t.paint(blue, severity)
	}
	head := indent + severity + " " + t.paint(dim, f.Code)
	if f.Location != nil && f.Location.File != "" {
		head += " " + t.paint(bold, f.Location.String())
	}
	if s := subject(f.Subject); s != "" {
		head += " " + t.paint(dim, "("+s+")")
	}
	t.line("%s", head)
	t.paragraph(indent+"  ", f.Message)
	t.snippet(f, indent+"  ")
	if f.Suppressed != nil {
		t.paragraph(indent+"  ", fmt.Sprintf("suppressed until %s: %s", f.Suppressed.Until, f.Suppressed.Reason))
	}
}

// explanation prints why it is so and what to do.
func (t *text) explanation(f finding.Finding, indent string) {
	if f.Cause != "" {
		t.paragraph(indent+"  cause: ", f.Cause)
	}
	if f.Fix != "" {
		t.paragraph(indent+"  fix:   ", f.Fix)
	}
	for _, reference := range f.References {
		t.line("%s  see:   %s", indent, reference)
	}
}

// width is where paragraphs are broken; longer words stand on lines of their own.
const width = 120

// leastWidth is what stays of a line behind an indentation without measure.
const leastWidth = 20

// paragraph prints s behind indent, in lines of at most width; further lines are indented as far.
func (t *text) paragraph(indent, s string) {
	for _, l := range strings.Split(strings.TrimRight(s, "\n"), "\n") {
		for _, part := range wrap(l, max(width-len(indent), leastWidth)) {
			t.line("%s%s", indent, part)
			indent = strings.Repeat(" ", len(indent))
		}
	}
}

// wrap breaks a line at its spaces, and keeps the spaces that it begins with.
func wrap(s string, limit int) []string {
	var lines []string
	for len(s) > limit {
		start := len(s) - len(strings.TrimLeft(s, " "))
		cut := strings.LastIndexByte(s[:limit+1], ' ')
		if cut <= start {
			if cut = strings.IndexByte(s[start:], ' ') + start; cut < start {
				break
			}
		}
		lines = append(lines, s[:cut])
		s = s[cut+1:]
	}
	return append(lines, s)
}

// subject says what a finding is about, without the package, under whose heading it stands.
func subject(s finding.Subject) string {
	var parts []string
	if on := label(s.OLM, s.Kubernetes); on != "" {
		parts = append(parts, on)
	}
	if s.Channel != "" {
		parts = append(parts, "channel "+s.Channel)
	}
	switch {
	case s.From != "" && s.To != "":
		parts = append(parts, s.From+" → "+s.To)
	case s.From+s.To != "":
		parts = append(parts, s.From+s.To)
	}
	if s.Object != "" {
		parts = append(parts, s.Object)
	}
	return strings.Join(parts, ", ")
}

// summary says in a line how many hops and findings there are, and how long it took.
func summary(r *Report) string {
	var parts []string
	if len(r.Walks) > 0 {
		parts = append(parts, strings.Join(r.versions(), " and "))
	}
	if nothingRan(r) {
		parts = append(parts, nothingBecause(r))
	}
	steps := r.Steps()
	for _, part := range []struct {
		steps []Hop
		more  int
		noun  string
	}{{steps[:len(r.Installations)], 0, "installation"}, {steps[len(r.Installations):], r.MoreHops, "hop"}} {
		if len(part.steps) > 0 {
			parts = append(parts, count(len(part.steps)+part.more, part.noun)+exceptions(part.steps))
		}
	}
	severities := map[finding.Severity]int{}
	all := r.All()
	for _, f := range finding.Open(all) {
		severities[f.Severity]++
	}
	suppressed := len(all) - len(finding.Open(all))
	for _, s := range []finding.Severity{finding.Error, finding.Warning, finding.Info} {
		if n := severities[s]; n > 0 {
			word := string(s)
			if s == finding.Info {
				word = "note"
			}
			parts = append(parts, count(n, word))
		}
	}
	history := len(finding.Open(r.History))
	if len(severities)+suppressed+history == 0 {
		parts = append(parts, "no findings")
	}
	if suppressed > 0 {
		parts = append(parts, fmt.Sprintf("%d suppressed", suppressed))
	}
	if history > 0 {
		parts = append(parts, fmt.Sprintf("%d published before", history))
	}
	if r.Seconds > 0 {
		parts = append(parts, fmt.Sprintf("%.1fs", r.Seconds))
	}
	return strings.Join(parts, ", ")
}

// exceptions says of how many steps there is more to say than that they passed, in brackets, or "".
func exceptions(steps []Hop) string {
	failed, skipped, simulated := 0, 0, 0
	for _, h := range steps {
		failed += one(h.Result == Failed)
		skipped += one(h.Result == Skipped)
		simulated += one(len(h.Simulated) > 0)
	}
	var some []string
	for _, s := range []struct {
		n    int
		what string
	}{{failed, "failed"}, {skipped, "skipped"}, {simulated, "with simulated pods"}} {
		if s.n > 0 {
			some = append(some, fmt.Sprintf("%d %s", s.n, s.what))
		}
	}
	if len(some) == 0 {
		return ""
	}
	return " (" + strings.Join(some, ", ") + ")"
}

// result prints the verdict with the numbers that it is of.
func (t *text) result(r *Report) {
	result, colour := verdict(r), green
	switch {
	case r.Result == Failed:
		colour = red
	case result != string(Passed):
		colour = yellow
	}
	t.line("%s: %s", t.paint(colour+bold, result), summary(r))
}

// screen is how many lines one sees at once.
const screen = 40

// end prints the verdict and the first failure, unless both are in sight, and where the page is.
func (t *text) end(r *Report) {
	if r.Kind != KindValidate || t.lines > screen {
		if len(r.Installations)+len(r.Hops)+len(r.Findings)+len(r.History) > 0 || len(r.grounds()) > 0 {
			t.gap()
		}
		t.result(r)
		if f, ok := firstFailure(r); ok {
			t.first(f)
		}
	}
	if r.Page != "" {
		t.line("all of it with graph and timelines: %s", r.Page)
	}
}

// count is n with the noun, in the plural where it belongs.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// firstFailed returns the position of the first step that failed, of one that says why where there is one; or -1.
func firstFailed(steps []Hop) int {
	says := func(h Hop) bool { return h.Result == Failed && len(finding.Open(h.Findings)) > 0 }
	if i := slices.IndexFunc(steps, says); i >= 0 {
		return i
	}
	return slices.IndexFunc(steps, func(h Hop) bool { return h.Result == Failed })
}

// firstFailure is what made the verdict: of the first step that failed the worst finding, or else the worst of all.
func firstFailure(r *Report) (f finding.Finding, ok bool) {
	if r.Result != Failed {
		return f, false
	}
	open := finding.Open(r.All())
	steps := r.Steps()
	if i := firstFailed(steps); i >= 0 {
		f.Subject = steps[i].subject("")
		ok = true
		open = finding.Open(steps[i].Findings)
	}
	if len(open) == 0 {
		return f, ok
	}
	where := f.Subject
	f = slices.MinFunc(open, func(a, b finding.Finding) int { return rank(a.Severity) - rank(b.Severity) })
	if ok {
		where.Object = f.Subject.Object
		f.Subject = where
	}
	return f, true
}

// How many lines the last words on the first failure take at most, so that they fit a screen whatever was said before.
const (
	messageLines = 5
	causeLines   = 9
	fixLines     = 3
)

// first tells of the first failure as much as fits a screen.
func (t *text) first(f finding.Finding) {
	head := "first failure:"
	if f.Location != nil && f.Location.File != "" {
		head += " " + f.Location.String()
	}
	if s := about(f.Subject); s != "" {
		head += " " + s
	}
	t.line("%s", t.paint(bold, head))
	if f.Code == "" {
		return
	}
	t.atMost(messageLines, "  "+f.Code+" ", f.Message)
	t.atMost(causeLines, "  cause: ", f.Cause)
	t.atMost(fixLines, "  fix:   ", f.Fix)
	t.line("  %s", t.paint(dim, "more: olmkit explain "+f.Code))
}

// atMost prints s as paragraph does, in at most n lines.
func (t *text) atMost(n int, indent, s string) {
	if strings.TrimSpace(s) == "" {
		return
	}
	var lines []string
	for _, l := range strings.Split(strings.TrimRight(s, "\n"), "\n") {
		lines = append(lines, wrap(l, width-len(indent))...)
	}
	if len(lines) > n {
		lines = append(lines[:n-1:n-1], "…")
	}
	for _, l := range lines {
		t.line("%s%s", indent, l)
		indent = strings.Repeat(" ", len(indent))
	}
}

// Explain prints what a code means: f holds its title as the message, its cause and its fix.
func Explain(w io.Writer, f finding.Finding, colour bool) error {
	t := &text{out: w, colour: colour}
	t.statement(f, "")
	t.explanation(f, "")
	return t.err
}
