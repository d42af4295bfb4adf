package upgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
)

// rollback does what an administrator can do after an upgrade from from failed: it takes the Subscription and the
// ClusterServiceVersions away and subscribes to from again, with approval by hand, so that OLM does not upgrade at once.
// Definitions and objects stay. Then it asks whether from acts on the objects again and whether they say what they said
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
	stall, err := w.resubscribe(ctx, from, started.Add(w.options.Timeout))
	if err == nil && stall == nil {
		// OLM may make a second InstallPlan for from before it has noticed what the first brought.
		stall, err = w.settle(ctx, started, "", from, nil, func() error {
			_, err := w.olm.Approve(ctx, w.namespace, from.Name)
			return err
		})
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
		if len(o.Views) == 0 || w.simulatedWebhook(from, v1alpha1.ConversionWebhook, o.CRD) != "" {
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

// resubscribe removes what is installed, subscribes to r and approves the InstallPlan that brings it. It returns a stalled if
// none comes until deadline.
//
// It was seen that OLM takes the new Subscription for the one of its name that was there before: its status then names the
// release that failed, and OLM waits for that for ever. Then all of it is done again, as whoever sees that does.
func (w *walk) resubscribe(ctx context.Context, r *release, deadline time.Time) (*stalled, error) {
	again := w.subscription()
	again.StartingCSV, again.Approval = r.Name, v1alpha1.ApprovalManual
	for {
		if err := w.olm.DeleteSubscription(ctx, w.namespace, w.pkg.Name, w.options.Timeout); err != nil {
			return nil, err
		}
		if err := w.olm.Subscribe(ctx, again); err != nil {
			return nil, err
		}
		approved := false
		err := w.watcher.until(ctx, time.Until(deadline), func() (_ bool, err error) {
			if approved, err = w.olm.Approve(ctx, w.namespace, r.Name); approved || err != nil {
				return true, err
			}
			var s v1alpha1.Subscription
			if err := w.olm.Get(ctx, client.ObjectKey{Namespace: again.Namespace, Name: again.Package}, &s); err != nil {
				return false, fmt.Errorf("read Subscription %s/%s: %w", again.Namespace, again.Package, err)
			}
			return s.Status.CurrentCSV != "" && s.Status.CurrentCSV != r.Name, nil
		})
		switch {
		case errors.Is(err, errTimeout):
			return &stalled{Code: codeNotChosen, After: "subscribing again", Late: true}, nil
		case err != nil || approved:
			return nil, err
		}
	}
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
			changed = append(changed, "as "+version+" "+strings.Join(places, "; "))
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
