package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
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
	}
}

// Text renders r for people: hops with their phases and outages, findings grouped by package, and the verdict last.
func Text(w io.Writer, r *Report, colour bool) error {
	t := &text{out: w, colour: colour}
	for i, h := range r.Hops {
		if i == 0 || h.Package != r.Hops[i-1].Package || h.Channel != r.Hops[i-1].Channel {
			t.line("%s", t.paint(bold, fmt.Sprintf("package %s, channel %s", h.Package, h.Channel)))
		}
		t.hop(h)
	}
	if len(r.LeftOut) > 0 {
		t.line("%s", t.paint(bold, fmt.Sprintf("left out: %s", count(len(r.LeftOut), "hop"))))
		for _, h := range r.LeftOut {
			t.line("  - %s → %s (%s)", h.From, h.To, h.Edge)
		}
	}
	if len(r.Hops)+len(r.LeftOut) > 0 && len(r.Findings) > 0 {
		t.line("")
	}
	grouped := slices.Clone(r.Findings)
	slices.SortStableFunc(grouped, func(a, b finding.Finding) int {
		return cmp.Or(strings.Compare(a.Subject.Package, b.Subject.Package), rank(a.Severity)-rank(b.Severity), strings.Compare(a.Code, b.Code))
	})
	for i, f := range grouped {
		if i == 0 || f.Subject.Package != grouped[i-1].Subject.Package {
			if i > 0 {
				t.line("")
			}
			if f.Subject.Package != "" {
				t.line("%s", t.paint(bold, "package "+f.Subject.Package))
			}
		}
		t.statement(f, "  ")
		if i+1 == len(grouped) || !alike(f, grouped[i+1]) {
			t.explanation(f, "  ")
		}
	}
	if r.Cluster != nil {
		t.line("")
		t.line("ran on a cluster of kind %s, Kubernetes %s, OLM %s", r.Cluster.Kind, r.Cluster.Kubernetes, r.Cluster.OLM)
		for i, s := range r.Cluster.NotProven {
			if i == 0 {
				t.line("not proven there:")
			}
			t.line("  - %s", s)
		}
	}
	t.verdict(r)
	return t.err
}

func (t *text) hop(h Hop) {
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
	t.line("  %s %s → %s  %s%s", mark, h.From, h.To, t.paint(dim, kind), tail)
	if len(h.Phases) > 0 {
		phases := make([]string, len(h.Phases))
		for i, p := range h.Phases {
			phases[i] = fmt.Sprintf("%s %.1fs", p.Name, p.Seconds)
		}
		t.paragraph("      phases: ", strings.Join(phases, ", "))
	}
	for _, o := range totals(h.Outages) {
		gaps := ""
		if o.gaps > 1 {
			gaps = fmt.Sprintf(", %d times, for up to %.1fs", o.gaps, o.longest)
		}
		t.line("      %s", t.paint(yellow, fmt.Sprintf("outage: no %s through %s for %.1fs%s (%s)", o.operation, o.version, o.seconds, gaps, count(o.errors, "failed attempt"))))
	}
	if len(h.Simulated) > 0 {
		t.paragraph("      ", "simulated, not really run: "+strings.Join(h.Simulated, ", "))
	}
	for _, f := range h.Findings {
		f.Subject = finding.Subject{Object: f.Subject.Object} // the rest stands in the hop's line
		t.statement(f, "      ")
		t.explanation(f, "      ")
	}
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
		i := slices.IndexFunc(sums, func(s total) bool { return s.operation == o.Operation && s.version == o.Version })
		if i < 0 {
			i = len(sums)
			sums = append(sums, total{operation: o.Operation, version: o.Version})
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

// alike reports whether two findings are explained by the same words, so that these need be printed once only.
func alike(a, b finding.Finding) bool {
	return a.Subject.Package == b.Subject.Package && a.Code == b.Code && a.Cause == b.Cause && a.Cure == b.Cure && slices.Equal(a.References, b.References)
}

// statement prints what is wrong and where.
func (t *text) statement(f finding.Finding, indent string) {
	severity := string(f.Severity)
	switch f.Severity {
	case finding.Error:
		severity = t.paint(red+bold, severity)
	case finding.Warning:
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
}

// explanation prints why it is so and what to do.
func (t *text) explanation(f finding.Finding, indent string) {
	if f.Cause != "" {
		t.paragraph(indent+"  cause: ", f.Cause)
	}
	if f.Cure != "" {
		t.paragraph(indent+"  cure:  ", f.Cure)
	}
	for _, reference := range f.References {
		t.line("%s  see:   %s", indent, reference)
	}
}

// width is where paragraphs are broken; longer words stand on lines of their own.
const width = 120

// paragraph prints s behind indent, in lines of at most width; further lines are indented as far.
func (t *text) paragraph(indent, s string) {
	for _, l := range strings.Split(strings.TrimRight(s, "\n"), "\n") {
		for _, part := range wrap(l, width-len(indent)) {
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

func (t *text) verdict(r *Report) {
	var parts []string
	if len(r.Hops) > 0 {
		hops := count(len(r.Hops), "hop")
		failed, skipped, simulated := 0, 0, 0
		for _, h := range r.Hops {
			switch h.Result {
			case Failed:
				failed++
			case Skipped:
				skipped++
			}
			if len(h.Simulated) > 0 {
				simulated++
			}
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
		if len(some) > 0 {
			hops += " (" + strings.Join(some, ", ") + ")"
		}
		parts = append(parts, hops)
	}
	severities := map[finding.Severity]int{}
	for _, f := range r.All() {
		severities[f.Severity]++
	}
	for _, s := range []finding.Severity{finding.Error, finding.Warning, finding.Info} {
		if n := severities[s]; n > 0 {
			word := string(s)
			if s == finding.Info {
				word = "note"
			}
			parts = append(parts, count(n, word))
		}
	}
	if len(severities) == 0 {
		parts = append(parts, "no findings")
	}
	if r.Seconds > 0 {
		parts = append(parts, fmt.Sprintf("%.1fs", r.Seconds))
	}
	result := string(r.Result)
	if r.Result == Failed {
		result = t.paint(red+bold, result)
	} else {
		result = t.paint(green+bold, result)
	}
	if len(r.Hops)+len(r.Findings) > 0 || r.Cluster != nil {
		t.line("")
	}
	t.line("%s: %s", result, strings.Join(parts, ", "))
}

// count is n with the noun, in the plural where it belongs.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
