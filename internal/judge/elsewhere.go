package judge

import (
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// saving matches kinds of which something may be kept on purpose.
var saving = observe.Compiled(`(?i)backup|snapshot|volume|secret|namespace`)

// elsewhere tells what was made for a new object outside of what Kubernetes deletes with it and stayed when the object was deleted, and went or was not made
// with from; and what is not made any more.
func elsewhere(from, to string, was, is New) []finding.Finding {
	if was.Elsewhere == nil || is.Elsewhere == nil || was.Of != is.Of { // what is made may depend on what the sample asks for
		return nil
	}
	var stay, kept, lost, said, dropped []string
	for _, d := range is.Elsewhere {
		before, stayed := ofKind(was.Elsewhere, d)
		if d.Shared && !d.Beside && slices.ContainsFunc(was.Elsewhere, func(other Distant) bool { return other.Kind == d.Kind && other.Name == d.Name && other.Beside }) {
			dropped = append(dropped, d.Kind+" "+d.Name)
		}
		switch name := d.Kind + " " + d.Name; {
		case d.Gone || stayed || !before && slices.Contains(was.Removed, d.Kind) || d.Shared && saving().MatchString(d.Kind):
		case d.Shared:
			said = append(said, name)
		case before || !saving().MatchString(d.Kind):
			stay = append(stay, name)
		default:
			kept = append(kept, name)
		}
	}
	for _, d := range was.Elsewhere {
		if now, _ := ofKind(is.Elsewhere, d); !now && !d.Shared && !slices.Contains(lost, d.Kind) {
			lost = append(lost, d.Kind)
		}
	}
	var findings []finding.Finding
	for _, left := range [][]string{stay, kept} {
		if len(left) > 0 {
			findings = append(findings, code.Finding(code.NewUnowned, is.Sample, "%s makes %s for a new object like it, and it stayed when the object was deleted; with %s it did not",
				to, strings.Join(left, ", "), from))
		}
	}
	if len(kept) > 0 { // some data are kept on purpose
		findings[len(findings)-1].Severity = finding.Warning
	}
	if len(said) > 0 {
		findings = append(findings, code.Finding(code.NewUnowned, is.Sample, "what %s writes about a new object like it into %s stayed there when the object was deleted; with %s it did not",
			to, strings.Join(said, ", "), from))
	}
	if len(dropped) > 0 {
		findings = append(findings, doesLess("in what objects share change the entry of the object alone, and leave those of the others", is.Sample, "what %s writes about a new object like it into %s takes away what was said there of this one; with %s both were there",
			to, strings.Join(dropped, ", "), from))
	}
	if len(lost) > 0 && is.Copy.Made {
		f := doesLess("make it still, or say in the release notes what takes its place", is.Sample, "%s makes no %s for a new object like it any more, of the cluster's scope, in another namespace or without an owner; %s did", to, strings.Join(lost, " and no "), from)
		f.Severity = finding.Warning
		findings = append(findings, f)
	}
	return findings
}

// ofKind reports whether list has something of like's kind that is as shared, and whether some of that stayed.
func ofKind(list []Distant, like Distant) (is, stayed bool) {
	for _, d := range list {
		if d.Kind == like.Kind && d.Shared == like.Shared {
			is, stayed = true, stayed || !d.Gone
		}
	}
	return is, stayed
}
