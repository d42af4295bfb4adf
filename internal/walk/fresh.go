package walk

import (
	"context"
	"fmt"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/report"
)

// compareFresh removes the release that upgrades have led to, installs it afresh, and compares what OLM made for both.
func (w *walk) compareFresh(ctx context.Context) ([]finding.Finding, error) {
	r := w.release
	upgraded, err := w.Installed(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("look at what upgrades to %s made: %w", r.Name, err)
	}
	found, err := w.clean(ctx)
	if err != nil {
		return found, fmt.Errorf("clean up before %s is installed afresh: %w", r.Name, err)
	}
	refused, err := w.install(ctx, r, &report.Installation{})
	if refused != nil {
		found = append(found, baseFailed(r, *refused))
	}
	if err != nil || refused != nil {
		return found, err
	}
	fresh, err := w.Installed(ctx, r)
	if err != nil {
		return found, fmt.Errorf("look at what a fresh installation of %s made: %w", r.Name, err)
	}
	return append(found, judge.Unlike(r.Name, upgraded, fresh)...), nil
}
