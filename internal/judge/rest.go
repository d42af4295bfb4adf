package judge

import (
	"slices"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// Moment is what an operator did in a moment in which nothing changed that it takes care of.
type Moment struct {
	Seconds float64
	Writes  int     // requests to create, change or delete something, none of which changed anything
	Used    float64 // seconds of a processor
}

// What an operator does at rest counts from as many moments on, and is a hot loop from as many writes or processors in each second on, if the
// release before had by so many times less.
const (
	fewMoments = 4
	hotWrites  = 5
	hotUse     = 0.15
	hotter     = 5
)

// Restless tells that the operator of the release called to does not come to rest when there is nothing to do, and that of from did.
func Restless(from, to string, was, is []Moment) []finding.Finding {
	if len(was) < fewMoments || len(is) < fewMoments {
		return nil
	}
	writes := func(m Moment) float64 { return float64(m.Writes) / m.Seconds }
	use := func(m Moment) float64 { return m.Used / m.Seconds }
	tell := func(did string, before, now float64) []finding.Finding {
		f := code.Finding(code.HotLoop, "", "reconcile hot loop: in moments in which nothing changed and there was nothing to do, the operator of %s "+did+", and that of %s %.2g",
			to, now, from, before)
		f.Severity = finding.Error
		return []finding.Finding{f}
	}
	if before, now := median(was, writes), median(is, writes); now >= hotWrites && now >= hotter*before {
		return tell("wrote what is there already %.2g times a second", before, now)
	}
	if before, now := median(was, use), median(is, use); now >= hotUse && now >= hotter*before {
		return tell("used %.2g of a processor", before, now)
	}
	return nil
}

// median is what half of moments have less of.
func median(moments []Moment, of func(Moment) float64) float64 {
	var values []float64
	for _, m := range moments {
		values = append(values, of(m))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
