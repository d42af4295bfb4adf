package walk

import (
	"context"
	"time"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

const (
	// startedFor is how long an operator that was started again, and that leads, has to look at all objects; less where it surely does nothing any more.
	startedFor = 2 * time.Second
	// revertLimit is how long what it changes then may stay, before it is told.
	revertLimit = 3 * time.Second
)

// judgeRestart starts the operator of r, which the plan ends with, again, and tells what that changes, though nobody asks for anything. l is how it was elected in the hop. Only
// on a cluster that goes with the walk.
func (w *walk) judgeRestart(ctx context.Context, from string, r *lifecycle.Release, l observe.Leadership) ([]finding.Finding, error) {
	if w.options.Restore != nil || !w.lastHop || !w.Provider.Disposable() || !w.OperatorRuns(r) {
		return nil, nil
	}
	defer w.verified.did("restart")
	before, err := w.Operands(ctx)
	if err != nil {
		return nil, err
	}
	said := w.statusesNow(ctx, w.Untouched())
	back, err := w.Restart(ctx, r)
	if err != nil {
		return nil, err
	}
	findings := judge.Comeback(r.Name, from, back, l.Given)
	if !back.Back {
		return findings, nil
	}
	silent := w.silence(ctx)
	if err := lookUntil(ctx, startedFor, quickPause, func() (bool, error) { return silent(), nil }); err != nil {
		return findings, err
	}
	var changed []finding.Finding
	err = lookUntil(ctx, revertLimit, lookPause, func() (bool, error) {
		after, err := w.Operands(ctx)
		changed = judge.Restart(r.Name, before, after, said, w.statusesNow(ctx, w.Untouched()))
		return len(changed) == 0, err
	})
	return append(findings, changed...), err
}

// statusesNow are what objects say in their status, by name. What cannot be read says nothing.
func (w *walk) statusesNow(ctx context.Context, objects []*observe.Object) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, o := range objects {
		all[o.String()], _ = w.statusOf(ctx, o) // whoever asks next meets the error
	}
	return all
}
