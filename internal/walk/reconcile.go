package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		case w.responds[name] && n.changed[name] != "" && w.comparable(from, name, n.changed[name]) && (judge.OfSpec(n.changed[name]) || w.effects[from][name].Any()):
			f := code.Finding(code.NotReconciled, name, "%s does not reconcile it: the operator wrote nothing for it within %s of a change to it, and the release before did", r.Name, observe.NudgeLimit+judge.EffectLimit)
			if f.Cause, err = w.idleness(ctx, r, l, n.began); err != nil {
				return nil, nil, err
			}
			findings = append(findings, f)
		default:
			unverified = append(unverified, name)
		}
	}
	drifted, err := w.judgeDrift(ctx, from, r, n.answered)
	w.verified.did("drift")
	return append(findings, drifted...), unverified, err
}

// idleness says who leads of r's operator, and what it asked the API server for since began.
func (w *walk) idleness(ctx context.Context, r *lifecycle.Release, l observe.Leadership, began time.Time) (string, error) {
	said := l.String()
	log, mine, err := w.auditOf(ctx, r, began)
	if err == nil && mine != nil {
		said = strings.TrimPrefix(said+"; since the change "+observe.Asked(log, mine), "; ")
	}
	return said, err
}

// comparable reports whether the release called from was not asked by another field of the object called name. That counts, as replicas do,
// every operator acts on.
func (w *walk) comparable(from, name, field string) bool {
	was := w.took[from][name]
	return was == "" || was == field || counts.MatchString(lastOf(was)) && counts.MatchString(lastOf(field))
}

// lastOf is the name of the field at path.
func lastOf(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// judgeInstalled judges whether r's operator, which was installed, reconciles the samples that were made since, and returns
// the names of those of which nothing shows.
func (w *walk) judgeInstalled(ctx context.Context, r *lifecycle.Release) ([]finding.Finding, []string, error) {
	shown, l, err := w.AwaitReconcile(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	findings, unverified, err := w.judgeReconciling(ctx, r, r, shown, l)
	if err != nil {
		return findings, unverified, err
	}
	exits, err := w.judgeExits(ctx, r.Name, r)
	findings = append(findings, exits...)
	if err != nil {
		return findings, unverified, err
	}
	unmet, err := w.judgeAssertions(ctx, r)
	return append(findings, unmet...), unverified, err
}

// judgeReconciling judges whether r's operator reconciles the walk's samples as that of from did, and whether it comes to rest
// then; from and r are one that was installed. shown is what it wrote by itself since it leads. What it does about a look at what was there
// it has time for while new objects are made.
func (w *walk) judgeReconciling(ctx context.Context, from, r *lifecycle.Release, shown map[string]string, l observe.Leadership) ([]finding.Finding, []string, error) {
	findings, unverified, err := w.verifyReconciled(ctx, from.Name, r, shown, l)
	if err != nil {
		return findings, unverified, err
	}
	if from == r && w.created[r.Name] != nil { // all of the following was seen before
		return findings, unverified, nil
	}
	began := time.Now()
	there, err := w.RecentOperands(ctx)
	if err != nil {
		return findings, unverified, err
	}
	look, err := w.touch(ctx, r)
	if err != nil {
		return findings, unverified, err
	}
	requests, err := w.askings(ctx, from.Name, r)
	if err != nil {
		return findings, unverified, err
	}
	var admitted, bystood, found []finding.Finding
	group, grouped := errgroup.WithContext(ctx)
	group.Go(func() (err error) { admitted, err = w.judgeAdmission(grouped, from.Name, r, requests); return err })
	group.Go(func() (err error) { bystood, err = w.judgeBystanders(grouped, from.Name, r); return err })
	group.Go(func() (err error) { found, err = w.judgeNew(grouped, from.Name, r); return err })
	err = group.Wait()
	w.verified.did("new objects")
	findings = slices.Concat(findings, judge.Untold(findings, found), admitted, bystood)
	if err != nil {
		return findings, unverified, err
	}
	found, err = w.judgeLeftAlone(ctx, from, r, look, there, began)
	w.verified.did("rest")
	findings = append(findings, found...)
	if err != nil {
		return findings, unverified, err
	}
	found, err = w.judgeMetrics(ctx, from.Name, r)
	w.verified.did("metrics")
	return append(findings, found...), unverified, err
}

// judgeLeftAlone judges what r's operator does about samples that nobody changed since began, and had it look at: whether it comes to rest, goes on with what it does from time to time, and leaves
// what samples name, and nodes, as the release called from did.
func (w *walk) judgeLeftAlone(ctx context.Context, from, r *lifecycle.Release, look *touched, there map[string]observe.Operand, began time.Time) ([]finding.Finding, error) {
	findings, err := w.judgeHotLoop(ctx, from, r, look)
	if err != nil {
		return findings, err
	}
	found, err := w.judgeCalm(ctx, from.Name, r)
	if worst, any := finding.Worst(findings); !any || worst != finding.Error { // else it is the same by another sign
		findings = append(findings, found...)
	}
	for _, judged := range []func() ([]finding.Finding, error){
		func() ([]finding.Finding, error) { return w.judgeRivals(ctx, from.Name, r, there) },
		func() ([]finding.Finding, error) { return w.judgeRuns(ctx, from.Name, r, began) },
		func() ([]finding.Finding, error) { return w.judgeGiven(ctx, from.Name, r) },
		func() ([]finding.Finding, error) { return w.judgeNodes(ctx, from.Name, r) },
	} {
		if err != nil {
			break
		}
		found, err = judged()
		findings = append(findings, found...)
	}
	return findings, err
}

// nudged is what came of changing objects a little.
type nudged struct {
	changed  map[string]string // the fields that the API server let change, by object
	answered map[string]string // what the operator wrote then, by object
	again    []repeated        // how each is changed once more
	began    time.Time
	findings []finding.Finding // about what the release before did and this one does not
}

// repeated is an object that was changed, and what changes it in the same way.
type repeated struct {
	*observe.Object
	change func(context.Context) error
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
	n.began = time.Now()
	var undo undo.Stack
	var refused []finding.Finding
	patience := newLimit
	defer func() { err = errors.Join(err, undo.Run(ctx, w.undoLimit(ctx))) }()
	for _, o := range objects {
		c := w.change(ctx, from, r, o, patience)
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
		if f := w.judgeRefused(from, r, o, c); f != nil {
			refused, patience = append(refused, *f), 0
		}
		if c.err != nil {
			continue
		}
		n.changed[o.String()] = c.field
		n.again = append(n.again, repeated{o, c.again})
		undo.Push(func(undoing context.Context) error {
			err := c.back(undoing)
			switch {
			case err == nil:
				return nil
			case ctx.Err() != nil || !w.answers(ctx):
				return fmt.Errorf("take the walk's change of %s back: %w", o, err)
			}
			n.findings = append(n.findings, code.Finding(code.OutageStays, o.String(), "the walk's change of %s cannot be taken back: %v", c.field, err))
			return nil
		})
	}
	if w.took[r.Name] == nil {
		w.took[r.Name] = map[string]string{}
	}
	maps.Copy(w.took[r.Name], n.changed)
	if err = w.awaitAnswers(ctx, r, &n, before.Snapshot); err != nil {
		return n, err
	}
	if len(n.unanswered()) == 0 {
		w.acted = time.Since(n.began)
	}
	less, err := w.compareEffects(ctx, from, r, n, before)
	n.findings = slices.Concat(refused, less)
	if err != nil {
		return n, err
	}
	err = w.takeBack(ctx, r, n, &undo, before)
	return n, err
}

// unknownLimit is how long an operator has to write something for an object of which it is not known that it does, unless it is at work.
const unknownLimit = 5 * time.Second

// awaitAnswers waits until r's operator wrote something for each of the objects that n changed: longer for those of which it is known that operators do, since the machine may be slow.
func (w *walk) awaitAnswers(ctx context.Context, r *lifecycle.Release, n *nudged, before observe.Snapshot) (err error) {
	responds := func(name string) bool { return w.responds[name] }
	silent := w.silence(ctx)
	ended := func(late []string) bool {
		return silent() && time.Since(n.began) > unknownLimit && !slices.ContainsFunc(late, responds)
	}
	if n.answered, err = w.AwaitActed(ctx, r, n.began, before, slices.Sorted(maps.Keys(n.changed)), observe.NudgeLimit, ended); err != nil {
		return err
	}
	if late := slices.DeleteFunc(n.unanswered(), func(name string) bool { return !responds(name) }); len(late) > 0 {
		n.answered, err = w.AwaitActed(ctx, r, n.began, before, late, judge.EffectLimit, nil)
	}
	return err
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
// ready as they were at first.
func (w *walk) takeBack(ctx context.Context, r *lifecycle.Release, n nudged, undo *undo.Stack, first observe.Seen) error {
	began := time.Now()
	before, err := w.State(ctx)
	if err != nil {
		return err
	}
	if err := undo.Run(ctx, w.undoLimit(ctx)); err != nil {
		return err
	}
	answered := slices.DeleteFunc(slices.Sorted(maps.Keys(n.changed)), func(name string) bool { return n.answered[name] == "" })
	if _, err = w.AwaitActed(ctx, r, began, before.Snapshot, answered, observe.NudgeLimit, nil); err != nil {
		return err
	}
	if _, err = w.awaitOperands(ctx, first.Operands); err != nil {
		return err
	}
	err = w.leaveScaled(ctx, r, n, first)
	w.takenBack = time.Now() // until then it may say that it cannot make less of what is there
	return err
}

// leaveScaled changes those of n's objects once more whose operator left what it made as large as the change had it, as where a cluster may only grow: an operator may
// do nothing at all for an object that asks for less than there is.
func (w *walk) leaveScaled(ctx context.Context, r *lifecycle.Release, n nudged, first observe.Seen) error {
	var scaled []repeated
	err := w.Watcher.AtMost(ctx, max(observe.NewEffectFor, 2*w.acted), func() (bool, error) {
		now, err := w.RecentState(ctx)
		scaled = slices.DeleteFunc(slices.Clone(n.again), func(o repeated) bool {
			return n.answered[o.String()] == "" || judge.EffectOf(o.String(), n.changed[o.String()], first, now).Scaled <= 0
		})
		return len(scaled) == 0, err
	})
	for i := 0; i < len(scaled) && err == nil; i++ {
		err = w.repeat(ctx, r, scaled[i])
	}
	return err
}

// repeat changes o once more, takes that for what its author wrote, and waits until r's operator acted on it.
func (w *walk) repeat(ctx context.Context, r *lifecycle.Release, o repeated) error {
	before, err := w.State(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := o.change(ctx); err != nil {
		return fmt.Errorf("change %s once more, because its operator does not take back what it made of the change: %w", o, err)
	}
	if err := w.adopt(ctx, o.Object); err != nil {
		return err
	}
	_, err = w.AwaitActed(ctx, r, began, before.Snapshot, []string{o.String()}, observe.NudgeLimit, nil)
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

// changed is a change of an object that the API server took, or the reason why there is none.
type changed struct {
	field   string                      // the path of what was changed
	again   func(context.Context) error // makes the same change
	back    func(context.Context) error // takes it back
	refused map[string]error            // by field, why the API server takes no change of it
	err     error
}

// change makes the first harmless change of o that the API server takes. What it took a change of under the release called from it has
// patience to take: a webhook may wait for an operator that is busy.
func (w *walk) change(ctx context.Context, from string, r *lifecycle.Release, o *observe.Object, patience time.Duration) changed {
	version := o.Version
	if !w.IsServed(o.CRD, version) {
		version = w.Watcher.Definitions()[o.CRD].Storage
	}
	resource := o.At(w.Dynamic, version)
	patch := func(ctx context.Context, data []byte, dryRun ...string) error {
		return mergePatch(ctx, resource, o.Name, data, dryRun...)
	}
	var c changed
	var chosen *step
	before := w.took[from][o.String()]
	c.err = lookUntil(ctx, patience, lookPause, func() (bool, error) {
		now, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		// What is compared is what comes of the same change.
		same, others := partition(harmless(definition.Schema(r.CRD(o.CRD), version), now.Object), func(path string) bool { return path == before && judge.OfSpec(path) })
		chosen, c.refused = firstTaken(slices.Concat(same, others), func(data []byte) error { return patch(ctx, data, metav1.DryRunAll) })
		return !observe.Denied(c.refused[before]), nil
	})
	if c.err != nil {
		return c
	}
	if chosen == nil {
		c.err = fmt.Errorf("the API server takes no change of %s", o)
		return c
	}
	if c.err = patch(ctx, chosen.There); c.err != nil {
		return c
	}
	c.field = chosen.Path
	c.again = func(ctx context.Context) error { return patch(ctx, chosen.There) }
	c.back = func(ctx context.Context) error {
		err := observe.Retry(ctx, final, func() error { return patch(ctx, chosen.Back) })
		switch {
		case err == nil || apierrors.IsNotFound(err):
			return nil
		case observe.Refused(err):
			return w.adopt(ctx, o)
		}
		return err
	}
	return c
}

// firstTaken returns the first of steps that take takes, nil for none, and why each field before it may not be changed.
func firstTaken(steps []step, take func(data []byte) error) (*step, map[string]error) {
	refused := map[string]error{}
	for i, s := range steps {
		err := take(s.There)
		if err == nil {
			delete(refused, s.Path)
			return &steps[i], refused
		}
		refused[s.Path] = err
	}
	return nil, refused
}

// judgeRefused tells that the API server takes no change of o any more of the field that it took one of under the release called from, or
// returns nil. Where it takes a change of another field, or nobody acted on the change before, it may refuse what never worked.
func (w *walk) judgeRefused(from string, r *lifecycle.Release, o *observe.Object, c changed) *finding.Finding {
	before := w.took[from][o.String()]
	err := c.refused[before]
	if from == r.Name || !observe.Denied(err) {
		return nil
	}
	f := code.Finding(code.ChangeRefused, o.String(), "%s refuses each change of its %s that was tried, and %s took one: %v", r.Name, before, from, err)
	acted := w.effects[from][o.String()].Change == before
	if judge.OfSpec(c.field) || c.field != "" && !acted {
		f.Severity = finding.Warning
	}
	return &f
}
