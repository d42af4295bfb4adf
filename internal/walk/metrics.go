package walk

import (
	"context"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// judgeMetrics tells what of the metrics that the operator of the release called from reported r's does not, once that has done as much.
func (w *walk) judgeMetrics(ctx context.Context, from string, r *lifecycle.Release) (findings []finding.Finding, err error) {
	was := w.metrics[from]
	return findings, lookUntil(ctx, newLimit, lookPause, func() (bool, error) {
		is, err := w.Metrics(ctx, r, w.copyNames)
		if err != nil {
			return false, err
		}
		w.metrics[r.Name] = is
		findings = judge.Metrics(from, r.Name, was, is)
		worst, any := finding.Worst(findings)
		return !any || worst != finding.Error, nil // what is registered is there at once
	})
}
