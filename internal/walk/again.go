package walk

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

const (
	// downLimit is how long an operator of which it is not known has to tell that pods are gone, and to remove its finalizer from what has none.
	downLimit = 3 * time.Second
	// needLater is how long after an object what it needs is created.
	needLater = time.Second
	// mostDown is how long pods are held at most meanwhile.
	mostDown = 2*judge.DownLimit + judge.EffectLimit + holdLimit
)

// goesWithin is how long is waited until an object goes of whose deletion is known what came under the release before.
func goesWithin(was judge.Deletion) time.Duration {
	if was == judge.Gone {
		return judge.EffectLimit
	}
	return downLimit
}

// recreate creates for each of copies, which are gone, another object of its name, as who deletes and applies again does, and notes in created whether
// r's operator deals with it, tells that its pods are gone, and removes its finalizer while it has none. before says how long that is waited for.
func (w *walk) recreate(ctx context.Context, r *lifecycle.Release, copies []*newObject, before, created map[string]judge.New) (err error) {
	w.trying.Note("with the names of those that are gone")
	var again []*newObject
	began := time.Now()
	defer func() {
		err = errors.Join(err, w.findElsewhere(ctx, r, again, began), w.deleteAgain(ctx, again, created))
	}()
	for _, first := range copies {
		ofItsOwn := slices.ContainsFunc(first.distant, func(d distant) bool { return d.Resource == "namespaces" }) // which takes its time to go
		if !first.tried || ofItsOwn || slices.Contains(w.lingering, first.Object) {
			continue
		}
		cleared, err := w.collect(ctx, first)
		if err != nil {
			return err
		}
		if !cleared {
			continue
		}
		is := created[first.CRD]
		o, late, err := w.copyAgain(ctx, r, first)
		if o != nil {
			o.sums = first.sums
			again, is.Late = append(again, o), late
		} else {
			is.Again = &judge.Dealt{Refused: true}
		}
		created[first.CRD] = is
		if err != nil {
			return err
		}
	}
	if len(again) == 0 {
		return nil
	}
	if err := w.seeAgain(ctx, again, before, created); err != nil {
		return err
	}
	return w.tryWithoutPods(ctx, r, again, before, created)
}

// collect deletes what belonged to a copy that is gone, and reports whether none of that is left. A garbage collector that does not watch a new kind
// yet, for which it looks every 30 s (k8s.io/kubernetes v1.36.3 cmd/kube-controller-manager/app/core.go), would leave it to another of the name.
func (w *walk) collect(ctx context.Context, o *newObject) (done bool, err error) {
	err = lookUntil(ctx, newLimit, lookPause, func() (bool, error) {
		done = true
		for _, made := range o.had {
			now, err := w.operandNow(ctx, made)
			if err != nil {
				return false, err
			}
			owned := now != nil && slices.ContainsFunc(now.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == o.UID })
			if now == nil || now.GetUID() != made.UID || !owned && made.Kind != observe.KindPod {
				continue
			}
			done = false
			if owned && len(now.GetOwnerReferences()) == 1 && now.GetDeletionTimestamp() == nil && !w.deleteOperand(ctx, made) {
				return true, ctx.Err()
			}
		}
		return done, nil
	})
	return done, err
}

// deleteOperand deletes an operand, and reports whether it may.
func (w *walk) deleteOperand(ctx context.Context, made observe.Operand) bool {
	background, soon := metav1.DeletePropagationBackground, int64(1)
	options := metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: metav1.NewUIDPreconditions(string(made.UID))}
	if made.Kind == observe.KindPod {
		options.GracePeriodSeconds = &soon
	}
	err := w.Dynamic.Resource(observe.OperandResource(made.Kind)).Namespace(made.Namespace).Delete(ctx, made.Name, options)
	return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

// copyAgain creates another copy of first's name, and then what it needs, of which it returns the names of the originals. Where the API server asks for what it needs
// first, that comes first. It returns no copy where the API server refuses it for long: a webhook may not have noticed yet that first is gone.
func (w *walk) copyAgain(ctx context.Context, r *lifecycle.Release, first *newObject) (again *newObject, late []string, err error) {
	w.Others = slices.DeleteFunc(w.Others, func(o *observe.Object) bool { return o == first.Object })
	if again, err = w.copyBeforeNeeds(ctx, r, first); again != nil {
		for _, n := range again.needs {
			late = append(late, n.original())
		}
	}
	if again != nil || err != nil {
		return again, late, err
	}
	err = lookUntil(ctx, newLimit, time.Second, func() (bool, error) {
		again, err = w.copyNamed(ctx, r, first.like, first.Name)
		return again != nil, err
	})
	return again, nil, err
}

// copyBeforeNeeds creates another copy of first's name and, once its operator has had time to look at it, what it needs. It returns nil where first needs
// nothing, or the API server does not take it so.
func (w *walk) copyBeforeNeeds(ctx context.Context, r *lifecycle.Release, first *newObject) (*newObject, error) {
	if len(first.needs) == 0 {
		return nil, nil
	}
	sample := &unstructured.Unstructured{Object: first.like.Author}
	needs := w.namesakes(sample, first.Namespace)
	again, err := w.makeCopy(ctx, r, first.like, client.ObjectKey{Namespace: first.Namespace, Name: first.Name}, naming(sample, needs))
	if err != nil || again == nil {
		return nil, err
	}
	again.needs = needs
	if err := sleep(ctx, needLater); err != nil {
		return again, err
	}
	created, err := w.createNeeds(ctx, needs)
	if err == nil && !created {
		_, err = w.removeCopies(ctx, []*newObject{again})
		return nil, err
	}
	return again, err
}

// seeAgain notes in created what is done for again, until it is as much as for the copies of their names, or for long enough.
func (w *walk) seeAgain(ctx context.Context, again []*newObject, before, created map[string]judge.New) error {
	view, began := w.viewOf(objectsOf(again)...), time.Now()
	limit := w.newHealthLimit(ctx)
	if slices.ContainsFunc(again, func(o *newObject) bool { return len(created[o.CRD].Late) > 0 }) {
		limit = max(limit, judge.LateLimit)
	}
	return lookUntil(ctx, limit, lookPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		done := true
		for _, o := range again {
			is, dealt := created[o.CRD], judge.DealtWith(o.String(), operands, false)
			is.Again, is.Fresh = &dealt, apartFrom(sumsOf(o, operands), o.sums)
			created[o.CRD] = is
			if o.says, err = w.healthNow(ctx, o); err != nil {
				return false, err
			}
			if is.LacksAgain() != "" || is.Again.Ready < is.Copy.Ready {
				done = done && is.LessAgain(before[o.CRD]) == "" && time.Since(began) > newLimit
				continue
			}
			if o.ran.IsZero() {
				o.ran = time.Now()
			}
			done = done && (is.Readiness.Tells(o.says) || time.Since(o.ran) > promptly)
		}
		return done, nil
	})
}

// tryWithoutPods takes the pods of again away, of those that have some, keeps new ones off the nodes, and notes in created what r's operator does then.
func (w *walk) tryWithoutPods(ctx context.Context, r *lifecycle.Release, again []*newObject, before, created map[string]judge.New) error {
	view := w.viewOf(objectsOf(again)...)
	operands, err := view.Operands(ctx)
	if err != nil {
		return err
	}
	running := slices.DeleteFunc(slices.Clone(again), func(o *newObject) bool { return podsOf(o.String(), operands).ready == 0 })
	held, err := w.holds(ctx, r)
	known := slices.ContainsFunc(running, func(o *newObject) bool { return before[o.CRD].Down == judge.Gone })
	if err == nil && !held && known {
		held, err = w.mayHold(ctx)
	}
	if err != nil || !held || len(running) == 0 {
		return err
	}
	return w.whileHeld(ctx, mostDown, func() error {
		down, err := w.deletePods(ctx, running, operands)
		if err != nil || len(down) == 0 {
			return err
		}
		if err := w.seeDown(ctx, down, before, created); err != nil {
			return err
		}
		return w.deleteDown(ctx, down, before, created)
	})
}

// deletePods deletes the pods among operands of running, which must not get onto a node again, and returns those of running that have none any more.
func (w *walk) deletePods(ctx context.Context, running []*newObject, operands map[string]observe.Operand) (down []*newObject, err error) {
	for _, made := range operands {
		if made.Kind == observe.KindPod {
			w.deleteOperand(ctx, made) // what may not be deleted goes on running
		}
	}
	view := w.viewOf(objectsOf(running)...)
	err = lookUntil(ctx, judge.DownLimit, quickPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		down = slices.DeleteFunc(slices.Clone(running), func(o *newObject) bool { return !podsOf(o.String(), operands).held() })
		return len(down) == len(running), err
	})
	return down, err
}

// seeDown notes in created which words about their health the statuses of down, of which no pod runs any more, take back.
func (w *walk) seeDown(ctx context.Context, down []*newObject, before, created map[string]judge.New) error {
	began := time.Now()
	return lookUntil(ctx, judge.DownLimit, quickPause, func() (bool, error) {
		done := true
		for _, o := range down {
			says, err := w.healthNow(ctx, o)
			if err != nil {
				return false, err
			}
			if says == nil {
				continue
			}
			is := created[o.CRD]
			is.TakesBack = is.Readiness.TakenBack(o.says, says)
			created[o.CRD] = is
			done = done && tookBack(is.TakesBack, before[o.CRD].TakesBack, time.Since(began))
		}
		return done, nil
	})
}

// tookBack reports whether a status took back the words that taken tells of, or those that stay need not be waited for longer: the release before did not take them back, as was says, or
// it is not known to and enough time has passed.
func tookBack(taken, was map[string]bool, passed time.Duration) bool {
	for path, gone := range taken {
		did, known := was[path]
		if !gone && did || !gone && !known && passed <= downLimit {
			return false
		}
	}
	return true
}

// healthNow is what the status of a copy tells of its health; nil if it cannot be read: its operator may delete what it does not want.
func (w *walk) healthNow(ctx context.Context, o *newObject) (map[string]string, error) {
	now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ctx.Err()
	}
	return o.healthOf(now), nil
}

// deleteDown deletes down, of which no pod runs, and notes in created which are gone before any does again. Who makes pods to clean up cannot.
func (w *walk) deleteDown(ctx context.Context, down []*newObject, before, created map[string]judge.New) error {
	limit := downLimit
	for _, o := range down {
		limit = max(limit, goesWithin(before[o.CRD].Down))
	}
	stay, err := w.removeThese(ctx, objectsOf(down), limit)
	if err != nil {
		return err
	}
	for _, o := range down {
		is := created[o.CRD]
		switch made := is.Partings; {
		case !slices.Contains(stay, o.Object):
			is.Down = judge.Gone
		case !slices.Contains(made, "jobs.batch") && !slices.Contains(made, "pods"):
			is.Down = judge.Stays
		}
		created[o.CRD] = is
	}
	return nil
}

// deleteAgain deletes again and what was made for them that would stay, as what was made for the copies of their names did.
func (w *walk) deleteAgain(ctx context.Context, again []*newObject, created map[string]judge.New) error {
	if len(again) == 0 {
		return nil
	}
	view := w.viewOf(objectsOf(again)...)
	for _, o := range again {
		view.Objects = append(view.Objects, o.like)
	}
	operands, err := view.Operands(ctx)
	for _, o := range again {
		if err == nil && len(created[o.CRD].Unowned) > 0 {
			o.unowned, err = w.unownedOf(ctx, o, operands)
		}
	}
	stay, failed := w.removeCopies(ctx, again)
	err = errors.Join(err, failed)
	for _, o := range again {
		if slices.Contains(stay, o.Object) {
			continue
		}
		for _, made := range o.unowned {
			_, failed := w.leftOf(ctx, made, 0, true)
			err = errors.Join(err, failed)
		}
		for _, d := range o.distant {
			if slices.ContainsFunc(created[o.CRD].Elsewhere, func(stayed judge.Distant) bool { return stayed.Kind == d.made.GetKind() && !stayed.Gone }) {
				err = errors.Join(err, w.deleteDistant(ctx, d))
			}
		}
	}
	return err
}
