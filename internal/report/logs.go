package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// How many lines of a log the renderings have that have little room: a text and a message, and a comment. Others have all.
const (
	briefLog  = 10
	foldedLog = 50
)

// last returns the last n lines of the log, each no longer than columns.
func (l Log) last(n, columns int) []string {
	lines := strings.Split(strings.TrimRight(l.Text, "\n"), "\n")
	lines = slices.Clone(lines[max(0, len(lines)-n):])
	for i, line := range lines {
		if runes := []rune(line); len(runes) > columns {
			lines[i] = string(runes[:columns-1]) + "…"
		}
	}
	return lines
}

// title says what of the log n lines are.
func (l Log) title(n int) string {
	return fmt.Sprintf("log of %s, last %s", l.Source, count(n, "line"))
}

// logs prints the last lines of each of logs, or all of them.
func (t *text) logs(logs []Log, all bool) {
	for _, l := range logs {
		lines := l.last(briefLog, cellLimit)
		if all {
			lines = strings.Split(l.Text, "\n")
		}
		t.line("      %s:", l.title(len(lines)))
		for _, line := range lines {
			t.line("        %s", t.paint(dim, line))
		}
	}
}

// logs writes the logs of each hop that has some, folded away. Lines that are indented so far are shown as they are.
func (m *markdown) logs(r *Report) {
	for _, h := range r.Steps() {
		for _, l := range h.Logs {
			lines := l.last(foldedLog, cellLimit)
			rows := make([]string, len(lines))
			for i, line := range lines {
				rows[i] = "    " + line
			}
			m.folded(h.Title()+": "+l.title(len(lines)), false, "", rows)
		}
	}
}

// logsAt returns, by the place in All of the first error of each installation and hop, what the hop's processes logged last.
func (r *Report) logsAt() map[int]string {
	at := map[int]string{}
	place := len(r.Findings)
	for _, h := range r.Steps() {
		all := h.All()
		if i := slices.IndexFunc(all, func(f finding.Finding) bool { return f.Severity == finding.Error && f.Suppressed == nil }); i >= 0 {
			var said string
			for _, l := range h.Logs {
				lines := l.last(briefLog, cellLimit)
				said += "\n" + l.title(len(lines)) + ":\n" + strings.Join(lines, "\n")
			}
			at[place+i] = said
		}
		place += len(all)
	}
	return at
}
