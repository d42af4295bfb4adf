package walk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

const (
	// downLimit is how long an operator of which it is not known has to tell that pods are gone, or to let an object go that has none.
	downLimit = 3 * time.Second
	// mostDown is how long pods are held at most meanwhile.
	mostDown = 3 * judge.DownLimit
)

// liveAgain creates for each of copies, which are gone, another object of its name, as who deletes and applies again does, and sees whether r's
// operator deals with it, tells that its pods are gone, and lets it go while it has none. before says how long that is waited for.
func (w *walk) liveAgain(ctx context.Context, r *lifecycle.Release, copies []*newObject, before, created map[string]judge.New) (err error) {
	var lives []*newObject
	defer func() { err = errors.Join(err, w.endLives(ctx, lives, created)) }()
	for _, o := range copies {
		if !o.tried || slices.Contains(w.lingering, o.Object) {
			continue
		}
		if cleared, err := w.clear(ctx, o); err != nil {
			return err
		} else if !cleared {
			continue
		}
		again, err := w.copyNamed(ctx, r, o.like, o.Name)
		if err != nil {
			return err
		}
		if again != nil {
			lives = append(lives, again)
			continue
		}
		is := created[o.CRD]
		is.Again = &judge.Dealt{}
		created[o.CRD] = is
	}
	if len(lives) == 0 {
		return nil
	}
	if err := w.seeAgain(ctx, lives, before, created); err != nil {
		return err
	}
	held, err := w.holds(ctx, r)
	if err != nil || !held {
		return err
	}
	return w.whileHeld(ctx, mostDown, func() error {
		down, err := w.takeDown(ctx, lives)
		if err == nil {
			err = w.seeDown(ctx, down, before, created)
		}
		if err == nil {
			err = w.deleteDown(ctx, down, before, created)
		}
		return err
	})
}

// clear deletes what belonged to a copy that is gone, and reports whether none of that is left. A garbage collector that does not watch a new kind yet,
// for which it looks every 30 s (k8s.io/kubernetes v1.36.3 cmd/kube-controller-manager/app/core.go), would take it for that of another of its name.
func (w *walk) clear(ctx context.Context, o *newObject) (cleared bool, err error) {
	background := metav1.DeletePropagationBackground
	err = lookUntil(ctx, newLimit, lookPause, func() (bool, error) {
		cleared = true
		for _, made := range o.had {
			now, err := w.operandNow(ctx, made)
			if err != nil {
				return false, err
			}
			owned := now != nil && slices.ContainsFunc(now.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == o.UID })
			if now == nil || now.GetUID() != made.UID || !owned && made.Kind != observe.KindPod {
				continue
			}
			cleared = false
			if owned && len(now.GetOwnerReferences()) == 1 && now.GetDeletionTimestamp() == nil {
				err := w.Dynamic.Resource(observe.OperandResource(made.Kind)).Namespace(made.Namespace).Delete(ctx, made.Name, metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: metav1.NewUIDPreconditions(string(made.UID))})
				if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
					return false, fmt.Errorf("delete %s: %w", made, err)
				}
			}
		}
		return cleared, nil
	})
	return cleared, err
}

// seeAgain notes in created what is done for lives, until it is as much as for the copies of their names, or for long enough.
func (w *walk) seeAgain(ctx context.Context, lives []*newObject, before, created map[string]judge.New) error {
	view, began := w.viewOf(), time.Now()
	for _, o := range lives {
		view.Objects = append(view.Objects, o.Object)
	}
	return lookUntil(ctx, judge.HealthLimit, lookPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		done := true
		for _, o := range lives {
			well, err := view.Well(ctx, o.Object)
			if err != nil {
				return false, err
			}
			is, dealt := created[o.CRD], judge.DealtWith(o.String(), operands, well)
			is.Again = &dealt
			created[o.CRD] = is
			if o.says, err = w.healthNow(ctx, o); err != nil {
				return false, err
			}
			was := before[o.CRD]
			if len(is.LacksAgain()) > 0 {
				expected := was.Again != nil && len(was.LacksAgain()) == 0
				done = done && !expected && time.Since(began) > newLimit
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

// takeDown deletes the pods of lives, which must not get onto a node again, and returns those lives of which none runs any more.
func (w *walk) takeDown(ctx context.Context, lives []*newObject) (down []*newObject, err error) {
	view := w.viewOf()
	for _, o := range lives {
		view.Objects = append(view.Objects, o.Object)
	}
	operands, err := view.Operands(ctx)
	if err != nil {
		return nil, err
	}
	soon := int64(1)
	for _, made := range operands {
		if made.Kind != observe.KindPod || podsOf(made.Of, operands).ready == 0 {
			continue
		}
		err := w.Dynamic.Resource(observe.OperandResource(made.Kind)).Namespace(made.Namespace).Delete(ctx, made.Name, metav1.DeleteOptions{GracePeriodSeconds: &soon})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("delete %s: %w", made, err)
		}
	}
	err = lookUntil(ctx, judge.DownLimit, quickPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		down = slices.DeleteFunc(slices.Clone(lives), func(o *newObject) bool { return !podsOf(o.String(), operands).held() })
		return len(down) == len(lives), err
	})
	return down, err
}

// seeDown notes in created which words about their health the statuses of lives, of which no pod runs any more, take back.
func (w *walk) seeDown(ctx context.Context, lives []*newObject, before, created map[string]judge.New) error {
	began := time.Now()
	return lookUntil(ctx, judge.DownLimit, quickPause, func() (bool, error) {
		done := true
		for _, o := range lives {
			says, err := w.healthNow(ctx, o)
			if err != nil {
				return false, err
			}
			is := created[o.CRD]
			is.TakesBack = is.Readiness.TakenBack(o.says, says)
			created[o.CRD] = is
			for path, taken := range is.TakesBack {
				was, known := before[o.CRD].TakesBack[path]
				done = done && (taken || known && !was || !was && time.Since(began) > downLimit)
			}
		}
		return done, nil
	})
}

// healthNow is what the status of a copy tells of its health; nothing if it cannot be read: its operator may delete what it does not want.
func (w *walk) healthNow(ctx context.Context, o *newObject) (map[string]string, error) {
	now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ctx.Err()
	}
	return o.healthOf(now), nil
}

// deleteDown deletes lives, of which no pod runs, and notes in created which are gone before any does again.
func (w *walk) deleteDown(ctx context.Context, lives []*newObject, before, created map[string]judge.New) error {
	for _, o := range lives {
		limit := downLimit
		if before[o.CRD].Down == judge.Gone {
			limit = judge.DownLimit
		}
		stay, err := w.removeThese(ctx, []*observe.Object{o.Object}, limit)
		if err != nil {
			return err
		}
		is := created[o.CRD]
		is.Down = judge.Gone
		if len(stay) > 0 {
			is.Down = judge.Stays
		}
		created[o.CRD] = is
	}
	return nil
}

// endLives deletes lives and what was made for them that would stay, as what was made for the copies of their names did.
func (w *walk) endLives(ctx context.Context, lives []*newObject, created map[string]judge.New) error {
	if len(lives) == 0 {
		return nil
	}
	view, objects := w.viewOf(), make([]*observe.Object, 0, len(lives))
	for _, o := range lives {
		objects = append(objects, o.Object)
		view.Objects = append(view.Objects, o.Object, o.like)
	}
	operands, err := view.Operands(ctx)
	for _, o := range lives {
		if err == nil && len(created[o.CRD].Unowned) > 0 {
			o.unowned, err = w.unownedOf(ctx, o, operands)
		}
	}
	stay, failed := w.removeThese(ctx, objects, deletionLimit)
	w.lingering = append(w.lingering, stay...)
	err = errors.Join(err, failed)
	for _, o := range lives {
		if slices.Contains(stay, o.Object) {
			continue
		}
		err = errors.Join(err, w.deleteNeeds(ctx, o.needs))
		for _, made := range o.unowned {
			_, failed := w.leftOf(ctx, made, 0)
			err = errors.Join(err, failed)
		}
	}
	return err
}
