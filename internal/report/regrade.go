package report

import (
	"slices"

	"github.com/olmkit/olmkit/internal/finding"
)

// graded is something that has a result, and the findings that it comes of.
type graded struct {
	result   *Result
	findings []*finding.Finding
	failing  bool
}

// Regrade has change alter the findings of r in place, which it is given list by list, and then corrects the results that
// came of them: what failed by errors passes when none of those counts any more, and what passed fails by a new one. What
// failed for another reason, as a walk that ended early, stays failed.
func (r *Report) Regrade(change func([]finding.Finding)) {
	all := r.graded()
	change(r.Findings)
	change(r.History)
	for i := range r.Installations {
		change(r.Installations[i].Findings)
	}
	for i := range r.Hops {
		change(r.Hops[i].Findings)
		if back := r.Hops[i].Rollback; back != nil {
			change(back.Findings)
		}
	}
	for _, g := range all {
		switch failing := slices.ContainsFunc(g.findings, counts); {
		case g.failing && !failing && *g.result == Failed:
			*g.result = Passed
		case !g.failing && failing && *g.result == Passed:
			*g.result = Failed
		}
	}
}

// graded returns all that has a result in r, r itself last.
func (r *Report) graded() []graded {
	var list []graded
	add := func(result *Result, findings []*finding.Finding) {
		list = append(list, graded{result, findings, slices.ContainsFunc(findings, counts)})
	}
	all := each(r.Findings)
	for i := range r.Installations {
		in := &r.Installations[i]
		all = append(all, each(in.Findings)...)
		add(&in.Result, r.reasons(in))
	}
	for i := range r.Hops {
		h := &r.Hops[i]
		findings := each(h.Findings)
		if h.Rollback != nil {
			back := each(h.Rollback.Findings)
			add(&h.Rollback.Result, back)
			findings = append(findings, back...)
		}
		all = append(all, findings...)
		add(&h.Result, findings)
	}
	add(&r.Result, all)
	return list
}

// reasons returns the findings that the result of in comes of: its own, or, of one that failed and has no error, those of
// others of the same bundle and of the hops from it, for what is told there is not told again.
func (r *Report) reasons(in *Installation) []*finding.Finding {
	own := each(in.Findings)
	if in.Result != Failed || slices.ContainsFunc(own, isError) {
		return own
	}
	for i := range r.Installations {
		if other := &r.Installations[i]; other != in && other.Name == in.Name {
			own = append(own, each(other.Findings)...)
		}
	}
	if slices.ContainsFunc(own, isError) {
		return own
	}
	for i := range r.Hops {
		if r.Hops[i].From == in.Name {
			own = append(own, each(r.Hops[i].Findings)...)
		}
	}
	return own
}

// each points to every one of findings.
func each(findings []finding.Finding) []*finding.Finding {
	list := make([]*finding.Finding, len(findings))
	for i := range findings {
		list[i] = &findings[i]
	}
	return list
}

func isError(f *finding.Finding) bool { return f.Severity == finding.Error }

// counts reports whether f fails what it is of.
func counts(f *finding.Finding) bool { return isError(f) && f.Suppressed == nil }
