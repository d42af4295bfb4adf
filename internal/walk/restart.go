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

const (
	// startedFor is how long an operator that was started again, and that leads, has to look at all objects; less where it surely does nothing any more.
	startedFor = 2 * time.Second
	// revertLimit is how long what it changes then may stay, before it is told.
	revertLimit = 3 * time.Second
	// restLimit is how long what goes on before is waited for.
	restLimit = 6 * time.Second
)

// judgeRestart starts the operator of r, which the plan ends with, again, and tells what that changes, though nobody asks for anything. l is how it was elected in the hop. Only
// on a cluster that goes with the walk.
func (w *walk) judgeRestart(ctx context.Context, from string, r *lifecycle.Release, l observe.Leadership) ([]finding.Finding, error) {
	if w.options.Restore != nil || !w.lastHop || !w.Provider.Disposable() || !w.OperatorRuns(r) {
		return nil, nil
	}
	defer w.verified.did("restart")
	before, said, err := w.atRest(ctx)
	if err != nil {
		return nil, err
	}
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
		changed = judge.Restart(r.Name, before, after, said, w.statusesNow(ctx, w.Untouched()), w.runs[from])
		return len(changed) == 0, err
	})
	return append(findings, changed...), err
}

// atRest waits until what was made for samples is ready, or does not become so for a while, and nobody changes that or what these say in their status, restLimit at most, and returns both.
func (w *walk) atRest(ctx context.Context) (operands map[string]observe.Operand, says map[string]map[string]any, err error) {
	same, long := sameFor(idleFor), sameFor(mostIdle)
	err = lookUntil(ctx, restLimit, lookPause, func() (bool, error) {
		if operands, err = w.RecentOperands(ctx); err != nil {
			return false, err
		}
		says = w.statusesNow(ctx, w.Untouched())
		now := census(operands) + fmt.Sprint(says)
		rests, stays := same(now), long(now)
		return stays || rests && observe.AllReady(operands), nil
	})
	if err == nil {
		operands, err = w.Operands(ctx)
	}
	return operands, says, err
}

// statusesNow are what objects say in their status, by name. What cannot be read says nothing.
func (w *walk) statusesNow(ctx context.Context, objects []*observe.Object) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, o := range objects {
		all[o.String()], _ = w.statusOf(ctx, o) // whoever asks next meets the error
	}
	return all
}
