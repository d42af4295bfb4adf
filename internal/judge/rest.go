package judge

import (
	"cmp"
	"slices"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// Work is what an operator did in a time.
type Work struct {
	Seconds float64
	Writes  int     // requests to make something or to have it otherwise
	Used    float64 // seconds of a processor
	Metered bool    // Used is known
}

func (w Work) writes() float64 { return float64(w.Writes) / w.Seconds }
func (w Work) use() float64    { return w.Used / w.Seconds }

// Hot reports whether an operator that does so much all the time is in a hot loop.
func (w Work) Hot() bool { return w.writes() >= hotWrites || w.Metered && w.use() >= hotUse }

// An operator that has nothing to do is suspected in as many moments or more of a hot loop, and has one if it goes on with as many writes or
// processors in each second, and the operator of the release before did so many times less even as long as there was something to do.
const (
	fewMoments = 4
	hotWrites  = 5
	hotUse     = 0.15
	hotter     = 3
)

// Suspected reports whether an operator was at work in most moments in which there was nothing to do: it may have had something left to do, or look
// around now and then.
func Suspected(moments []Work) bool {
	hot := slices.DeleteFunc(slices.Clone(moments), func(m Work) bool { return !m.Hot() })
	return Enough(moments) && 2*len(hot) > len(moments)
}

// Enough reports whether there are as many moments as tell what an operator usually does.
func Enough(moments []Work) bool { return len(moments) >= fewMoments }

// Restless tells that the operator of the release called to goes on working in each part of a time in which there is nothing to do. was is what the
// operator of from did while there was.
func Restless(from, to string, was Work, parts []Work) []finding.Finding {
	if was.Seconds == 0 || len(parts) == 0 {
		return nil
	}
	tell := func(did, number string, of func(Work) float64, least float64) []finding.Finding {
		lowest := of(slices.MinFunc(parts, func(a, b Work) int { return cmp.Compare(of(a), of(b)) }))
		if lowest < least || lowest < hotter*of(was) {
			return nil
		}
		f := code.Finding(code.HotLoop, "", "reconcile hot loop: though there is nothing to do, the operator of %s goes on "+did+", with "+number+" a second; that of %s had "+number+" while it had work",
			to, lowest, from, of(was))
		f.Severity = finding.Error
		return []finding.Finding{f}
	}
	if found := tell("writing", "%.0f requests", Work.writes, hotWrites); found != nil {
		return found
	}
	if !was.Metered || slices.ContainsFunc(parts, func(part Work) bool { return !part.Metered }) {
		return nil
	}
	return tell("using a processor", "%.2f s", Work.use, hotUse)
}
