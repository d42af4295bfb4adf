package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// cleanup uninstalls the package from a cluster that stays, however the walk ended, and removes what OLM leaves of it. What the
// walk itself made it leaves to who finds that by its label.
func (w *walk) cleanup(ctx context.Context) error {
	if w.Provider.Disposable() || len(w.CRDs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.options.Timeout)
	defer cancel()
	_, err := w.tryClean(ctx)
	return err
}

// clean removes all that the walk brought, so that the next installation finds a cluster without a trace of the package.
func (w *walk) clean(ctx context.Context) ([]finding.Finding, error) {
	if w.Watcher == nil {
		return nil, nil
	}
	step := w.options.Progress.Start("  uninstall")
	found, err := w.tryClean(ctx)
	return found, step.End(err)
}

// deletionLimit is how long the operator has to remove its finalizers from an object that was deleted.
const deletionLimit = 30 * time.Second

// collectionLimit is how long the garbage collector has for what was made for objects that are gone.
const collectionLimit = 15 * time.Second

func (w *walk) tryClean(ctx context.Context) ([]finding.Finding, error) {
	var findings []finding.Finding
	finalizers := deletionLimit
	if w.release == nil || !w.OperatorRuns(w.release) {
		finalizers = 0
	}
	made, unread := w.Operands(ctx)
	owing, err := w.owing(ctx)
	if err != nil {
		return nil, err
	}
	stay, err := w.remove(ctx, finalizers)
	if err != nil {
		return nil, err
	}
	uncollected := w.Collect(ctx, withoutThose(made, stay), collectionLimit)
	if err := w.noteLastCalls(ctx); err != nil {
		return nil, err
	}
	if finalizers > 0 {
		if findings, err = w.judgeOwed(ctx, owing, stay); err != nil {
			return nil, err
		}
		findings = append(findings, w.notGone(ctx, stay)...)
	}
	err = w.Manager.Uninstall(ctx, w.Place, w.CRDs, w.options.Timeout)
	found, remains := w.deleteRemains(ctx, made)
	findings = append(findings, found...)
	if ctx.Err() != nil {
		return findings, ctx.Err()
	}
	if err := errors.Join(unread, uncollected, err, remains); err != nil {
		return findings, err
	}
	orphans, err := w.deleteLeftovers(ctx)
	for _, name := range orphans {
		if !w.survived[name] {
			w.survived[name] = true
			findings = append(findings, code.Finding(code.Orphans, name, "it is still there after %s was uninstalled", w.pkg.Name))
		}
	}
	if err != nil {
		return findings, err
	}
	w.release, w.populated, w.CRDs, w.Simulated = nil, nil, nil, nil
	return findings, nil
}

// deleteRemains removes what neither the manager nor the garbage collector does, once the package is uninstalled: the operator's lock, what
// it made for itself, and what it had made for objects that were there until their definition went.
func (w *walk) deleteRemains(ctx context.Context, made map[string]observe.Operand) ([]finding.Finding, error) {
	lock := w.Free(ctx, slices.Collect(maps.Values(w.releases)), deletionLimit)
	findings, err := w.deleteCreations(ctx)
	return findings, errors.Join(lock, err, w.Collect(ctx, made, 0))
}

// deleteCreations removes from a cluster that goes with the walk what the operators of uninstalled releases made for themselves and left,
// which the next installation would meet, and tells what of it does harm on clusters that stay.
func (w *walk) deleteCreations(ctx context.Context) ([]finding.Finding, error) {
	creations, err := w.creations(ctx)
	if err != nil {
		return nil, err
	}
	calling, err := w.DeleteCreations(ctx, creations)
	var findings []finding.Finding
	for _, name := range calling {
		if !w.survived[name] {
			w.survived[name] = true
			findings = append(findings, code.Finding(code.WebhookLeft, name, "the operator made it, and it was still there after %s was uninstalled: the API server "+
				"goes on asking the operator, and refuses requests because it gets no answer", w.pkg.Name))
		}
	}
	return findings, err
}

// creations are what the operators of the walk's releases made since the package was last installed where nothing of it stood. Nothing is known without an audit log, or on a cluster that
// stays.
func (w *walk) creations(ctx context.Context) ([]observe.Creation, error) {
	auditor, ok := w.Provider.(observe.Auditor)
	if !ok || !w.Provider.Disposable() {
		return nil, nil
	}
	log, err := auditor.Audit(ctx, w.freshSince)
	if err != nil {
		return nil, fmt.Errorf("ask what the operator made: %w", err)
	}
	return observe.Creations(log, observe.AnyAsker(slices.Collect(maps.Values(w.releases)), w.Place.Namespace)), nil
}

// withoutThose returns the operands that were not made for one of objects.
func withoutThose(operands map[string]observe.Operand, objects []*observe.Object) map[string]observe.Operand {
	rest := maps.Clone(operands)
	maps.DeleteFunc(rest, func(_ string, o observe.Operand) bool {
		return slices.ContainsFunc(objects, func(of *observe.Object) bool { return of.String() == o.Of })
	})
	return rest
}

// deleteLeftovers removes what the manager leaves of uninstalled releases, and says what that was.
func (w *walk) deleteLeftovers(ctx context.Context) ([]string, error) {
	var shipped []string
	for _, r := range w.releases {
		shipped = append(shipped, r.Shipped...)
	}
	return w.Manager.DeleteOrphans(ctx, w.Place, shipped)
}
