package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
)

// rollback does what an administrator can do after an upgrade from from failed: it removes what is installed and requests from
// again, and nothing after it. Definitions and objects stay. Then it asks whether from acts on the objects again and whether they say what they said
// before the hop.
func (w *walk) rollback(ctx context.Context, from *lifecycle.Release, subject finding.Subject) (*report.Rollback, error) {
	step := w.options.Progress.Start("  back to %s", from.Name)
	back := &report.Rollback{To: from.Name, Result: report.Failed}
	started := time.Now()
	findings, err := w.tryRollback(ctx, from, started, back)
	w.grade(findings, nil)
	back.Findings = judge.Collapse(w.about(findings, subject))
	finding.Sort(back.Findings)
	if worst, any := finding.Worst(back.Findings); err == nil && (!any || worst != finding.Error) {
		back.Result = report.Passed
	}
	var shown error
	if back.Result == report.Failed {
		shown = fmt.Errorf("the rollback to %s failed", from.Name)
	}
	_ = step.End(errors.Join(err, shown)) // a failed rollback is a finding, not the walk's error
	return back, err
}

func (w *walk) tryRollback(ctx context.Context, from *lifecycle.Release, started time.Time, back *report.Rollback) ([]finding.Finding, error) {
	w.release = nil
	var stall *stalled
	assist, err := w.Manager.Rollback(ctx, w.Place, from.Name, w.options.Timeout)
	switch {
	case errors.Is(err, observe.ErrTimeout):
		stall, err = &stalled{Code: code.NotChosen, After: "subscribing again", Late: true}, nil
	case err == nil:
		stall, err = w.settle(ctx, started, "", from, nil, assist)
	}
	back.Seconds = observe.Seconds(time.Since(started))
	if err != nil {
		return nil, err
	}
	if w.Simulated, err = w.SimulatedOf(ctx, from); err != nil {
		return nil, err
	}
	if stall != nil {
		why, _ := w.explain(ctx, from, started, stall)
		f := code.Finding(code.RollbackFailed, why.Subject.Object, "%s could not be installed again: %s", from.Name, why.Message)
		f.Cause = why.Cause
		return []finding.Finding{f}, nil
	}
	var findings []finding.Finding
	for _, o := range w.Objects {
		if len(o.Views) == 0 || w.SimulatedConverter(from, o.CRD) != "" {
			continue
		}
		now, found, err := w.reread(ctx, o)
		if err != nil {
			return findings, err
		}
		if len(found) == 0 {
			found = judge.Returned(o, now)
		}
		back.Objects++
		findings = append(findings, found...)
	}
	idle, err := w.judgeStatus(ctx, from)
	for _, f := range idle {
		findings = append(findings, code.Finding(code.IdleAfterRollback, f.Subject.Object, "on %s again, %s", from.Name, f.Message))
	}
	if err == nil && len(findings) == 0 {
		findings = append(findings, code.Finding(code.RolledBack, "", "%s runs again after %.1fs, and %d objects say what they said before", from.Name, back.Seconds, back.Objects))
	}
	return findings, err
}

// reread reads o again in each version in which it was read before the hop.
func (w *walk) reread(ctx context.Context, o *observe.Object) (map[string]*unstructured.Unstructured, []finding.Finding, error) {
	now := map[string]*unstructured.Unstructured{}
	for _, version := range slices.Sorted(maps.Keys(o.Views)) {
		err := observe.Retry(ctx, observe.Refused, func() error {
			view, err := o.At(w.Dynamic, version).Get(ctx, o.Name, metav1.GetOptions{})
			if err == nil {
				now[version] = view
			}
			return err
		})
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			return nil, []finding.Finding{code.Finding(code.LostInRollback, o.String(), "it cannot be read as %s any more: %v", version, err)}, nil
		}
	}
	return now, nil, nil
}
