package walk

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// tryBesides tries on o, a variant that is as another sample asks, what could not be tried on the copy: what is made for it of a kind of which there was none for the copy, the fields that
// the copy's sample does not say or that nothing followed, and to ask for none.
func (w *walk) tryBesides(ctx context.Context, r *lifecycle.Release, o *newObject, before, created map[string]judge.New) error {
	copied, was, is := created[o.CRD], before[o.key()], created[o.key()]
	w.trying.Note(o.String())
	operands, err := w.madeFor(ctx, o)
	if err != nil {
		return err
	}
	o.remember(operands)
	o.first = operands
	o.following.begin(was)
	is.Follows, is.Remakes, is.Reverts, is.Retains = map[string]int{}, map[string]bool{}, map[string]bool{}, map[string][]string{}
	others := ofOtherKinds(operands, copied.Makes)
	o.wanted = o.shows(others, copied, was)
	for _, try := range []func() error{
		func() error {
			return w.editNew(ctx, o, editsOf(others, knownFirst(o, others, was.Reverts)), was, is.Reverts)
		},
		func() error { return w.takeFromNew(ctx, o, others, was, remade, is.Remakes) },
		func() error { return w.changeNew(ctx, r, o, operands, was, &is) },
		func() error { return w.noteLast(ctx, o, is.Follows) },
		func() (err error) { // some may have been made anew
			operands, err = w.madeFor(ctx, o)
			others = ofOtherKinds(operands, copied.Makes)
			return err
		},
		func() (err error) {
			both := judge.New{Remakes: maps.Clone(copied.Remakes), Follows: maps.Clone(copied.Follows)}
			maps.Copy(both.Remakes, is.Remakes)
			maps.Copy(both.Follows, is.Follows)
			is.Additions, err = w.setBesides(ctx, r, o, others, operands, was.Additions, both)
			return err
		},
		func() error {
			if copied.AtNone != nil {
				return nil
			}
			return w.scaleToNone(ctx, r, o, was, &is)
		},
		func() error { return w.takeFromNew(ctx, o, others, was, remadeLast, is.Remakes) },
	} {
		if err = try(); err != nil {
			break
		}
	}
	o.following.noteIn(&is)
	if err == nil {
		err = w.leaveOutParts(ctx, r, o, was, &is)
	}
	is.Slowest = o.slowest
	if err == nil {
		err = w.readyToPart(ctx, o, was)
	}
	created[o.key()] = is
	return err
}

// setBesides makes additions to others among operands, and to what an autoscaler among them scales, and returns which of them stay.
func (w *walk) setBesides(ctx context.Context, r *lifecycle.Release, o *newObject, others, operands map[string]observe.Operand, known map[string]bool, is judge.New) (map[string]bool, error) {
	stays, err := w.setOn(ctx, r, o, usualAdditions, others, operands, known, is)
	if err != nil {
		return nil, err
	}
	scales := maps.Clone(operands)
	maps.DeleteFunc(scales, func(_ string, made observe.Operand) bool { return !judge.Scaled(made, operands) })
	scaled, err := w.setOn(ctx, r, o, []addition{autoscaling}, scales, operands, known, is)
	if stays == nil {
		return scaled, err
	}
	maps.Copy(stays, scaled)
	return stays, err
}

// madeFor is what is there now that was made for a copy.
func (w *walk) madeFor(ctx context.Context, o *newObject) (map[string]observe.Operand, error) {
	view := w.viewOf(o.Object)
	operands, err := view.Operands(ctx)
	return without(operands, o.needs), err
}

// ofOtherKinds are those of operands that are of no kind of what was made, as judge.New.Makes names that.
func ofOtherKinds(operands map[string]observe.Operand, made []string) map[string]observe.Operand {
	others := maps.Clone(operands)
	maps.DeleteFunc(others, func(_ string, o observe.Operand) bool {
		return slices.ContainsFunc(made, func(name string) bool { kind, _, _ := strings.Cut(name, " "); return kind == o.Kind })
	})
	return others
}

// shows returns a function that reports whether a variant as another sample asks may show what comes of a step, and the copy did not: of a field that only that sample says or, if others is made
// for the variant alone, of which nothing followed.
func (o *newObject) shows(others map[string]observe.Operand, copied, was judge.New) func(s step) bool {
	return func(s step) bool {
		path := strings.Split(judge.OfField(s.Path), ".")
		_, says, _ := unstructured.NestedFieldNoCopy(o.like.Author, path...)
		_, both, _ := unstructured.NestedFieldNoCopy(o.besides.like.Author, path...)
		return says && (!both || len(others) > 0 && copied.Follows[s.Path] < judge.Surely || was.Follows[s.Path] == judge.Surely)
	}
}

// toTry are those of steps that are to be tried on o.
func (o *newObject) toTry(steps []step) []step {
	if o.wanted == nil {
		return steps
	}
	return slices.DeleteFunc(steps, func(s step) bool { return !o.wanted(s) })
}
