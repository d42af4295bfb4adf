package walk

import (
	"context"
	"encoding/base64"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	other       []byte // a patch that means something else, where there does not; nil for none
}

// selectors are where those kinds select pods by labels that may be changed at any time.
var selectors = map[string][]string{
	observe.KindService:   {"spec", "selector"},
	"NetworkPolicy":       {"spec", "podSelector", "matchLabels"},
	"PodDisruptionBudget": {"spec", "selector", "matchLabels"},
}

// editsOf are edits of ConfigMaps, of schedules, and of what selects pods, among operands, which were made for a new object: of the first of names of each kind.
// ConfigMaps and Services have no generation as workloads have, so who looks at generations alone does not see one; others are often only created.
func editsOf(operands map[string]observe.Operand, names []string) (edits []edit) {
	kinds := map[string]int{}
	for _, name := range names {
		made := operands[name]
		if kinds[made.Kind] == mostOfOneKind || !made.Direct {
			continue
		}
		var path []string
		var was, is string
		switch made.Kind {
		case "ConfigMap":
			data, _, _ := unstructured.NestedStringMap(made.Content, "data")
			immutable, _, _ := unstructured.NestedBool(made.Content, "immutable")
			maps.DeleteFunc(data, func(_, text string) bool { return observe.Hidden().MatchString(text) }) // nobody could put it back
			if len(data) == 0 || immutable {
				continue
			}
			key := slices.Sorted(maps.Keys(data))[0]
			path, was, is = []string{"data", key}, data[key], data[key]+"\n" // which means the same to who reads it
		case "CronJob":
			path = []string{"spec", "schedule"}
			was, _, _ = unstructured.NestedString(made.Content, path...)
			if is = otherSchedule(was); is == was {
				continue
			}
		default:
			at := selectors[made.Kind]
			selector, _, _ := unstructured.NestedStringMap(made.Content, at...)
			if len(at) == 0 || len(selector) == 0 {
				continue
			}
			path, is = append(slices.Clone(at), nudgeNote), "1"
		}
		e := edit{Operand: made, path: path, was: was, there: patchOf(path, is), back: patchOf(path, nil)}
		if was != "" {
			e.back = patchOf(path, was)
			if made.Kind == "ConfigMap" {
				e.other = patchOf(path, withoutLastLine(was))
			}
		}
		kinds[made.Kind]++
		edits = append(edits, e)
	}
	return edits
}

// secretEdits are edits of the first key of Secrets among operands, which were made anew and say what they said before, as was has them: nobody chose that. What belongs to a certificate is
// left alone, since nobody could read it.
func (w *walk) secretEdits(ctx context.Context, was, operands map[string]observe.Operand, names []string) (edits []edit, err error) {
	for _, name := range names {
		made, before := operands[name], was[name]
		if made.Kind != observe.KindSecret || !made.Direct || made.UID == before.UID || !reflect.DeepEqual(made.Content, before.Content) || len(edits) == mostOfOneKind {
			continue
		}
		now, err := w.operandNow(ctx, made)
		if err != nil {
			return nil, err
		}
		if now == nil {
			continue
		}
		data, _, _ := unstructured.NestedStringMap(now.Object, "data")
		immutable, _, _ := unstructured.NestedBool(now.Object, "immutable")
		if len(data) == 0 || immutable || isCertified(data) {
			continue
		}
		key := slices.Sorted(maps.Keys(data))[0]
		text, _ := base64.StdEncoding.DecodeString(data[key]) // the API server wrote it
		path := []string{"data", key}
		there := base64.StdEncoding.EncodeToString(append(text, '\n'))
		edits = append(edits, edit{Operand: made, path: path, was: data[key], there: patchOf(path, there), back: patchOf(path, data[key])})
	}
	return edits, nil
}

// editNew makes edits of what was made for a copy, one after the other, and notes in reverts of each whether the operator changed it back. What it did under the release before is waited for
// longer, and what it did not is not tried again.
func (w *walk) editNew(ctx context.Context, o *newObject, edits []edit, was judge.New, reverts map[string]bool) error {
	watched := map[string]bool{}
	for _, e := range edits { // a look at one would correct another
		alone, err := w.belongsAlone(ctx, e.Operand)
		if err != nil {
			return err
		}
		key := o.called(e.Operand)
		did, known := was.Reverts[key]
		switch {
		case !alone:
			continue
		case known && !did:
			reverts[key] = false
			continue
		}
		limit, times := trials(max(boldLimit, lookFor(w.acted)), did, watched[e.Kind], was)
		for range times {
			reverted, tried, err := w.editOnce(ctx, o, e, limit)
			if err == nil && did && tried && !reverted && e.other != nil { // who compares what it means sees none in the first
				e.there = e.other
				reverted, _, err = w.editOnce(ctx, o, e, limit)
			}
			if err != nil {
				return err
			}
			if delete(reverts, key); tried {
				reverts[key] = reverted
			}
			if watched[e.Kind] = reverted; !reverted {
				break
			}
		}
	}
	return nil
}

// editOnce makes an edit, and reports whether the operator reverts it within limit. What it does not revert is taken back. Who may not make it has tried
// nothing.
func (w *walk) editOnce(ctx context.Context, o *newObject, e edit, limit time.Duration) (reverted, tried bool, err error) {
	if err := w.awaitIdle(ctx, o); err != nil {
		return false, false, err
	}
	resource := w.Dynamic.Resource(observe.OperandResource(e.Kind)).Namespace(e.Namespace)
	began := time.Now()
	if mergePatch(ctx, resource, e.Name, e.there) != nil {
		return false, false, ctx.Err()
	}
	err = lookUntil(ctx, limit, quickPause, func() (bool, error) {
		now, err := w.operandNow(ctx, e.Operand)
		if err != nil {
			return false, err
		}
		if reverted = now == nil || inOrder(textAt(now, e.path)) == inOrder(e.was); reverted {
			o.acted(time.Since(began))
		}
		return reverted, nil
	})
	if !reverted {
		_ = mergePatch(ctx, resource, e.Name, e.back) // the copy is about to be deleted
	}
	return reverted, true, err
}

// withoutLastLine is text without its last line that says anything.
func withoutLastLine(text string) string {
	text = strings.TrimRight(text, " \n")
	return text[:strings.LastIndex(text, "\n")+1]
}

// textAt is the text at path in o, "" for none.
func textAt(o *unstructured.Unstructured, path []string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}
