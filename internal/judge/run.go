package judge

import (
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// Runs is what is seen of the Jobs that an operator makes for a sample from time to time.
type Runs struct {
	Watched time.Duration // for how long they were watched
	Gap     time.Duration // how much later than the one before the last of those that are there were made, at most
	Age     time.Duration // how old the last is; as Watched if there is none
	Made    int           // how many of those that were made meanwhile are there
	Says    []string      // the paths of what the last of them says, sorted
	Asked   []string      // those of them that say what a field of the sample asks for
}

// How many times as long as before none is made, and how much longer, until that is no chance.
const (
	lateTimes = 3
	lateBy    = 15 * time.Second
)

// Late is after what time without a Job the next one surely is late.
func (r Runs) Late() time.Duration { return max(lateTimes*r.Gap, r.Gap+lateBy) }

// IsLate reports whether Jobs came from time to time in was, and the next one is late.
func (r Runs) IsLate(was Runs) bool { return was.steady() && r.Age > was.Late() }

// steady reports whether it is known that Jobs go on being made: two were, and the last not long ago.
func (r Runs) steady() bool { return r.Made > 1 && r.Gap > 0 && max(r.Gap, r.Age) < r.Watched/2 }

// RunsStop tells that the operator does not go on to make Jobs for object as before, or makes ones that say less.
func RunsStop(from, to, object string, was, is Runs) []finding.Finding {
	const fix = "work out when the next one is due from what the status or the Jobs say, not from what the process remembers"
	switch {
	case is.IsLate(was):
		return []finding.Finding{doesLess(fix, object, "%s makes no Job for it for %s; %s made one every %s", to, is.Age.Round(time.Second), from, was.Gap.Round(time.Second))}
	case !was.steady() || is.Made == 0:
		return nil
	}
	var findings []finding.Finding
	if is.Gap > was.Late() {
		f := doesLess(fix, object, "%s makes a Job for it every %s; %s made one every %s", to, is.Gap.Round(time.Second), from, was.Gap.Round(time.Second))
		f.Severity = finding.Warning // it may have had much to do
		findings = append(findings, f)
	}
	others := without(without(was.Says, is.Says), was.Asked)
	if asked := without(was.Asked, is.Says); len(asked) > 0 {
		findings = append(findings, doesLess(handOn, object, "the Jobs that %s makes for it do not say %s, for which it asks; those of %s did", to, strings.Join(asked, ", "), from))
	}
	if len(others) > 0 {
		findings = append(findings, code.Finding(code.OperandChanged, object, "the Jobs that %s makes for it do not say %s; those of %s did", to, atMost(mostFields, others), from))
	}
	return findings
}
