package judge

import (
	"maps"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// reverts reports whether the operator changed back anything that somebody changed of what it had made: who looks at nothing takes nothing away.
func (n New) reverts() bool { return slices.Contains(slices.Collect(maps.Values(n.Reverts)), true) }

// writes reports whether the operator is known to write what is named so: it changed it back, as others of the kinds that are compared, or had it follow a change.
func (n New) writes(name string) bool {
	return n.reverts() || slices.ContainsFunc(slices.Collect(maps.Values(n.Moves)), func(kinds []string) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool { return isOfKind(name, kind) })
	})
}

// Autoscaled begins the name in Additions of what a HorizontalPodAutoscaler sets that the operator made: it is never the operator's.
const Autoscaled = "the autoscaled replicas of"

// stripped tells what others set of what was made for new objects and the operator takes away, and did not with from.
func stripped(from, to string, was, is New) []finding.Finding {
	var findings []finding.Finding
	reverts := was.reverts()
	for _, of := range []struct {
		what, use string
		severity  finding.Severity // many operators have all labels for theirs, but for those of namespaces
		was, is   map[string]bool
	}{
		{"annotations", "as load balancers and monitoring are configured by", finding.Error, was.Marks, is.Marks},
		{"labels", "as monitoring and policies choose by", finding.Info, was.Labels, is.Labels},
	} {
		gone := namesOf(of.is, func(kind string) bool { return reverts && of.was[kind] && !of.is[kind] })
		if len(gone) > 0 {
			f := code.Finding(code.OperandChanged, is.Sample, "%s takes %s that others put on %s of a new object like it away, %s; %s left them", to, of.what, strings.Join(gone, " and "), of.use, from)
			f.Fix = "set the keys that are the operator's among the " + of.what + " that are there, by server-side apply or in what CreateOrUpdate read, rather than all of them"
			if f.Severity = of.severity; slices.ContainsFunc(gone, func(name string) bool { return isOfKind(name, observe.KindNamespace) }) {
				f.Severity = finding.Error
			}
			findings = append(findings, f)
		}
	}
	taken := namesOf(is.Additions, func(what string) bool {
		_, name, _ := strings.Cut(what, " of ")
		return was.Additions[what] && !is.Additions[what] && (was.writes(name) || strings.HasPrefix(what, Autoscaled))
	})
	if len(taken) > 0 {
		f := code.Finding(code.OperandChanged, is.Sample, "%s takes back what others set of what is made for a new object like it: %s; %s left it", to, strings.Join(taken, ", "), from)
		f.Severity, f.Fix = finding.Error, "change the fields that the operator is to set and leave the others, by server-side apply or in what CreateOrUpdate read"
		findings = append(findings, f)
	}
	return findings
}

// claimsOf tells whether the claims of a new object go with it, and stayed with from, or the other way round.
func claimsOf(from, to string, was, is New) []finding.Finding {
	var findings []finding.Finding
	if len(was.Kept) > 0 && !was.Cleared && len(is.Kept) == 0 && is.Cleared {
		findings = append(findings, code.Finding(code.DataLost, is.Sample, "%s deletes the claims of a new object like it when that is deleted; %s kept them", to, from))
	}
	if was.Cleared && len(was.Kept) == 0 && len(is.Kept) > 0 && !is.Cleared {
		f := code.Finding(code.NewUnowned, is.Sample, "%s leaves the claims of a new object like it when that is deleted, and another one of its name finds their data; %s deleted them", to, from)
		f.Severity = finding.Warning // data may be kept on purpose
		findings = append(findings, f)
	}
	return findings
}

// servicesOf tells which selectors of what is made for a new object begin to pick pods of others, and which Services are not made any more.
func servicesOf(from, to string, was, is New) []finding.Finding {
	var findings []finding.Finding
	for _, made := range slices.Sorted(maps.Keys(is.Picks)) {
		before, known := was.Picks[made]
		if others := is.Picks[made]; known && len(before) == 0 && len(others) > 0 {
			kind, _, _ := strings.Cut(made, " ")
			findings = append(findings, code.Finding(selectors[kind].code, is.Sample, "the selector of the %s that %s makes for a new object like it picks pods of other objects, too: "+selectors[kind].then+"; with %s it did not",
				made, to, strings.Join(others, ", "), from))
		}
	}
	if renamed := is.servicesGone(was); was.Of == is.Of && len(renamed) > 0 {
		f := code.Finding(code.PortGone, is.Sample, "%s makes no %s for a new object like it any more, and %s did: clients find a Service by its name, and nobody keeps up to date the one that was made before", to, strings.Join(renamed, " and no "), from)
		f.Severity = finding.Warning
		f.Fix = "make the Service under its old name as well for some releases, and say in the release notes what the new one is called"
		findings = append(findings, f)
	}
	return findings
}

// servicesGone are the Services of was that are not made any more, where others are.
func (n New) servicesGone(was New) []string {
	isService := func(made string) bool {
		return made == observe.KindService || strings.HasPrefix(made, observe.KindService+" ")
	}
	gone := slices.DeleteFunc(without(was.Makes, n.Makes), func(made string) bool { return !isService(made) })
	if !slices.ContainsFunc(n.Makes, isService) {
		return nil
	}
	return gone
}
