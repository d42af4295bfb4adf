package walk

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// edit is a change of what an operator made for a new object, as somebody with kubectl makes it. There and back are merge patches of the field at
// path, which says was.
type edit struct {
	observe.Operand
	path        []string
	was         string // "" for none
	there, back []byte
}

// editsOf are an edit of one ConfigMap and one of a Service among operands, which were made for a new object, the first of names. Unlike workloads they have no
// generation, so who looks at generations alone does not see one.
func editsOf(operands map[string]observe.Operand, names []string) []*edit {
	kinds := map[string]*edit{}
	for _, name := range names {
		made := operands[name]
		if _, known := kinds[made.Kind]; known || !made.Direct {
			continue
		}
		var path []string
		var was, is string
		switch made.Kind {
		case "ConfigMap":
			data, _, _ := unstructured.NestedStringMap(made.Content, "data")
			immutable, _, _ := unstructured.NestedBool(made.Content, "immutable")
			if len(data) == 0 || immutable {
				continue
			}
			key := slices.Sorted(maps.Keys(data))[0]
			path, was, is = []string{"data", key}, data[key], data[key]+"\n" // which means the same to who reads it
		case observe.KindService:
			selector, _, _ := unstructured.NestedStringMap(made.Content, "spec", "selector")
			if len(selector) == 0 {
				continue
			}
			path, is = []string{"spec", "selector", nudgeNote}, "1"
		default:
			continue
		}
		e := &edit{Operand: made, path: path, was: was, there: patchOf(path, is), back: patchOf(path, nil)}
		if was != "" {
			e.back = patchOf(path, was)
		}
		kinds[made.Kind] = e
	}
	return slices.Collect(maps.Values(kinds))
}

// editNew changes a ConfigMap and a Service among operands, which were made for a copy, one after the other, and tells of each whether the
// operator changed it back. What it did under the release before is waited for longer.
func (w *walk) editNew(ctx context.Context, o *newObject, operands map[string]observe.Operand, was judge.New) (map[string]bool, error) {
	reverts := map[string]bool{}
	edits, err := w.aloneAmong(ctx, editsOf(operands, knownFirst(o, operands, was.Reverts)))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(edits, func(a, b *edit) int { return strings.Compare(a.Kind, b.Kind) })
	for _, e := range edits { // a look at one would correct another
		key, times := o.called(e.Operand), 2 // once may be luck: a reconcile that another cause began
		if did, known := was.Reverts[key]; known {
			if reverts[key], times = false, 1; !did {
				continue
			}
		}
		for range times {
			if err := w.awaitIdle(ctx, o); err != nil {
				return nil, err
			}
			once, err := w.editOnce(ctx, o, []*edit{e}, was)
			if err != nil {
				return nil, err
			}
			delete(reverts, key)
			maps.Copy(reverts, once)
			if !once[key] {
				break
			}
		}
	}
	return reverts, nil
}

// aloneAmong are those of edits that are of nothing that somebody else has, too.
func (w *walk) aloneAmong(ctx context.Context, edits []*edit) ([]*edit, error) {
	var kept []*edit
	for _, e := range edits {
		alone, err := w.belongsAlone(ctx, e.Operand)
		if err != nil {
			return nil, err
		}
		if alone {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// editOnce makes edits, tells of each that may be edited whether the operator reverts it, and takes back what it does not.
func (w *walk) editOnce(ctx context.Context, o *newObject, edits []*edit, was judge.New) (map[string]bool, error) {
	reverts := map[string]bool{}
	began := time.Now()
	for _, e := range edits {
		if w.patchEdit(ctx, e, e.there) == nil {
			reverts[o.called(e.Operand)] = false
		}
	}
	err := lookUntil(ctx, judge.EffectLimit, lookPause, func() (bool, error) {
		awaited := false
		for _, e := range edits {
			if reverted, tried := reverts[o.called(e.Operand)]; reverted || !tried {
				continue
			}
			now, err := w.operandNow(ctx, e.Operand)
			if err != nil {
				return false, err
			}
			if reverts[o.called(e.Operand)] = now == nil || textAt(now, e.path) == e.was; reverts[o.called(e.Operand)] {
				o.acted(began)
			}
			awaited = awaited || !reverts[o.called(e.Operand)] && (was.Reverts[o.called(e.Operand)] || time.Since(began) < max(boldLimit, lookFor(w.acted)))
		}
		return !awaited, nil
	})
	for _, e := range edits {
		if reverted, tried := reverts[o.called(e.Operand)]; tried && !reverted {
			_ = w.patchEdit(ctx, e, e.back) // the copy is about to be deleted
		}
	}
	return reverts, err
}

func (w *walk) patchEdit(ctx context.Context, e *edit, patch []byte) error {
	_, err := w.Dynamic.Resource(observe.OperandResource(e.Kind)).Namespace(e.Namespace).Patch(ctx, e.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "olmkit"})
	return err
}

// textAt is the text at path in o, "" for none.
func textAt(o *unstructured.Unstructured, path []string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}
