package walk

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// namedBy are the samples of r's other kinds that a sample names in its spec, in its namespace or of the cluster's scope, each name of a kind once.
func (w *walk) namedBy(r *lifecycle.Release, sample *observe.Object) (named []*observe.Object) {
	for _, o := range w.Untouched() {
		known := slices.ContainsFunc(named, func(other *observe.Object) bool { return other.CRD == o.CRD && other.Name == o.Name })
		near := o.Namespace == "" || sample.Namespace == "" || o.Namespace == sample.Namespace
		if o.CRD != sample.CRD && r.CRD(o.CRD) != nil && near && !known && names(sample.Author["spec"], o.Kind, o.Name) {
			named = append(named, o)
		}
	}
	return named
}

// earlyToo is the variant of a copy that is created before what it names, if it names any.
func (w *walk) earlyToo(r *lifecycle.Release, first *newObject) []variant {
	named := w.namedBy(r, first.like)
	if len(named) == 0 {
		return nil
	}
	var names []string
	for _, o := range named {
		names = append(names, o.Kind+" "+o.Name)
	}
	return []variant{{name: judge.Early + strings.Join(names, ", "), like: first.like, named: named}}
}

// laterNeeds are copies of samples under other names, which are created after what names them.
func (w *walk) laterNeeds(named []*observe.Object) (needs []need) {
	for _, o := range named {
		w.copied++
		needs = append(needs, needLike(o, fmt.Sprintf("%s-new%d", shortened(o.Name), w.copied)))
	}
	return needs
}

// needLike is a copy of a sample called name, as what others need.
func needLike(sample *observe.Object, name string) need {
	other := (&unstructured.Unstructured{Object: sample.Author}).DeepCopy()
	other.SetName(name)
	return need{Unstructured: other, of: sample.Name, like: sample}
}

// createNamed creates what those of all name that are there before it, once their operator has had time to look at them, and returns all without those that name what the API server
// refuses.
func (w *walk) createNamed(ctx context.Context, r *lifecycle.Release, all []*newObject) (taken []*newObject, err error) {
	early := func(o *newObject) bool {
		return slices.ContainsFunc(o.needs, func(n need) bool { return n.like != nil })
	}
	if slices.ContainsFunc(all, early) {
		err = sleep(ctx, needLater)
	}
	for _, o := range all {
		created := false
		if err == nil {
			created, err = w.createLater(ctx, r, o)
		}
		if err == nil && !created {
			_, err = w.removeCopies(ctx, []*newObject{o})
			continue
		}
		taken = append(taken, o)
	}
	return taken, err
}

// createLater creates what o names and was there before, and reports whether the API server takes all of it.
func (w *walk) createLater(ctx context.Context, r *lifecycle.Release, o *newObject) (bool, error) {
	for _, n := range o.needs {
		if n.like == nil {
			continue
		}
		made, err := w.makeCopy(ctx, r, n.like, client.ObjectKeyFromObject(n), n.Unstructured)
		if err != nil || made == nil {
			return false, err
		}
		o.later = append(o.later, made.Object)
	}
	return true, nil
}

// deleteAllNamed deletes what variants name.
func (w *walk) deleteAllNamed(ctx context.Context, all []*newObject) error {
	var named []*observe.Object
	for _, o := range all {
		named = append(named, o.later...)
	}
	stay, err := w.removeThese(ctx, named, deletionLimit)
	w.lingering = append(w.lingering, stay...)
	return err
}

// deleteNamed deletes what a variant names and then the variant, and notes in created whether its status goes on to say that it is well, and whether it goes. Nothing is known where
// what it names stays for it. What it names is made anew where it does not go.
func (w *walk) deleteNamed(ctx context.Context, r *lifecycle.Release, o *newObject, was judge.New, created map[string]judge.New) error {
	limit, is := goesWithin(was.Deserted), created[o.key()]
	said, err := w.healthNow(ctx, o)
	if err != nil {
		return err
	}
	stay, err := w.removeThese(ctx, o.later, limit)
	if err != nil || len(stay) > 0 {
		return err
	}
	if is.Bereft, err = w.seeBereft(ctx, o, said, was.Bereft); err == nil {
		err = w.awaitIdle(ctx, o)
	}
	if err != nil {
		return err
	}
	is.Deserted, err = w.deleteAlone(ctx, o, limit)
	created[o.key()] = is
	if err == nil && is.Deserted == judge.Stays { // and would for ever
		err = w.letGo(ctx, r, o)
	}
	return err
}

// letGo gives a variant that is deleted and stays back what it names, and has its operator look at it now and then, for a while, until it goes: who tries again later and later would come
// too late.
func (w *walk) letGo(ctx context.Context, r *lifecycle.Release, o *newObject) error {
	if created, err := w.createLater(ctx, r, o); err != nil || !created {
		return err
	}
	resource, looks := o.At(w.Dynamic, o.Version), 0
	return lookUntil(ctx, newLimit, time.Second, func() (gone bool, err error) {
		looks++
		return mergePatch(ctx, resource, o.Name, patchOf([]string{"metadata", "annotations", nudgeNote}, strconv.Itoa(looks))) != nil, ctx.Err()
	})
}

// seeBereft tells which of the words of a variant's status that said that it is well say something else now that what it names is gone. What did so under the release before, as was says, is
// waited for.
func (w *walk) seeBereft(ctx context.Context, o *newObject, said map[string]string, was map[string]bool) (unsaid map[string]bool, err error) {
	began := time.Now()
	err = lookUntil(ctx, judge.DownLimit, quickPause, func() (bool, error) {
		now, err := w.healthNow(ctx, o)
		if err != nil || now == nil {
			return true, err
		}
		unsaid = judge.Unsaid(said, now)
		return tookBack(unsaid, was, time.Since(began)), nil
	})
	return unsaid, err
}

// deleteAlone deletes o, and tells what comes of it within limit.
func (w *walk) deleteAlone(ctx context.Context, o *newObject, limit time.Duration) (judge.Deletion, error) {
	stay, err := w.removeThese(ctx, []*observe.Object{o.Object}, limit)
	if len(stay) > 0 {
		return judge.Stays, err
	}
	return judge.Gone, err
}
