package upgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
)

// rollback does what an administrator can do after an upgrade from from failed: it removes what is installed and requests from
// again, and nothing after it. Definitions and objects stay. Then it asks whether from acts on the objects again and whether they say what they said
// before the hop.
func (w *walk) rollback(ctx context.Context, from *release, subject finding.Subject) (*report.Rollback, error) {
	step := w.options.Progress.Start("  back to %s", from.Name)
	back := &report.Rollback{To: from.Name, Result: report.Failed}
	started := time.Now()
	findings, err := w.tryRollback(ctx, from, started, back)
	w.grade(findings, nil)
	back.Findings = collapse(w.about(findings, subject))
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

func (w *walk) tryRollback(ctx context.Context, from *release, started time.Time, back *report.Rollback) ([]finding.Finding, error) {
	w.release = nil
	var stall *stalled
	assist, err := w.manager.Rollback(ctx, w.place, from.Name, w.options.Timeout)
	switch {
	case errors.Is(err, errTimeout):
		stall, err = &stalled{Code: codeNotChosen, After: "subscribing again", Late: true}, nil
	case err == nil:
		stall, err = w.settle(ctx, started, "", from, nil, assist)
	}
	back.Seconds = seconds(time.Since(started))
	if err != nil {
		return nil, err
	}
	if w.simulated, err = w.simulatedOf(ctx, from); err != nil {
		return nil, err
	}
	if stall != nil {
		why, _ := w.explain(ctx, from, started, stall)
		f := find(codeRollbackFailed, why.Subject.Object, "%s could not be installed again: %s", from.Name, why.Message)
		f.Cause = why.Cause
		return []finding.Finding{f}, nil
	}
	var findings []finding.Finding
	for _, o := range w.objects {
		if len(o.Views) == 0 || w.simulatedConverter(from, o.CRD) != "" {
			continue
		}
		now, found, err := w.reread(ctx, o)
		if err != nil {
			return findings, err
		}
		if len(found) == 0 {
			found = judgeReturned(o, now)
		}
		back.Objects++
		findings = append(findings, found...)
	}
	idle, err := w.judgeStatus(ctx, from)
	for _, f := range idle {
		findings = append(findings, find(codeIdleAfterRollback, f.Subject.Object, "on %s again, %s", from.Name, f.Message))
	}
	if err == nil && len(findings) == 0 {
		findings = append(findings, find(codeRolledBack, "", "%s runs again after %.1fs, and %d objects say what they said before", from.Name, back.Seconds, back.Objects))
	}
	return findings, err
}

// reread reads o again in each version in which it was read before the hop.
func (w *walk) reread(ctx context.Context, o *object) (map[string]*unstructured.Unstructured, []finding.Finding, error) {
	now := map[string]*unstructured.Unstructured{}
	for _, version := range slices.Sorted(maps.Keys(o.Views)) {
		err := retry(ctx, refused, func() error {
			view, err := o.at(w.dynamic, version).Get(ctx, o.Name, metav1.GetOptions{})
			if err == nil {
				now[version] = view
			}
			return err
		})
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			return nil, []finding.Finding{find(codeLostInRollback, o.String(), "it cannot be read as %s any more: %v", version, err)}, nil
		}
	}
	return now, nil, nil
}

// judgeReturned compares what o says in each version now with what it said before the hop, and asks whether its last write
// that was acknowledged is there.
func judgeReturned(o *object, now map[string]*unstructured.Unstructured) []finding.Finding {
	var changed []string
	for _, version := range slices.Sorted(maps.Keys(now)) {
		was, is := o.Views[version], now[version]
		if is.GetUID() != o.UID {
			return []finding.Finding{find(codeLostInRollback, o.String(), "it was deleted and made anew: its UID is another")}
		}
		if places := append(lost(content(was.Object), content(is.Object)), lost(tags(o.Author), tags(is.Object))...); len(places) > 0 {
			changed = append(changed, "as "+version+" "+places.String())
		}
	}
	if len(changed) > 0 {
		return []finding.Finding{find(codeLostInRollback, o.String(), "compared with before the upgrade: %s", strings.Join(changed, "; "))}
	}
	var findings []finding.Finding
	if o.Written {
		for _, f := range writeFindings(o, now) {
			findings = append(findings, find(codeLostInRollback, o.String(), "%s", f.Message))
		}
	}
	return findings
}
