package walk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// tryContests sees for those of copies, which are gone, whose kind has texts that no two objects may have the same, what becomes of a second object that says the same as a first one, beside it and
// once that is gone, and notes that in created. Of what the release before did nothing is known, as before tells, nothing is looked at.
func (w *walk) tryContests(ctx context.Context, r *lifecycle.Release, copies []*newObject, before, created map[string]judge.New) error {
	for _, o := range copies {
		was, compared := before[o.CRD]
		if !o.tried || len(o.uniques) == 0 || !w.Provider.Disposable() || compared && was.Contest == nil {
			continue
		}
		is := created[o.CRD]
		var err error
		if is.Contest, err = w.seeContest(ctx, r, o, was.Contest, created); err != nil {
			return err
		}
		created[o.CRD] = is
	}
	return nil
}

// seeContest creates two objects as a copy was that say the same, deletes the first one, and returns what became of the second; nil if nothing shows that. was is what became of it under the release
// before.
func (w *walk) seeContest(ctx context.Context, r *lifecycle.Release, like *newObject, was *judge.Contest, created map[string]judge.New) (is *judge.Contest, err error) {
	w.trying.Note("with two that say the same")
	name := fmt.Sprintf("%s-alt%dz", shortened(like.like.Name), len(w.created)+1)
	began := time.Now()
	first, err := w.copyNamed(ctx, r, like.like, name+"one")
	if first == nil || err != nil {
		return nil, err
	}
	both := []*newObject{first}
	defer func() { err = errors.Join(err, w.deleteAgain(ctx, both, created)) }()
	if served, err := w.isServed(ctx, first, newLimit); !served || err != nil {
		return nil, err
	}
	took := time.Since(began)
	second, err := w.makeCopy(ctx, r, like.like, client.ObjectKey{Namespace: first.Namespace, Name: name + "two"}, &unstructured.Unstructured{Object: first.Author})
	if second == nil || err != nil {
		return nil, err
	}
	both = append(both, second)
	is = &judge.Contest{Says: w.uniques[ofVersion(like.like)]}
	if is.Beside, err = w.areServed(ctx, first, second, boldLimit+2*took); err != nil || is.Beside || was != nil && !was.After {
		return is, err
	}
	first.needs, second.needs, both = nil, first.needs, both[1:]
	if err = w.deleteAgain(ctx, []*newObject{first}, created); err == nil {
		is.After, err = w.isServed(ctx, second, newLimit)
	}
	return is, err
}

// areServed reports whether, once the operator is through with them, but not later than limit, two objects that say the same are both served.
func (w *walk) areServed(ctx context.Context, first, second *newObject, limit time.Duration) (bool, error) {
	_, err := w.isServed(ctx, second, limit)
	if err == nil { // it may serve the second a moment later, or the first no more
		err = w.awaitIdle(ctx, first, second)
	}
	for _, o := range []*newObject{first, second} {
		if err != nil {
			return false, err
		}
		var served bool
		if served, err = w.isServed(ctx, o, 0); !served {
			return false, err
		}
	}
	return err == nil, err
}

// isServed reports whether a copy has what its sample has, and is no worse by its own words, or is so before limit has passed.
func (w *walk) isServed(ctx context.Context, o *newObject, limit time.Duration) (bool, error) {
	seen := map[string]judge.New{}
	err := w.awaitGood(ctx, o, limit, seen, isAlike)
	return isAlike(seen[o.key()]) && seen[o.key()].Settled(), err
}
