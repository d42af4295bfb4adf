package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// Split moves findings about what is published from r.Findings to r.History, where they fail nothing.
func (r *Report) Split() {
	isPublished := func(f finding.Finding) bool { return f.Published }
	for _, f := range r.Findings {
		if isPublished(f) {
			r.History = append(r.History, f)
		}
	}
	r.Findings = slices.DeleteFunc(r.Findings, isPublished)
}

// historyLine sums up the findings of one code and severity on published releases of one package.
type historyLine struct {
	finding.Finding // the first

	Title             string // what the code means
	upgrades, bundles int
}

// String says on how much of the package something was found: "CRD007: 33 on published upgrades".
func (l historyLine) String() string {
	var parts []string
	if l.upgrades > 0 {
		parts = append(parts, onPublished(l.upgrades, "upgrade"))
	}
	if l.bundles > 0 {
		parts = append(parts, onPublished(l.bundles, "release"))
	}
	return l.Code + ": " + strings.Join(parts, ", ")
}

func onPublished(n int, noun string) string {
	if n == 1 {
		return "1 on a published " + noun
	}
	return fmt.Sprintf("%d on published %ss", n, noun)
}

// historyLines returns a line for each package, severity and code of r.History, the worst of a package first.
func historyLines(r *Report) []historyLine {
	open := finding.Open(r.History)
	slices.SortStableFunc(open, func(a, b finding.Finding) int {
		return cmp.Or(strings.Compare(a.Subject.Package, b.Subject.Package), rank(a.Severity)-rank(b.Severity), strings.Compare(a.Code, b.Code))
	})
	var lines []historyLine
	for _, f := range open {
		if n := len(lines); n == 0 || !sameCode(lines[n-1].Finding, f) {
			lines = append(lines, historyLine{Finding: f, Title: r.title(f)})
		}
		last := &lines[len(lines)-1]
		if f.Subject.To != "" {
			last.upgrades++
		} else {
			last.bundles++
		}
	}
	return lines
}

// title is what the code of f means, or, where that is not known, what f says.
func (r *Report) title(f finding.Finding) string { return cmp.Or(r.Titles[f.Code], f.Message) }

// historyTitle says what stands in the lines of history.
const historyTitle = "published before: cannot be changed, and fails nothing (--all shows and counts it)"

// history tabulates what was found on published releases, folded away.
func (m *markdown) history(r *Report) {
	var rows []string
	for _, l := range historyLines(r) {
		rows = append(rows, tableRow(cell(l.Subject.Package), cell(string(l.Severity)), cell(l.String()), cell(l.Title)))
	}
	m.folded(fmt.Sprintf("%s on published releases, which fail nothing", count(len(finding.Open(r.History)), "finding")), false,
		"| package | severity | published | what |\n|---|---|---|---|", rows)
}
