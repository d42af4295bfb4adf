package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/undo"
)

// verifyReconciled asks of every sample whether r's operator reconciles it: by what it wrote by itself, or else by what it
// does when the sample is changed a little and changed back, which is compared with what the release called from did then. It
// returns findings about those that another release acted on and r does not, or does less, and the names of those of which
// nothing shows either way. Samples that r was asked about before are left alone when others have come.
func (w *walk) verifyReconciled(ctx context.Context, from string, r *lifecycle.Release, shown map[string]string, l observe.Leadership) ([]finding.Finding, []string, error) {
	if !w.OperatorRuns(r) {
		return nil, nil, nil
	}
	var ask []*observe.Object
	for _, o := range w.Untouched() {
		asked := from == r.Name && w.asked[o.UID] == r.Name
		if r.CRD(o.CRD) != nil && w.SimulatedConverter(r, o.CRD) == "" && !asked {
			ask, w.asked[o.UID] = append(ask, o), r.Name
		}
	}
	n, err := w.nudge(ctx, from, r, ask)
	if err != nil {
		return nil, nil, err
	}
	w.verified.did("changes")
	findings := n.findings
	var unverified []string
	for _, o := range ask {
		name := o.String()
		switch {
		case n.answered[name] != "":
			w.responds[name] = true
		// An annotation may be what a new release ignores on purpose.
		case shown[name] != "" && (!w.responds[name] || !judge.OfSpec(n.changed[name])):
		case w.responds[name] && n.changed[name] != "":
			f := code.Finding(code.NotReconciled, name, "%s does not reconcile it: the operator wrote nothing for it within %s of a change to it, and the release before did", r.Name, observe.NudgeLimit)
			f.Cause = l.String()
			findings = append(findings, f)
		default:
			unverified = append(unverified, name)
		}
	}
	drifted, err := w.judgeDrift(ctx, from, r, n.answered)
	w.verified.did("drift")
	return append(findings, drifted...), unverified, err
}

// judgeInstalled judges whether r's operator, which was installed, reconciles the samples that were made since, and returns
// the names of those of which nothing shows.
func (w *walk) judgeInstalled(ctx context.Context, r *lifecycle.Release) ([]finding.Finding, []string, error) {
	shown, l, err := w.AwaitReconcile(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	findings, unverified, err := w.verifyReconciled(ctx, r.Name, r, shown, l)
	if err != nil {
		return findings, unverified, err
	}
	if _, err := w.judgeNew(ctx, r.Name, r); err != nil {
		return findings, unverified, err
	}
	w.verified.did("new objects")
	exits, err := w.judgeExits(ctx, r.Name, r)
	findings = append(findings, exits...)
	if err != nil {
		return findings, unverified, err
	}
	unmet, err := w.judgeAssertions(ctx, r)
	return append(findings, unmet...), unverified, err
}

// judgeReconciling judges whether r's operator reconciles the walk's samples as that of from did, and whether it comes to rest
// then. shown is what it wrote by itself since it leads. What it does about a look at what was there it has time for while new objects
// are made.
func (w *walk) judgeReconciling(ctx context.Context, from, r *lifecycle.Release, shown map[string]string, l observe.Leadership) ([]finding.Finding, []string, error) {
	findings, unverified, err := w.verifyReconciled(ctx, from.Name, r, shown, l)
	if err != nil {
		return findings, unverified, err
	}
	look, err := w.touch(ctx, r)
	if err != nil {
		return findings, unverified, err
	}
	found, err := w.judgeNew(ctx, from.Name, r)
	w.verified.did("new objects")
	findings = append(findings, judge.Untold(findings, found)...)
	if err != nil {
		return findings, unverified, err
	}
	found, err = w.judgeHotLoop(ctx, r, look)
	w.verified.did("rest")
	return append(findings, found...), unverified, err
}

// nudged is what came of changing objects a little.
type nudged struct {
	changed  map[string]string // the fields that the API server let change, by object
	answered map[string]string // what the operator wrote then, by object
	findings []finding.Finding // about what the release before did and this one does not
}

// unanswered are the names of the changed objects for which the operator wrote nothing.
func (n nudged) unanswered() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(n.changed)), func(name string) bool { return n.answered[name] != "" })
}

// nudge changes each of objects a little, waits until r's operator acts on it as that of the release called from did, and
// changes it back.
func (w *walk) nudge(ctx context.Context, from string, r *lifecycle.Release, objects []*observe.Object) (n nudged, err error) {
	n.changed = map[string]string{}
	if len(objects) == 0 {
		return n, nil
	}
	before, err := w.State(ctx)
	if err != nil {
		return n, err
	}
	began := time.Now()
	var undo undo.Stack
	defer func() { err = errors.Join(err, undo.Run(ctx, w.undoLimit(ctx))) }()
	for _, o := range objects {
		field, back, failed := w.change(ctx, r, o)
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
		if failed != nil {
			continue
		}
		n.changed[o.String()] = field
		undo.Push(func(undoing context.Context) error {
			err := back(undoing)
			switch {
			case err == nil:
				return nil
			case ctx.Err() != nil || !w.answers(ctx):
				return fmt.Errorf("take the walk's change of %s back: %w", o, err)
			}
			n.findings = append(n.findings, code.Finding(code.OutageStays, o.String(), "the walk's change of %s cannot be taken back: %v", field, err))
			return nil
		})
	}
	if n.answered, err = w.AwaitActed(ctx, r, began, before.Snapshot, slices.Sorted(maps.Keys(n.changed))); err != nil {
		return n, err
	}
	if len(n.unanswered()) == 0 {
		w.acted = time.Since(began)
	}
	if n.findings, err = w.compareEffects(ctx, from, r, n, before); err != nil {
		return n, err
	}
	err = w.takeBack(ctx, r, n, &undo, before.Operands)
	return n, err
}

// undoLimit is how long it may take in all until the walk's changes are taken back: each is tried for observe.RetryTimeout, and
// nobody waits longer who interrupted the walk.
func (w *walk) undoLimit(ctx context.Context) time.Duration {
	if ctx.Err() != nil {
		return observe.RetryTimeout
	}
	return w.options.Timeout
}

// answers reports whether the API server answers a request in which the operator has no part.
func (w *walk) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, observe.RetryTimeout)
	defer cancel()
	return w.Client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{}) == nil
}

// takeBack takes the changes of a nudge back by undo, and waits until r's operator acted on that and the operands are as
// ready as they were.
func (w *walk) takeBack(ctx context.Context, r *lifecycle.Release, n nudged, undo *undo.Stack, operands map[string]observe.Operand) error {
	began := time.Now()
	before, err := w.State(ctx)
	if err != nil {
		return err
	}
	if err := undo.Run(ctx, w.undoLimit(ctx)); err != nil {
		return err
	}
	answered := slices.DeleteFunc(slices.Sorted(maps.Keys(n.changed)), func(name string) bool { return n.answered[name] == "" })
	if _, err = w.AwaitActed(ctx, r, began, before.Snapshot, answered); err != nil {
		return err
	}
	_, err = w.awaitOperands(ctx, operands)
	return err
}

// final reports whether trying again does not help.
func final(err error) bool { return apierrors.IsNotFound(err) || observe.Refused(err) }

// adopt takes what o says now for what its author wrote: a change that the API server takes and does not let be taken back,
// as where a size may only grow.
func (w *walk) adopt(ctx context.Context, o *observe.Object) error {
	if !w.IsServed(o.CRD, o.Version) {
		return nil // nobody reads what its author wrote
	}
	now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read %s, of which the walk's change cannot be taken back: %w", o, err)
	}
	for k, v := range compare.Content(now.Object) {
		if _, authored := o.Author[k]; authored {
			o.Author[k] = v
		}
	}
	return nil
}

// change makes the first harmless change of o that the API server takes, and returns the field's path and what takes the
// change back. An object that takes none is an error.
func (w *walk) change(ctx context.Context, r *lifecycle.Release, o *observe.Object) (string, func(context.Context) error, error) {
	version := o.Version
	if !w.IsServed(o.CRD, version) {
		version = w.Watcher.Definitions()[o.CRD].Storage
	}
	resource := o.At(w.Dynamic, version)
	patch := func(ctx context.Context, data []byte, dryRun ...string) error {
		_, err := resource.Patch(ctx, o.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: "olmkit", DryRun: dryRun})
		return err
	}
	now, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return "", nil, err
	}
	for _, c := range harmless(definition.Schema(r.CRD(o.CRD), version), now.Object) {
		if patch(ctx, c.There, metav1.DryRunAll) != nil {
			continue
		}
		if err = patch(ctx, c.There); err == nil {
			return c.Path, func(ctx context.Context) error {
				err := observe.Retry(ctx, final, func() error { return patch(ctx, c.Back) })
				switch {
				case err == nil || apierrors.IsNotFound(err):
					return nil
				case observe.Refused(err):
					return w.adopt(ctx, o)
				}
				return err
			}, nil
		}
	}
	return "", nil, cmp.Or(err, fmt.Errorf("the API server takes no change of %s", o))
}
