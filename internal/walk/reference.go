package walk

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// mostPointed is how many changes at most that were not tried before have a copy name another object.
const mostPointed = 3

// pointElsewhere lists changes of a copy that have it name another object in the place of one that it names: the original of a Secret or ConfigMap that was copied for it, and the copy of a
// sample of another kind in the place of that sample.
func (w *walk) pointElsewhere(ctx context.Context, o *newObject, object map[string]any) (steps []step, err error) {
	for _, n := range o.needs {
		if slices.Contains(settingKinds, n.GetKind()) {
			steps = append(steps, pointed(object["spec"], n.GetKind(), n.GetName(), n.of)...)
		}
	}
	for _, named := range w.Untouched() {
		if named.CRD == o.CRD || !names(object["spec"], named.Kind, named.Name) {
			continue
		}
		copied, err := w.liveCopyOf(ctx, named)
		if err != nil {
			return nil, err
		}
		if copied != nil {
			steps = append(steps, pointed(object["spec"], named.Kind, named.Name, copied.Name)...)
		}
	}
	return steps, nil
}

// pointed is the change by which spec names to, of an object of a kind, instead of from; none if it does not name that.
func pointed(spec any, kind, from, to string) []step {
	other := rename(runtime.DeepCopyJSONValue(spec), kind, from, to, false)
	paths := otherPaths(compare.Values(map[string]any{"spec": spec}), compare.Values(map[string]any{"spec": other}))
	if len(paths) == 0 {
		return nil
	}
	return []step{{Path: slices.Min(paths) + judge.Another, There: specPatch(spec, other), Back: specPatch(other, spec)}}
}

// specPatch is the merge patch that makes one spec another.
func specPatch(from, to any) []byte {
	var texts [2][]byte
	for i, spec := range []any{from, to} {
		texts[i], _ = json.Marshal(map[string]any{"spec": spec}) // it came as JSON
	}
	patch, _ := jsonpatch.CreateMergePatch(texts[0], texts[1])
	return patch
}

// liveCopyOf returns the newest copy of a sample's kind that is there in its namespace, nil if there is none.
func (w *walk) liveCopyOf(ctx context.Context, sample *observe.Object) (*observe.Object, error) {
	for _, o := range slices.Backward(w.Others) {
		if o.CRD != sample.CRD || o.Namespace != sample.Namespace {
			continue
		}
		now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read %s, a copy of the sample: %w", o, err)
		}
		if err == nil && now.GetDeletionTimestamp() == nil {
			return o, nil
		}
	}
	return nil, nil
}
