package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// group is findings that say the same, each of another bundle or upgrade.
type group []finding.Finding

// groupEqual groups findings as equal does.
func groupEqual(findings []finding.Finding) []group {
	var groups []group
	for _, same := range equal(findings, func(f finding.Finding) finding.Finding { return f }) {
		groups = append(groups, same)
	}
	return groups
}

// equal puts together what says the same of several bundles or upgrades of a package, in the order of the first of each; of
// is the finding of one of list. Where the words name the bundle or the upgrade itself, its name makes no difference.
func equal[T any](list []T, of func(T) finding.Finding) [][]T {
	type sameness struct {
		pkg, channel, olm, kubernetes, code, object, message, cause, fix, suppressed string
		severity                                                                     finding.Severity
		one                                                                          int // of findings that are about no bundle, each for itself
	}
	at := map[sameness]int{}
	var groups [][]T
	for i, one := range list {
		f := of(one)
		key := sameness{pkg: f.Subject.Package, channel: f.Subject.Channel, olm: f.Subject.OLM, kubernetes: f.Subject.Kubernetes, code: f.Code, severity: f.Severity, one: i + 1}
		if s := f.Subject; s.From+s.To != "" {
			key.one = 0
			key.object, key.message, key.cause, key.fix = withoutBundles(s.Object, s), withoutBundles(f.Message, s), withoutBundles(f.Cause, s), withoutBundles(f.Fix, s)
		}
		if f.Suppressed != nil {
			key.suppressed = f.Suppressed.Until + " " + f.Suppressed.Reason
		}
		if n, ok := at[key]; ok {
			groups[n] = append(groups[n], one)
			continue
		}
		at[key] = len(groups)
		groups = append(groups, []T{one})
	}
	return groups
}

// withoutBundles is text with the names of the bundles of s replaced by what stands for any. (A strings.Replacer takes quadratic time to
// learn a long name.)
func withoutBundles(text string, s finding.Subject) string {
	for i, name := range []string{s.From, s.To} {
		if name != "" {
			text = strings.ReplaceAll(text, name, fmt.Sprintf("\x00%d", i))
		}
	}
	return text
}

// manyOthers is how many bundles or upgrades are named that have the same, where not all are asked for.
const manyOthers = 5

// same says of what else the group says the same, "" if of nothing. Unless all are asked for, only some are named.
func (g group) same(all bool) string {
	said, names := g.others()
	if said == "" {
		return ""
	}
	if rest := len(names) - manyOthers; rest > 0 && !all {
		names = append(names[:manyOthers], fmt.Sprintf("and %d more", rest))
	}
	return said + ": " + strings.Join(names, ", ")
}

// others says of how many others the group says the same, "" if of none, and returns their names.
func (g group) others() (said string, names []string) {
	if len(g) == 1 {
		return "", nil
	}
	noun := "bundle"
	for _, f := range g[1:] {
		name := cmp.Or(f.Subject.From, f.Subject.To)
		if f.Subject.From != "" && f.Subject.To != "" {
			noun, name = "upgrade", f.Subject.From+" → "+f.Subject.To
		}
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case len(g)-1 != len(names):
		said = fmt.Sprintf("the same %s more", times(len(g)-1))
	case len(names) == 1:
		said = "the same in 1 more " + noun
	default:
		said = fmt.Sprintf("the same in %d more %ss", len(names), noun)
	}
	return said, names
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// noteLine sums up the notes of one code.
type noteLine struct {
	code, title string
	n           int
	packages    []string
}

// withoutNotes returns the findings that are told one by one, and the notes of which there is a line for each code: none where
// everything is told.
func (r *Report) withoutNotes(findings []finding.Finding) (told, notes []finding.Finding) {
	if r.Verbose {
		return findings, nil
	}
	for _, f := range findings {
		if f.Severity == finding.Info && f.Suppressed == nil {
			notes = append(notes, f)
		} else {
			told = append(told, f)
		}
	}
	return told, notes
}

// noteLines returns a line for each code of notes.
func noteLines(r *Report, findings []finding.Finding) []noteLine {
	byCode := map[string]*noteLine{}
	var lines []*noteLine
	for _, f := range findings {
		l := byCode[f.Code]
		if l == nil {
			l = &noteLine{code: f.Code, title: r.title(f)}
			byCode[f.Code], lines = l, append(lines, l)
		}
		l.n++
		if p := f.Subject.Package; p != "" && !slices.Contains(l.packages, p) {
			l.packages = append(l.packages, p)
		}
	}
	slices.SortFunc(lines, func(a, b *noteLine) int { return strings.Compare(a.code, b.code) })
	sorted := make([]noteLine, len(lines))
	for i, l := range lines {
		sorted[i] = *l
	}
	return sorted
}

// String says how often and where there is a note, and what it means.
func (l noteLine) String() string {
	where := ""
	if len(l.packages) > 1 {
		where = fmt.Sprintf(" in %d packages", len(l.packages))
	}
	return fmt.Sprintf("%s: %d%s (%s)", l.code, l.n, where, l.title)
}
