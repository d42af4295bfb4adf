package walk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// copyEarly creates a copy of v's sample, called key, that names others than that does, which are not there yet, or returns nil where the API server refuses it.
func (w *walk) copyEarly(ctx context.Context, r *lifecycle.Release, v variant, key client.ObjectKey) (*newObject, error) {
	sample := &unstructured.Unstructured{Object: v.like.Author}
	needs := w.namesakes(sample, v.like.Namespace)
	if created, err := w.createNeeds(ctx, needs); err != nil || !created {
		return nil, err
	}
	for _, o := range v.named {
		other := (&unstructured.Unstructured{Object: o.Author}).DeepCopy()
		other.SetName(fmt.Sprintf("%s-new%d", shortened(o.Name), w.copied))
		needs = append(needs, need{other, o.Name})
	}
	o, err := w.makeCopy(ctx, r, v.like, key, naming(sample, needs))
	if err != nil || o == nil {
		return nil, errors.Join(err, w.deleteNeeds(ctx, needs))
	}
	o.needs = needs
	return o, nil
}

// createNamed creates what those of all name that are there before it, once their operator has had time to look at them, and returns all without those that name what the API server
// refuses.
func (w *walk) createNamed(ctx context.Context, r *lifecycle.Release, all []*newObject) (taken []*newObject, err error) {
	if slices.ContainsFunc(all, func(o *newObject) bool { return len(o.early) > 0 }) {
		err = sleep(ctx, needLater)
	}
	for _, o := range all {
		for _, like := range o.early {
			i := slices.IndexFunc(o.needs, func(n need) bool { return n.of == like.Name && n.GetKind() == like.Kind })
			var made *newObject
			if err == nil {
				made, err = w.makeCopy(ctx, r, like, client.ObjectKeyFromObject(o.needs[i]), o.needs[i].Unstructured)
			}
			if made != nil {
				o.later = append(o.later, made.Object)
			}
		}
		if err != nil || len(o.later) == len(o.early) {
			taken = append(taken, o)
			continue
		}
		_, err = w.removeCopies(ctx, []*newObject{o})
	}
	return taken, err
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

// deleteNamed deletes what a variant names and then the variant, and notes in created whether that goes. Nothing is known where what it names stays for it.
func (w *walk) deleteNamed(ctx context.Context, o *newObject, was judge.New, created map[string]judge.New) error {
	limit := downLimit
	if was.Deserted == judge.Gone {
		limit = judge.EffectLimit
	}
	stay, err := w.removeThese(ctx, o.later, limit)
	if err != nil || len(stay) > 0 {
		return err
	}
	if err := w.awaitIdle(ctx, o); err != nil {
		return err
	}
	stay, err = w.removeThese(ctx, []*observe.Object{o.Object}, limit)
	is := created[o.key()]
	if is.Deserted = judge.Gone; len(stay) > 0 {
		is.Deserted = judge.Stays
	}
	created[o.key()] = is
	return err
}
