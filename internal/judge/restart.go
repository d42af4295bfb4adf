package judge

import (
	"cmp"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// longLease is from when on a lock that is not released keeps everybody waiting for too long.
const longLease = time.Minute

// Comeback tells whether the operator of the release called to came back after its pods had been deleted, and which lock they kept. released says that
// the pods of the release before gave theirs back.
func Comeback(to, from string, back observe.Comeback, released bool) []finding.Finding {
	var findings []finding.Finding
	if !back.Back {
		findings = append(findings, code.Finding(code.NotStable, "", "the operator of %s does not come back: its pods were deleted, as when a node is drained, and no others are ready and lead in their place", to))
	}
	if back.Held != "" && released {
		f := code.Finding(code.NobodyLed, back.Held, "the pods of %s do not release it when they end: nothing is reconciled for %s then, as in the next upgrade; those of %s did", to, back.Lease, from)
		if f.Severity = finding.Warning; back.Lease >= longLease {
			f.Severity = finding.Error
		}
		findings = append(findings, f)
	}
	return findings
}

// moments matches fields of a status that tell when somebody looked or what goes on.
var moments = regexp.MustCompile(`(?i)\blast|(time|heartbeat|updated?|checked|observed|seen|synced?|refresh(ed)?|probed?|reconciled|message|reason|uptime|age)$`)

// Restart tells what an operator changed when it was started again: of what was made for objects, before and after, and in what objects, by name, say in their status. runs is what is known
// of the Jobs that are made for them.
func Restart(to string, before, after map[string]observe.Operand, said, says map[string]map[string]any, runs map[string]Runs) []finding.Finding {
	var findings []finding.Finding
	for _, object := range objectsOf(before) {
		var severe, others []string
		for _, name := range slices.Sorted(maps.Keys(before)) {
			made := before[name]
			if made.Of != object || !made.Direct || made.Transient() || made.Kind == observe.KindClaim {
				continue
			}
			now, stays := after[name]
			switch {
			case !stays && made.Kind == "Job": // whose time is over
			case !stays:
				severe = append(severe, "it deletes "+name)
			case now.UID != made.UID:
				severe = append(severe, "it makes "+name+" anew")
			default:
				bad, other := restarted(made, now)
				severe, others = append(severe, bad...), append(others, other...)
			}
		}
		if runs[object].Made < 2 { // others come from time to time
			severe = append(severe, runAgain(object, before, after)...)
		}
		was, is := compare.Values(said[object]), compare.Values(says[object])
		for _, field := range compare.OtherFields(said[object], says[object]) {
			if !moments.MatchString(field) {
				others = append(others, cmp.Or(becomes("status."+field, field, was, is), "the status says something else in "+field))
			}
		}
		if len(severe)+len(others) == 0 {
			continue
		}
		f := code.Finding(code.RestartChanges, object, "when the operator of %s starts again, with nothing to do, %s", to, firstOf(append(severe, others...)))
		if len(severe) == 0 {
			f.Severity = finding.Warning
		}
		findings = append(findings, f)
	}
	return findings
}

// runAgain tells which Jobs of an object are new in after and run what one did that there was before.
func runAgain(object string, before, after map[string]observe.Operand) (again []string) {
	isJob := func(o observe.Operand) bool { return o.Of == object && o.Direct && o.Kind == "Job" }
	for _, name := range slices.Sorted(maps.Keys(after)) {
		template, runs := after[name].Template()
		if _, known := before[name]; known || !isJob(after[name]) || !runs {
			continue
		}
		if slices.ContainsFunc(slices.Collect(maps.Values(before)), func(o observe.Operand) bool {
			other, _ := o.Template()
			return isJob(o) && reflect.DeepEqual(other.Spec, template.Spec)
		}) {
			again = append(again, "it runs again, in "+name+", what another Job did")
		}
	}
	return again
}

// objectsOf are the objects that operands were made for, sorted.
func objectsOf(operands map[string]observe.Operand) []string {
	names := map[string]bool{}
	for _, o := range operands {
		names[o.Of] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// restarted tells which fields of what was made are others now: those by which pods are replaced and credentials, and others.
func restarted(was, now observe.Operand) (severe, others []string) {
	for _, field := range compare.OtherFields(was.Content, now.Content) {
		switch {
		case slices.Contains(Replicated, was.Kind) && strings.HasPrefix(field, "spec.template"):
			severe = append(severe, "it replaces the pods of "+was.String()+" ("+field+")")
		case was.Kind == observe.KindSecret && observe.IsCredential(field):
			severe = append(severe, "it sets another "+field+" in "+was.String())
		default:
			others = append(others, "it sets another "+field+" of "+was.String())
		}
	}
	return severe, others
}
