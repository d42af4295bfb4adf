package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/safetext"
)

const (
	// markdownLimit is what GitHub takes of a comment, in characters.
	markdownLimit = 65536
	// markdownRows is what rows may take of it, so that the rest of a comment has room whatever there is to tell.
	markdownRows = 48000
	// cellLimit is how many characters of a message stand in a cell; reports in other formats have all of it.
	cellLimit = 700
)

// Markdown renders r as a comment on a pull request: the verdict and the first failure, hops and findings as tables, and what
// explains them folded away. It stays below the length that GitHub takes: what has no room is counted.
func Markdown(w io.Writer, r *Report) error {
	var b bytes.Buffer
	m := &markdown{text: text{out: &b}, room: markdownRows}
	m.report(shown(r))
	_, err := w.Write(b.Bytes())
	return err
}

// markdown writes lines, and rows as long as there is room for them.
type markdown struct {
	text
	room int
}

func (m *markdown) report(r *Report) {
	mark := "✅"
	switch {
	case r.Result == Failed:
		mark = "❌"
	case r.Result == Passed && verdict(r) != string(Passed):
		mark = "⚠️"
	}
	m.line("### %s olmkit: %s", mark, verdict(r))
	m.line("")
	m.line("%s", summary(r))
	if f, ok := firstFailure(r); ok {
		m.line("")
		m.line("**First failure:** %s", safetext.Markdown(about(f.Subject)))
		if f.Code != "" {
			m.line("")
			m.line("> **%s** %s", f.Code, cell(f.Message))
			for _, part := range []struct{ name, text string }{{"Cause", f.Cause}, {"Fix", f.Fix}} {
				if part.text != "" {
					m.line(">")
					m.line("> %s: %s", part.name, cell(part.text))
				}
			}
		}
	}
	m.sideBySide(r)
	m.hops(r)
	m.findings(r)
	m.history(r)
	m.logs(r)
	m.access(r)
	for _, w := range r.grounds() {
		var lines []string
		for _, s := range w.Cluster.Limitations {
			lines = append(lines, "- "+cell(s))
		}
		m.folded(fmt.Sprintf("ran on a cluster of kind %s, Kubernetes %s, OLM %s: what that does not prove", w.Cluster.Kind, w.Cluster.Kubernetes, w.Cluster.OLM), false, "", lines)
	}
}

// findings tabulates those of each severity, and the suppressed ones: each of those that say the same once, and of notes
// that are no hop's a line for each code.
func (m *markdown) findings(r *Report) {
	told, notes := r.withoutNotes(r.Findings)
	groups := groupEqual(append(told[:len(told):len(told)], r.All()[len(r.Findings):]...))
	for _, table := range []struct {
		severity finding.Severity
		noun     string
	}{{finding.Error, "error"}, {finding.Warning, "warning"}, {finding.Info, "note"}} {
		var rows []string
		n := 0
		for _, g := range groups {
			if g[0].Severity == table.severity && g[0].Suppressed == nil {
				n += len(g)
				rows = append(rows, tableRow(cell(g[0].Code), where(g[0]), what(g), cell(g[0].Fix)))
			}
		}
		m.folded(count(n, table.noun), table.severity == finding.Error, "| code | where | what | fix |\n|---|---|---|---|", rows)
	}
	var summed, suppressed []string
	for _, l := range noteLines(r, notes) {
		summed = append(summed, "- "+cell(l.String()))
	}
	m.folded(count(len(notes), "note"), false, "", summed)
	n := 0
	for _, g := range groups {
		if s := g[0].Suppressed; s != nil {
			n += len(g)
			suppressed = append(suppressed, tableRow(cell(g[0].Code), where(g[0]), what(g), cell("until "+s.Until+": "+s.Reason)))
		}
	}
	m.folded(fmt.Sprintf("%d suppressed", n), false, "| code | where | what | suppressed |\n|---|---|---|---|", suppressed)
}

// what is what a group says, of what else, and the lines of the encoded object that the first is about, for a cell of a table.
func what(g group) string {
	s := cell(g[0].Message)
	if same := g.same(false); same != "" {
		s += "<br>" + cell(same)
	}
	if at := within(g[0]); at != "" {
		s += "<br>" + cell(at)
		for line := range strings.Lines(g[0].Location.Excerpt) {
			shown, _ := excerpt(line, 0, width)
			bare := strings.TrimLeft(shown, " ")
			s += "<br><code>" + strings.Repeat("&nbsp;", len(shown)-len(bare)) + safetext.Markdown(bare) + "</code>"
		}
	}
	return s
}

// hops tabulates installations and hops, those that did not fail folded away if they are many.
func (m *markdown) hops(r *Report) {
	var all, failed, others []string
	steps := r.Steps()
	for _, h := range steps {
		var outages []string
		for _, o := range totals(h.Outages) {
			outages = append(outages, fmt.Sprintf("%s %s %.1fs", o.operation, o.version, o.seconds))
		}
		sign, result := signs[h.Result], string(h.Result)
		if result == "" {
			result = "planned"
		}
		if len(h.Simulated) > 0 {
			result += ", with simulated pods"
		}
		if n := len(h.NotVerified); n > 0 {
			result += fmt.Sprintf(", reconciling of %s not verified", count(n, "object"))
		}
		for _, f := range h.Faults {
			result += ", fault " + f.Name
		}
		if h.Rollback != nil {
			result += ", rollback " + string(h.Rollback.Result)
		}
		line := fmt.Sprintf("| %s | %s | %s%s | %.1f | %s |", cell(h.Title()), cell(strings.TrimPrefix(h.Edge+h.planned()+of(h.OLM, h.Kubernetes), ", ")), sign, cell(result), h.Seconds, cell(strings.Join(outages, ", ")))
		all = append(all, line)
		if h.Result == Failed {
			failed = append(failed, line)
		} else {
			others = append(others, line)
		}
	}
	const head = "| hop | by | result | seconds | outages |\n|---|---|---|---|---|"
	if len(steps) > manyHops {
		m.folded(count(len(failed), "failed hop"), true, head, failed)
		m.folded(count(len(others)+r.MoreHops, "other hop"), false, head, others)
		return
	}
	m.folded(hopCount(r), true, head, all)
}

// signs stand before results.
var signs = map[Result]string{Passed: "✅ ", Failed: "❌ ", Skipped: "⏭️ "}

// manyHops is from how many hops on those that did not fail are folded away.
const manyHops = 12

// folded writes a table that can be folded away, with as many of rows as there is room for.
func (m *markdown) folded(title string, open bool, head string, rows []string) {
	if len(rows) == 0 {
		return
	}
	m.line("")
	if open {
		m.line("<details open><summary>%s</summary>", safetext.HTML(title))
	} else {
		m.line("<details><summary>%s</summary>", safetext.HTML(title))
	}
	m.line("")
	if head != "" {
		m.line("%s", head)
	}
	for i, r := range rows {
		m.room -= utf8.RuneCountInString(r) + 1
		if m.room < 0 {
			m.line("")
			m.line("… and %d more, for which a comment has no room: see the other reports", len(rows)-i)
			break
		}
		m.line("%s", r)
	}
	m.line("")
	m.line("</details>")
}

// tableRow is a row of a table, of cells that are escaped.
func tableRow(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |" }

// where is the place and the subject of a finding, for a cell of a table.
func where(f finding.Finding) string {
	s := safetext.Markdown(subject(f.Subject))
	at := place(f)
	if within(f) != "" {
		at = f.Location.String() // what is within stands beside what is wrong
	}
	if at != "" {
		return strings.TrimSpace("`" + strings.NewReplacer("`", "'", "|", `\|`).Replace(at) + "` " + s)
	}
	return s
}

// cell is s, as far as it has room, for a cell of a table.
func cell(s string) string {
	s = strings.TrimSpace(s)
	if runes := []rune(s); len(runes) > cellLimit {
		s = string(runes[:cellLimit-1]) + "…"
	}
	return safetext.Markdown(s)
}
