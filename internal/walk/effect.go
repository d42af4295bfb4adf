package walk

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// compareEffects waits until all that the release called from did about the changes of n is seen again since before, though
// not for ever, and tells what is not. What no release did yet is given some time to come to rest.
func (w *walk) compareEffects(ctx context.Context, from string, r *lifecycle.Release, n nudged, before observe.Seen) ([]finding.Finding, error) {
	began, effects := time.Now(), map[string]judge.Effect{}
	var now observe.Seen
	compare := func(state func(context.Context) (observe.Seen, error)) (done bool, err error) {
		if now, err = state(ctx); err != nil {
			return false, err
		}
		done = true
		for name, field := range n.changed {
			if n.answered[name] == "" {
				continue
			}
			effects[name] = judge.EffectOf(name, field, before, now)
			if e, known := w.effects[from][name]; known && e.Change == field {
				done = done && e.Lacks(effects[name], now.Operands) == nil
			} else if done && time.Since(began) < observe.NewEffectFor {
				done, err = w.Rests(ctx, name, now.Operands)
			}
		}
		return done, err
	}
	err := w.Watcher.AtMost(ctx, judge.EffectLimit, func() (bool, error) {
		if done, err := compare(w.RecentState); !done || err != nil {
			return false, err
		}
		return compare(w.State) // what watches told may be late
	})
	return w.judgeEffects(from, r.Name, effects, now.Operands), err
}

// judgeEffects compares what the operator of the release called to did about the walk's changes, by object, with what that of
// from did, and notes it for the releases that follow. there are the operands that there are now.
func (w *walk) judgeEffects(from, to string, effects map[string]judge.Effect, there map[string]observe.Operand) []finding.Finding {
	var findings []finding.Finding
	noted := w.effects[to]
	if noted == nil {
		noted = map[string]judge.Effect{}
		w.effects[to] = noted
	}
	for _, name := range slices.Sorted(maps.Keys(effects)) {
		was, now := w.effects[from][name], effects[name]
		if missing := was.Lacks(now, there); from != to && len(missing) > 0 {
			f := code.Finding(code.DoesLess, name, "%s does less for it than %s: within %s of a change of its %s %s",
				to, from, judge.EffectLimit, now.Change, strings.Join(missing, "; "))
			f.Fix = "in each reconcile update what exists by what the spec says, not only what is missing, and write the status after it"
			if slices.ContainsFunc(w.Objects, func(o *observe.Object) bool { return o.String() == name && w.isDeprecated(o, now.Change) }) {
				f.Severity = finding.Warning
			}
			findings = append(findings, f)
		}
		noted[name] = noted[name].With(now)
	}
	return findings
}
