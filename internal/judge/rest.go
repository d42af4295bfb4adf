package judge

import (
	"slices"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// Work is what an operator did in a time.
type Work struct {
	Seconds float64
	Writes  int     // requests to make something or to have it otherwise
	Used    float64 // seconds of a processor; 0 if that is not known
}

func (w Work) writes() float64 { return float64(w.Writes) / w.Seconds }
func (w Work) use() float64    { return w.Used / w.Seconds }

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
	return len(moments) >= fewMoments && (median(moments, Work.writes) >= hotWrites || median(moments, Work.use) >= hotUse)
}

// median is what half of moments have less of.
func median(moments []Work, of func(Work) float64) float64 {
	var values []float64
	for _, m := range moments {
		values = append(values, of(m))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// Restless tells that the operator of the release called to goes on working in each part of a time in which there is nothing to do. was is what the
// operator of from did while there was.
func Restless(from, to string, was Work, parts []Work) []finding.Finding {
	if was.Seconds == 0 || len(parts) == 0 {
		return nil
	}
	tell := func(did, number string, of func(Work) float64, least float64) []finding.Finding {
		lowest := of(slices.MinFunc(parts, func(a, b Work) int { return int(1000 * (of(a) - of(b))) }))
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
	return tell("using a processor", "%.2f s", Work.use, hotUse)
}
