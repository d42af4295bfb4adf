package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
)

// causedBy returns the one of list that explains what is told by code, began between two moments (the zero time is any) and began
// with an error of the given text, or nil. If more do, it is one that users may notice, and of those the last.
func causedBy(list []*fault.Result, code string, from, to time.Time, text string) *fault.Result {
	var best *fault.Result
	for _, s := range list {
		during := from.IsZero() || !to.Before(s.Start.Add(-observe.WatchSkew)) && !from.After(s.End.Add(fault.Recovery))
		trusted := s.InTrust || !slices.ContainsFunc(ownTroubles, func(t string) bool { return strings.Contains(text, t) })
		if s.Why == "" && slices.Contains(s.Harms, code) && during && trusted && (best == nil || likelier(s, best)) {
			best = s
		}
	}
	return best
}

// blame returns the one of list that brought o about, or nil. What is but the slowness of the cluster is not held against a fault that
// users are not to notice.
func blame(list []*fault.Result, o outage) *fault.Result {
	by := causedBy(list, outageCode(o), o.Start, o.Failed, o.First)
	if by != nil && o.Slow && by.Expect == fault.Survived {
		return nil
	}
	return by
}

// likelier reports whether s is more likely to be what users notice than another fault is.
func likelier(s, than *fault.Result) bool {
	if (s.Expect == fault.Survived) != (than.Expect == fault.Survived) {
		return than.Expect == fault.Survived
	}
	return s.Start.After(than.Start)
}

// ownTroubles are parts of errors that come of how releases and the manager's steps fit together, and of no fault but those that
// meddle with certificates and converters.
var ownTroubles = []string{"x509", "is registered for version", "the server could not find the requested resource"}

// attributeToFault turns f into a note that s caused it.
func attributeToFault(f finding.Finding, s *fault.Result) finding.Finding {
	f.Severity, f.Fix, f.Fault = finding.Info, "", s.String()
	f.Cause = strings.TrimSuffix(fmt.Sprintf("the injected fault %s did it, and not the operator; %s", s.Injection, f.Cause), "; ")
	return f
}

// AttributeToFaults returns what findings of a hop under faults are: those that a fault explains are none of the operator's.
func AttributeToFaults(findings []finding.Finding, list []*fault.Result) []finding.Finding {
	for i, f := range findings {
		if timed(f.Code) || f.Severity == finding.Error {
			continue // these are told apart by their time, or are never excused
		}
		if s := causedBy(list, f.Code, time.Time{}, time.Time{}, ""); s != nil {
			findings[i] = attributeToFault(f, s)
		}
	}
	return findings
}

// timed reports whether findings of code are about a stretch of time.
func timed(code string) bool { return slices.Contains(fault.OutageHarms, code) }

// Faults says what became of a hop under each of list, by all that was found; known are the codes of errors that the
// hop also has without a fault.
func Faults(list []*fault.Result, findings []finding.Finding, known map[string]bool, hopStart time.Time) ([]report.Fault, []finding.Finding) {
	var told []report.Fault
	var judged []finding.Finding
	for _, s := range list {
		outcome, codes := outcomeOf(s, findings, known)
		right := outcome == fault.Skipped || outcome == s.Expect || s.Expect == fault.Degraded && (outcome == fault.Survived || outcome == fault.Blocked)
		t := report.Fault{
			Name: s.Name, Phase: s.At, Seconds: observe.Seconds(s.End.Sub(s.Start)), Expected: string(s.Expect), Outcome: string(outcome),
			Codes: codes, Why: cmp.Or(s.Why, s.Note), Result: report.Passed,
		}
		if outcome != fault.Skipped {
			t.At = observe.Seconds(s.Start.Sub(hopStart))
		}
		if !right {
			t.Result = report.Failed
			judged = append(judged, wrongOutcome(s, outcome, codes))
		}
		told = append(told, t)
	}
	return told, judged
}

// outcomeOf is what became of the hop, with the codes that show it.
func outcomeOf(s *fault.Result, findings []finding.Finding, known map[string]bool) (fault.Outcome, []string) {
	if s.Why != "" {
		return fault.Skipped, nil
	}
	var lost, harmed []string
	for _, f := range findings {
		switch {
		case f.Severity == finding.Error && !known[f.Code]:
			lost = append(lost, f.Code)
		case f.Fault == s.String():
			harmed = append(harmed, f.Code)
		}
	}
	unique := func(codes []string) []string {
		slices.Sort(codes)
		return slices.Compact(codes)
	}
	switch {
	case len(lost) > 0:
		return fault.Broken, unique(lost)
	case s.Expect == fault.Blocked && s.Held:
		return fault.Blocked, unique(harmed)
	// A restart that nobody noticed is no harm.
	case slices.ContainsFunc(harmed, func(code string) bool { return slices.Contains(noticed, code) }):
		return fault.Degraded, unique(harmed)
	}
	return fault.Survived, unique(harmed)
}

// noticed are the codes of what users notice of a fault.
var noticed = []string{code.ReadOutage, code.WriteOutage, code.AdmissionOutage, code.OperandOutage, code.ConditionWorse}

// wrongOutcome is the finding that the hop came to something worse than it should.
func wrongOutcome(s *fault.Result, outcome fault.Outcome, codes []string) finding.Finding {
	if s.Expect == fault.Blocked && !s.Held {
		return code.Finding(code.FaultIgnored, "", "the fault %s should have held the upgrade up as long as it was in force, and did not: the upgrade %s", s, outcome)
	}
	f := code.Finding(code.FaultBroke, "", "under the fault %s the upgrade was %s (%s); at worst it should have been %s", s, outcome, strings.Join(codes, ", "), s.Expect)
	f.Cause = s.Doc
	return f
}
