package walk

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// cleared is what an operator deleted with a copy, or of what it said there, though Kubernetes does not.
type cleared struct {
	distant
	of *newObject
}

// owed is what the operator has to delete with a sample, as it did with the copy of it, or of what it says there.
type owed struct {
	observe.Creation
	of     *observe.Object
	kind   string
	uid    types.UID
	shared bool
	names  int // how often it names the sample
}

// owing is what the operator has to delete with the samples that copies were made of: these may have been there before the upgrade, so that the operator
// cannot know of it from what it did itself.
func (w *walk) owing(ctx context.Context) (all []owed, err error) {
	if w.release == nil {
		return nil, nil
	}
	for _, c := range w.cleared[w.release.Name] {
		i := slices.IndexFunc(w.Objects, func(o *observe.Object) bool { return o.UID == c.of.like.UID && !o.Gone })
		theirs := c.Creation
		theirs.ObjectKey = client.ObjectKey{Namespace: strings.ReplaceAll(c.Namespace, c.of.Name, c.of.like.Name), Name: strings.ReplaceAll(c.Name, c.of.Name, c.of.like.Name)}
		if i < 0 || !c.shared && theirs == c.Creation { // its name does not tell whose it is
			continue
		}
		now, err := w.distantNow(ctx, theirs)
		if err != nil {
			return nil, err
		}
		if now == nil || len(now.GetOwnerReferences()) > 0 {
			continue
		}
		if names := timesNamed(textOf(now), c.of.like.Name); names > 0 || !c.shared {
			all = append(all, owed{theirs, w.Objects[i], now.GetKind(), now.GetUID(), c.shared, names})
		}
	}
	return all, nil
}

// judgeOwed tells what of all is still there, or says what it said, although the samples are gone, but for those that stay.
func (w *walk) judgeOwed(ctx context.Context, all []owed, stay []*observe.Object) (findings []finding.Finding, err error) {
	for _, o := range all {
		if slices.Contains(stay, o.of) {
			continue
		}
		left := true
		err = lookUntil(ctx, judge.EffectLimit, lookPause, func() (bool, error) {
			now, err := w.distantNow(ctx, o.Creation)
			left = now != nil && now.GetUID() == o.uid && (!o.shared || timesNamed(textOf(now), o.of.Name) >= o.names)
			return !left, err
		})
		if err != nil {
			return nil, err
		}
		if left {
			findings = append(findings, code.Finding(code.NewUnowned, o.of.String(), "%s leaves what is there for it in %s %s when it is deleted, which was there before the upgrade; of an object that was created afterwards it did not",
				w.release.Name, o.kind, strings.TrimPrefix(o.ObjectKey.String(), "/")))
		}
	}
	return findings, nil
}
