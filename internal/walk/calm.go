package walk

import (
	"context"
	"fmt"
	"time"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// calm is a moment in which versions of what an operator takes care of stay the same.
type calm struct {
	versions    string
	began, over time.Time
	used        time.Duration // of processors, at its begin and then in it
	metered     bool
}

// calmAt begins a moment in which versions stay the same.
func (w *walk) calmAt(ctx context.Context, versions string) calm {
	c := calm{versions: versions, began: time.Now()}
	c.used, c.metered = w.Used(ctx, w.release)
	return c
}

// noteCalm notes a moment that is over, in which the operator had nothing to do.
func (w *walk) noteCalm(ctx context.Context, c calm) {
	used, metered := w.Used(ctx, w.release)
	c.over, c.used, c.metered = time.Now(), used-c.used, c.metered && metered
	w.calms = append(w.calms, c)
}

// judgeCalm judges whether r's operator comes to rest as that of the release called from, by what it did in the moments that were noted.
func (w *walk) judgeCalm(ctx context.Context, from string, r *lifecycle.Release) ([]finding.Finding, error) {
	if len(w.calms) > 0 {
		moments, err := w.momentsOf(ctx, r)
		if err != nil {
			return nil, err
		}
		w.calms, w.moments[r.Name] = nil, moments
	}
	return judge.Restless(from, r.Name, w.moments[from], w.moments[r.Name]), nil
}

// momentsOf is what r's operator did in the moments that were noted, as far as the cluster can tell.
func (w *walk) momentsOf(ctx context.Context, r *lifecycle.Release) (moments []judge.Moment, err error) {
	auditor, ok := w.Provider.(observe.Auditor)
	if !ok {
		return nil, nil
	}
	began := w.calms[0].began
	log, err := auditor.Audit(ctx, began)
	if err != nil {
		return nil, fmt.Errorf("ask what the operator wrote when there was nothing to do: %w", err)
	}
	mine := observe.Known(observe.Asker(r, w.Place.Namespace, w.Watcher.OperatorPods(), began, time.Time{}))
	for _, c := range w.calms {
		m := judge.Moment{Seconds: c.over.Sub(c.began).Seconds(), Writes: observe.CountWrites(log, mine, c.began, c.over)}
		if c.metered {
			m.Used = c.used.Seconds()
		}
		moments = append(moments, m)
	}
	return moments, nil
}
