package walk

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// spreadNew creates a namespace like one of those in which something was made for a copy that is in none, and with the labels by which the copy chooses namespaces. It notes in
// is what is made there, whether that goes when the namespace loses its labels, and is made again when it gets them back.
func (w *walk) spreadNew(ctx context.Context, o *newObject, operands map[string]observe.Operand, was judge.New, is *judge.New) (err error) {
	like, labels := namespaceOf(operands), chosenBy(o.Author["spec"])
	if is.Spread = was.Spread; o.Namespace != "" || !w.Provider.Disposable() || like == "" && len(labels) == 0 || was.Spread != nil && len(was.Spread.Kinds) == 0 {
		return nil
	}
	if err := w.awaitIdle(ctx, o); err != nil {
		return err
	}
	s := spreading{w, o, newNamespaces + rand.String(5), w.viewOf(o.Object)}
	if w.likeNamespace(ctx, like, s.namespace, labels) != nil { // who looks after namespaces may not let others make one
		return ctx.Err()
	}
	is.Spread = &judge.Spread{}
	defer func() { err = errors.Join(err, s.end(ctx, len(is.Spread.Kinds) > 0)) }()
	return s.note(ctx, ptr.Deref(was.Spread, judge.Spread{}), is.Spread)
}

// spreading is how something is made for a copy in a new namespace.
type spreading struct {
	w         *walk
	o         *newObject
	namespace string
	view      observe.Cluster
}

// note notes in is what is made in the namespace, and what becomes of it. What was done before is waited for longer.
func (s spreading) note(ctx context.Context, was judge.Spread, is *judge.Spread) error {
	err := s.await(ctx, len(was.Kinds) > 0, func(kinds []string) bool {
		is.Kinds = kinds
		return len(kinds) > 0 && !slices.ContainsFunc(was.Kinds, func(kind string) bool { return !slices.Contains(kinds, kind) })
	})
	if err != nil || len(is.Kinds) == 0 {
		return err
	}
	is.Leaves, is.Returns = was.Leaves, was.Returns // unless more is known
	var now corev1.Namespace
	if s.w.Client.Get(ctx, client.ObjectKey{Name: s.namespace}, &now) != nil { // who looks after namespaces may delete it
		return ctx.Err()
	}
	set, none := map[string]any{}, map[string]any{}
	for label, value := range now.Labels {
		if label != corev1.LabelMetadataName {
			set[label], none[label] = value, nil
		}
	}
	if len(set) == 0 || s.label(ctx, none) != nil {
		return ctx.Err()
	}
	err = s.await(ctx, was.Leaves, func(kinds []string) bool {
		is.Leaves = len(kinds) == 0
		return is.Leaves
	})
	if is.Returns = is.Leaves && was.Returns; err != nil || !is.Leaves || s.label(ctx, set) != nil {
		return errors.Join(err, ctx.Err())
	}
	return s.await(ctx, was.Returns, func(kinds []string) bool {
		is.Returns = len(kinds) > 0
		return is.Returns
	})
}

// await looks at the kinds of what is made for the copy in the namespace, sorted, until done, longer if that was so before.
func (s spreading) await(ctx context.Context, before bool, done func(kinds []string) bool) error {
	limit := boldLimit
	if before {
		limit = judge.EffectLimit
	}
	return lookUntil(ctx, limit, quickPause, func() (bool, error) {
		operands, err := s.view.RecentOperands(ctx)
		kinds := map[string]bool{}
		for _, made := range operands {
			if made.Direct && made.Namespace == s.namespace && !made.Transient() {
				kinds[made.Kind] = true
			}
		}
		return err == nil && done(slices.Sorted(maps.Keys(kinds))), err
	})
}

// label sets labels of the namespace, and removes those that are nil. It may be refused.
func (s spreading) label(ctx context.Context, labels map[string]any) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	return s.w.Client.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, patchOf([]string{"metadata", "labels"}, labels)))
}

// end deletes the namespace. Where something was made, the status of samples counts it, too, until it is gone.
func (s spreading) end(ctx context.Context, made bool) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if s.w.Client.Delete(ctx, namespace) != nil || !made {
		return ctx.Err()
	}
	return lookUntil(ctx, newLimit, lookPause, func() (bool, error) {
		return apierrors.IsNotFound(s.w.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)), ctx.Err()
	})
}

// namespaceOf is the first of the namespaces in which something was made for a copy, "" if there is none.
func namespaceOf(operands map[string]observe.Operand) (first string) {
	for _, made := range operands {
		if made.Direct && made.Namespace != "" && (first == "" || made.Namespace < first) {
			first = made.Namespace
		}
	}
	return first
}

// chosenBy are the labels of the namespaces that value, of an object's spec, chooses.
func chosenBy(value any) map[string]string {
	labels := map[string]string{}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			chosen := chosenBy(v[key])
			if strings.HasSuffix(strings.ToLower(key), "namespaceselector") {
				chosen, _, _ = unstructured.NestedStringMap(v, key, "matchLabels")
			}
			maps.Copy(labels, chosen)
		}
	case []any:
		for _, inner := range v {
			maps.Copy(labels, chosenBy(inner))
		}
	}
	return labels
}
