package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// findings prints those of the report itself, the worst first, and each of those that say the same once. Unless everything is
// told, suppressed ones are left out, and of notes there is a line for each code.
func (t *text) findings(r *Report) {
	list := slices.Clone(r.Findings)
	if !r.Verbose {
		list = finding.Open(list)
	}
	list, notes := r.withoutNotes(list)
	slices.SortStableFunc(list, func(a, b finding.Finding) int {
		return cmp.Or(rank(a.Severity)-rank(b.Severity), strings.Compare(a.Subject.Package, b.Subject.Package), strings.Compare(a.Code, b.Code))
	})
	groups := groupEqual(list)
	for i, g := range groups {
		if pkg := g[0].Subject.Package; i == 0 || pkg != groups[i-1][0].Subject.Package {
			t.gap()
			if pkg != "" {
				t.line("%s", t.paint(bold, "package "+pkg))
			}
		}
		t.statement(g[0], "  ")
		if same := g.same(r.Verbose); same != "" {
			t.paragraph("    ", same)
		}
		if i+1 == len(groups) || !alike(g[0], groups[i+1][0]) {
			t.explanation(g[0], "  ")
		}
	}
	t.notes(r, notes)
	t.history(r)
}

// notes prints a line for each code of notes.
func (t *text) notes(r *Report, notes []finding.Finding) {
	if len(notes) == 0 {
		return
	}
	t.gap()
	t.line("%s", t.paint(bold, "notes (-v shows them)"))
	for _, l := range noteLines(r, notes) {
		t.paragraph("  ", l.String())
	}
}

// history prints what was found on published releases, a line for each package and code.
func (t *text) history(r *Report) {
	lines := historyLines(r)
	if len(lines) == 0 {
		return
	}
	t.gap()
	t.line("%s", t.paint(bold, historyTitle))
	for i, l := range lines {
		if l.Subject.Package != "" && (i == 0 || l.Subject.Package != lines[i-1].Subject.Package) {
			t.line("  package %s", l.Subject.Package)
		}
		t.paragraph("    ", string(l.Severity)+" "+l.String()+" ("+l.Title+")")
	}
}
