package walk

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// foreignName is what the objects of somebody else are called.
const foreignName = "olmkit-foreign"

// nobodys chooses no pod.
var nobodys = map[string]any{"matchLabels": map[string]any{foreign: "true"}}

// foreignContents is, by kind, what an object of somebody else says that does nothing to anybody: nobody has such a volume for the claim.
var foreignContents = map[string]map[string]any{
	"ConfigMap":           {"data": map[string]any{"by": "olmkit"}},
	observe.KindSecret:    {"stringData": map[string]any{"by": "olmkit"}},
	"ServiceAccount":      {},
	observe.KindService:   {"spec": map[string]any{"clusterIP": "None", "ports": []any{map[string]any{"port": int64(1)}}}},
	"Role":                {"rules": []any{}},
	"RoleBinding":         {"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": foreignName}},
	"NetworkPolicy":       {"spec": map[string]any{"podSelector": nobodys}},
	"PodDisruptionBudget": {"spec": map[string]any{"selector": nobodys}},
	observe.KindClaim: {"spec": map[string]any{
		"accessModes": []any{"ReadWriteOnce"}, "storageClassName": foreignName, "resources": map[string]any{"requests": map[string]any{"storage": "1Mi"}},
	}},
}

// foreignObject is one that somebody else has where an operator makes others of its kind.
type foreignObject struct {
	observe.Operand
	written map[string]any
}

// placeForeign creates in each namespace in which something was made for the samples an object of somebody else of each of the kinds there, if there is none. Who may not has none.
// On a cluster that stays there are none.
func (w *walk) placeForeign(ctx context.Context) error {
	if !w.Provider.Disposable() {
		return nil
	}
	for name, o := range w.foreign {
		within, err := w.namespaceUID(ctx, o.Namespace)
		if err != nil {
			return err
		}
		if within != o.Within {
			delete(w.foreign, name)
		}
	}
	operands, err := w.RecentOperands(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		made := operands[name]
		content, harmless := foreignContents[made.Kind]
		o := foreignObject{Operand: observe.Operand{Kind: made.Kind, Namespace: made.Namespace, Name: foreignName, Of: made.Of}}
		if _, there := w.foreign[o.String()]; there || !harmless || !made.Direct || made.Transient() {
			continue
		}
		if w.createForeign(ctx, &o, content) == nil {
			w.foreign[o.String()] = o
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// createForeign creates o with content, and notes what it is then.
func (w *walk) createForeign(ctx context.Context, o *foreignObject, content map[string]any) (err error) {
	if o.Within, err = w.namespaceUID(ctx, o.Namespace); err != nil {
		return err
	}
	resource := observe.OperandResource(o.Kind)
	object := &unstructured.Unstructured{Object: maps.Clone(content)}
	object.SetAPIVersion(resource.GroupVersion().String())
	object.SetKind(o.Kind)
	object.SetNamespace(o.Namespace)
	object.SetName(foreignName)
	made, err := w.Dynamic.Resource(resource).Namespace(o.Namespace).Create(ctx, object, metav1.CreateOptions{FieldManager: "olmkit"})
	if err != nil {
		return err
	}
	o.UID, o.written = made.GetUID(), written(made)
	return nil
}

// written is what anybody may write of an object.
func written(o *unstructured.Unstructured) map[string]any {
	all := compare.Content(o.Object)
	all["metadata"] = []any{o.GetLabels(), o.GetAnnotations(), o.GetOwnerReferences(), o.GetFinalizers()}
	return all
}

// namespaceUID is the UID of a namespace, "" if there is none, or if it is about to go.
func (w *walk) namespaceUID(ctx context.Context, name string) (types.UID, error) {
	var namespace corev1.Namespace
	if err := client.IgnoreNotFound(w.Client.Get(ctx, client.ObjectKey{Name: name}, &namespace)); err != nil {
		return "", fmt.Errorf("read namespace %s: %w", name, err)
	}
	if namespace.DeletionTimestamp != nil {
		return "", nil
	}
	return namespace.UID, nil
}

// seeForeign returns what became of the objects of somebody else, by name. Of one that went with its namespace nothing is known; it and what is not as it was are placed anew.
func (w *walk) seeForeign(ctx context.Context) (map[string]judge.Foreign, error) {
	seen := map[string]judge.Foreign{}
	for name, o := range w.foreign {
		now, err := w.operandNow(ctx, o.Operand)
		if err != nil {
			return nil, err
		}
		is := judge.Foreign{Of: o.Of, Gone: now == nil || now.GetUID() != o.UID || now.GetDeletionTimestamp() != nil}
		is.Changed = !is.Gone && !reflect.DeepEqual(written(now), o.written)
		if is.Gone || is.Changed {
			delete(w.foreign, name)
		}
		if within, err := w.namespaceUID(ctx, o.Namespace); err != nil {
			return nil, err
		} else if within == o.Within {
			seen[name] = is
		}
	}
	return seen, nil
}
