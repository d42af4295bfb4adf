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

// mark and labelMark are an annotation and a label such as others put on what an operator made.
var (
	mark      = []string{"metadata", "annotations", "olmkit.dev/mark"}
	labelMark = []string{"metadata", "labels", "olmkit.dev/mark"}
)

// markNew puts an annotation and a label on each of operands that was made directly for a copy alone, as controllers of load balancers and monitoring do. What may
// not be changed is left out.
func (w *walk) markNew(ctx context.Context, o *newObject, operands map[string]observe.Operand) error {
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		made := operands[name]
		if !made.Direct || made.Transient() {
			continue
		}
		if alone, err := w.belongsAlone(ctx, made); err != nil {
			return err
		} else if !alone {
			continue
		}
		resource := w.Dynamic.Resource(observe.OperandResource(made.Kind)).Namespace(made.Namespace)
		both, _, err := merged([]step{stepOf(mark, "1", nil), stepOf(labelMark, "1", nil)})
		if err != nil {
			return err
		}
		if mergePatch(ctx, resource, made.Name, both) == nil {
			o.marked = append(o.marked, made)
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// noteMarks notes in is of what was marked whether the marks are still there. What was made anew meanwhile tells nothing.
func (w *walk) noteMarks(ctx context.Context, o *newObject, is *judge.New) error {
	is.Marks, is.Labels = map[string]bool{}, map[string]bool{}
	for _, made := range o.marked {
		now, err := w.operandNow(ctx, made)
		if err != nil {
			return err
		}
		if now != nil && now.GetUID() == made.UID {
			is.Marks[o.called(made)], is.Labels[o.called(made)] = textAt(now, mark) != "", textAt(now, labelMark) != ""
		}
	}
	return nil
}

// picksOf are the objects whose pods what was made for a copy selects besides its own, by what selects them.
func (w *walk) picksOf(ctx context.Context, o *newObject) (map[string][]string, error) {
	view := w.viewOf(slices.Concat(w.Objects, []*observe.Object{o.Object})...)
	operands, err := view.RecentOperands(ctx)
	if err != nil {
		return nil, err
	}
	picks := map[string][]string{}
	for _, made := range operands {
		if judge.Selects(made.Kind) && made.Of == o.String() {
			picks[o.called(made)] = judge.OthersSelected(made, operands)
		}
	}
	return picks, nil
}

// writtenInto are the fields of a copy's spec that neither its author nor a default set, by path; nil if that is not known. Nobody converts the copy
// for that.
func (w *walk) writtenInto(ctx context.Context, o *newObject) ([]string, error) {
	if d := w.Watcher.Definitions()[o.CRD]; d == nil || d.Storage != o.Version {
		return nil, nil
	}
	now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ctx.Err() // its operator may delete what it does not want
	}
	made, err := w.again(ctx, o.Object)
	if err != nil {
		return nil, ctx.Err() // told elsewhere
	}
	spec := func(of *unstructured.Unstructured) map[string]any { return map[string]any{"spec": of.Object["spec"]} }
	paths := []string{}
	for _, d := range compare.Lost(spec(now), spec(made)) {
		if d.Gone && !zero(d.Was) { // as typed clients write what is not there
			paths = append(paths, d.Path)
		}
	}
	return paths, nil
}

// zero reports whether value is what Go's types say of what is not there, as a quantity or a duration: in all that is in it.
func zero(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(value)), func(inner any) bool { return !zero(inner) })
	case []any:
		return !slices.ContainsFunc(value, func(inner any) bool { return !zero(inner) })
	}
	return slices.Contains([]any{nil, "", "0", "0s", false, int64(0), float64(0)}, value)
}
