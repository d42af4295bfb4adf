package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// group is findings that say the same, each of another bundle or upgrade.
type group struct {
	finding.Finding // the first
	others          []finding.Finding
}

// groupEqual puts findings together that say the same of several bundles or upgrades of a package, in the order of the first
// of each. Where the words name the bundle or the upgrade itself, its name makes no difference.
func groupEqual(findings []finding.Finding) []group {
	type sameness struct {
		pkg, channel, code, object, message, cause, fix, suppressed string
		severity                                                    finding.Severity
		one                                                         int // of findings that are about no bundle, each for itself
	}
	at := map[sameness]int{}
	var groups []group
	for i, f := range findings {
		key := sameness{pkg: f.Subject.Package, channel: f.Subject.Channel, code: f.Code, severity: f.Severity, one: i + 1}
		if names := bundleNames(f.Subject); names != nil {
			key.one = 0
			key.object, key.message, key.cause, key.fix = names.Replace(f.Subject.Object), names.Replace(f.Message), names.Replace(f.Cause), names.Replace(f.Fix)
		}
		if f.Suppressed != nil {
			key.suppressed = f.Suppressed.Until + " " + f.Suppressed.Reason
		}
		if n, ok := at[key]; ok {
			groups[n].others = append(groups[n].others, f)
			continue
		}
		at[key] = len(groups)
		groups = append(groups, group{Finding: f})
	}
	return groups
}

// bundleNames replaces the names of the bundles of s by what stands for any; it is nil where there are none.
func bundleNames(s finding.Subject) *strings.Replacer {
	var pairs []string
	for i, name := range []string{s.From, s.To} {
		if name != "" {
			pairs = append(pairs, name, fmt.Sprintf("\x00%d", i))
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return strings.NewReplacer(pairs...)
}

// manyOthers is how many bundles or upgrades are named that have the same, where not all are asked for.
const manyOthers = 5

// same says of what else the group says the same, "" if of nothing.
func (g group) same(all bool) string {
	if len(g.others) == 0 {
		return ""
	}
	noun, names := "bundle", make([]string, 0, len(g.others))
	for _, f := range g.others {
		name := cmp.Or(f.Subject.From, f.Subject.To)
		if f.Subject.From != "" && f.Subject.To != "" {
			noun, name = "upgrade", f.Subject.From+" → "+f.Subject.To
		}
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	said := fmt.Sprintf("the same %s more", times(len(g.others)))
	if len(g.others) == len(names) {
		said = fmt.Sprintf("the same in %d more %ss", len(names), noun)
		if len(names) == 1 {
			said = "the same in 1 more " + noun
		}
	}
	if rest := len(names) - manyOthers; rest > 0 && !all {
		names = append(names[:manyOthers], fmt.Sprintf("and %d more", rest))
	}
	return said + ": " + strings.Join(names, ", ")
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

// noteLines returns a line for each code of the notes among findings.
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
