package judge

import (
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// Runs is what is seen of the Jobs that an operator makes for a sample from time to time.
type Runs struct {
	Watched time.Duration // for how long they were watched
	Gap     time.Duration // for how long none was made at most meanwhile
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

// Awaited reports whether Jobs came from time to time in was, and one may still come.
func (r Runs) Awaited(was Runs) bool { return was.steady() && r.Made == 0 && r.Watched <= was.Late() }

// steady reports whether it is known that Jobs go on being made: two were, and the last not long ago.
func (r Runs) steady() bool { return r.Made > 1 && r.Gap < r.Watched/2 }

// RunsStop tells that the operator does not go on to make Jobs for object as before, or makes ones that say less.
func RunsStop(from, to, object string, was, is Runs) []finding.Finding {
	switch {
	case !was.steady():
		return nil
	case is.Gap > was.Late():
		return []finding.Finding{doesLess("work out when the next one is due from what the status or the Jobs say, not from what the process remembers", object,
			"%s makes no Job for it for %s; %s made one every %s", to, is.Gap.Round(time.Second), from, was.Gap.Round(time.Second))}
	case is.Made == 0:
		return nil
	}
	var findings []finding.Finding
	asked := slices.DeleteFunc(without(was.Says, is.Says), func(path string) bool { return !slices.Contains(was.Asked, path) })
	others := slices.DeleteFunc(without(was.Says, is.Says), func(path string) bool { return slices.Contains(asked, path) })
	if len(asked) > 0 {
		findings = append(findings, doesLess(handOn, object, "the Jobs that %s makes for it do not say %s, for which it asks; those of %s did", to, strings.Join(asked, ", "), from))
	}
	if len(others) > 0 {
		findings = append(findings, code.Finding(code.OperandChanged, object, "the Jobs that %s makes for it do not say %s; those of %s did", to, some(others), from))
	}
	return findings
}
