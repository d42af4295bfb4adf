package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/managerlog"
)

// toldErrors is how many errors of a manager's log are findings of their own.
const toldErrors = 5

// QuoteErrors adds to those of findings that an error in the manager's log explains what it says, and returns the keys of
// the errors that need not be told again.
func QuoteErrors(findings []finding.Finding, groups []managerlog.Group) map[string]bool {
	told := map[string]bool{}
	for i := range findings {
		f := &findings[i]
		for _, g := range groups {
			if !explains(g, *f) {
				continue
			}
			said, _, _ := strings.Cut(g.Excerpt, "\n")
			if !strings.Contains(f.Cause, said) && !strings.Contains(f.Message, said) {
				f.AddCause(quote(g))
			}
			if !g.Panic || f.Code == code.NotSucceeded || f.Code == code.Crashed || f.Code == code.NotStable {
				told[g.Key] = true
			}
			break
		}
	}
	return told
}

// quote is g in the words of the log.
func quote(g managerlog.Group) string {
	times := "once"
	if g.Count > 1 {
		times = fmt.Sprintf("%d times", g.Count)
	}
	return fmt.Sprintf("the manager logged %s: %s", times, g.Excerpt)
}

// explains reports whether what f finds may be the consequence of g.
func explains(g managerlog.Group, f finding.Finding) bool {
	switch f.Code {
	case code.NotSucceeded, code.Crashed, code.NotStable:
		return strings.HasPrefix(f.Subject.Object, "Pod/") || strings.HasPrefix(f.Subject.Object, "Deployment/")
	case code.Restarted:
		return g.Panic
	case code.StatusStale, code.ConditionWorse, code.NotReconciled, code.OperandWorse:
		return names(g, f.Subject.Object)
	case code.Forbidden, code.NoResource, code.Conflicts, code.Invalid, code.Denied:
		return shares(g.Error+"\n"+g.Message, f.Message+"\n"+f.Cause)
	}
	return false
}

// names reports whether g was logged for object, or says its name.
func names(g managerlog.Group, object string) bool {
	_, name, _ := strings.Cut(object, "/")
	if slices.Contains(g.Objects, name) {
		return true
	}
	name = name[strings.LastIndex(name, "/")+1:]
	return len(name) > 2 && slices.Contains(strings.FieldsFunc(g.Excerpt, func(c rune) bool { return strings.ContainsRune(" \t\n\"'`/,:;=()[]{}", c) }), name)
}

// How many bytes of an error two texts must have in common to be about the same.
const (
	sharedLeast = 30
	sharedMost  = 120
)

// shares reports whether said quotes what logged ends in: errors are wrapped as "what was tried: why it failed".
func shares(logged, said string) bool {
	said = strings.ReplaceAll(said, `\`, "")
	for line := range strings.Lines(strings.ReplaceAll(logged, `\`, "")) {
		for part := strings.TrimSpace(line); len(part) >= sharedLeast; {
			if strings.Contains(said, part[:min(len(part), sharedMost)]) {
				return true
			}
			_, rest, more := strings.Cut(part, ": ")
			if !more {
				break
			}
			part = rest
		}
	}
	return false
}

// Groups makes findings of the panics among groups and of the errors that last, but for those that are told already.
func Groups(name, object string, groups, lasting []managerlog.Group, known, told map[string]bool) []finding.Finding {
	var findings []finding.Finding
	for _, g := range groups {
		if !g.Panic || told[g.Key] {
			continue
		}
		f := code.Finding(code.Panics, object, "the manager of %s panicked%s", name, howOften(g))
		if f.Cause = quote(g); known[g.Key] {
			f.Severity = finding.Warning
			f.Message += "; the release before did so as well"
		}
		findings = append(findings, f)
	}
	for _, g := range lasting {
		if told[g.Key] {
			continue
		}
		f := code.Finding(code.LogErrors, object, "the manager of %s logs an error again and again%s: %s", name, howOften(g), strings.TrimSuffix(g.Message+": "+g.Error, ": "))
		if f.Cause = quote(g); known[g.Key] {
			f.Severity = finding.Info
			f.Message += "; the release before did so as well"
		}
		findings = append(findings, f)
	}
	return findings[:min(len(findings), toldErrors)]
}

// howOften says how often g was logged, and in which time, where that is known.
func howOften(g managerlog.Group) string {
	s := fmt.Sprintf(" (%d times", g.Count)
	if g.Count == 1 {
		s = " (once"
	}
	if d := g.Last.Sub(g.First); d > 0 {
		s += fmt.Sprintf(" in %.1fs", d.Seconds())
	}
	return s + ")"
}

// restsOnAnswers are the codes of what an operator does less, or over and over, while what it made does not answer it.
var restsOnAnswers = []string{code.ConditionWorse, code.HotLoop, code.DriftStays, code.DoesLess, code.NewIgnored, code.StatusGone}

// NotAnswered makes warnings of those findings that may be as they are because the operator calls what it made, which does not answer on this cluster. It changes findings
// in place.
func NotAnswered(findings []finding.Finding, called []string) {
	if len(called) == 0 {
		return
	}
	for i := range findings {
		if f := &findings[i]; f.Severity == finding.Error && slices.Contains(restsOnAnswers, f.Code) {
			f.Severity = finding.Warning
			f.AddCause("not verified: the operator calls " + atMost(3, called) + ", which cannot answer on this cluster")
		}
	}
}
