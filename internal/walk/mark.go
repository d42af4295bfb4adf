package walk

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// mark is an annotation such as others put on what an operator made.
var mark = []string{"metadata", "annotations", "olmkit.dev/mark"}

// markNew puts an annotation on each of operands that was made directly for a copy, as controllers of load balancers and monitoring do. What may not
// be changed is left out.
func (w *walk) markNew(ctx context.Context, o *newObject, operands map[string]observe.Operand) error {
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		made := operands[name]
		if !made.Direct || made.Transient() {
			continue
		}
		resource := w.Dynamic.Resource(observe.OperandResource(made.Kind)).Namespace(made.Namespace)
		if mergePatch(ctx, resource, made.Name, patchOf(mark, "1")) == nil {
			o.marked = append(o.marked, made)
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// noteMarks notes in kept of what was marked whether the mark is still there; once it is gone it is. What was made anew meanwhile tells nothing more.
func (w *walk) noteMarks(ctx context.Context, o *newObject, kept map[string]bool) error {
	for _, made := range o.marked {
		now, err := w.operandNow(ctx, made)
		if err != nil {
			return err
		}
		if key := o.called(made); now != nil && now.GetUID() == made.UID {
			before, known := kept[key]
			kept[key] = textAt(now, mark) != "" && (before || !known)
		}
	}
	return nil
}

// picksOf are the objects whose pods the Services that were made for a copy select besides its own, by Service.
func (w *walk) picksOf(ctx context.Context, o *newObject) (map[string][]string, error) {
	view := w.viewOf(slices.Concat(w.Objects, []*observe.Object{o.Object})...)
	operands, err := view.RecentOperands(ctx)
	if err != nil {
		return nil, err
	}
	picks := map[string][]string{}
	for _, made := range operands {
		if made.Kind == observe.KindService && made.Of == o.String() {
			picks[o.called(made)] = judge.OthersSelected(made, operands)
		}
	}
	return picks, nil
}

// writtenInto are the fields of a copy's spec that neither its author nor a default set, by path.
func (w *walk) writtenInto(ctx context.Context, o *newObject) ([]string, error) {
	now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ctx.Err() // its operator may delete what it does not want
	}
	made, err := w.again(ctx, o.Object)
	if err != nil {
		return nil, ctx.Err() // told elsewhere
	}
	spec := func(of *unstructured.Unstructured) map[string]any { return map[string]any{"spec": of.Object["spec"]} }
	onlyNow := slices.DeleteFunc(compare.Lost(spec(now), spec(made)), func(d compare.Difference) bool { return !d.Gone })
	return onlyNow.Fields(), nil
}
