package walk

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// What becomes of namespaces that are new, or chosen later, is seen of each operator, also of those that are late.
func TestSpread(t *testing.T) {
	configMaps := []string{"ConfigMap"}
	for name, test := range map[string]struct {
		operator spreader
		was      *judge.Spread
		want     *judge.Spread
	}{
		"follows":                   {spreader{}, nil, &judge.Spread{Kinds: configMaps, Leaves: true, Returns: true}},
		"is late, and was not":      {spreader{late: 8 * time.Second}, &judge.Spread{Kinds: configMaps, Leaves: true, Returns: true}, &judge.Spread{Kinds: configMaps, Leaves: true, Returns: true}},
		"knows the old ones":        {spreader{old: true}, nil, &judge.Spread{}},
		"leaves what it made":       {spreader{leaves: true}, nil, &judge.Spread{Kinds: configMaps}},
		"looks at labels once":      {spreader{once: true}, nil, &judge.Spread{Kinds: configMaps, Leaves: true}},
		"did nothing, and does now": {spreader{}, &judge.Spread{}, &judge.Spread{}},
	} {
		t.Run(name, func(t *testing.T) {
			p, plan := things(t, "v1", "v2")
			synctest.Test(t, func(t *testing.T) {
				w := newDisposable()
				walk := w.connect(t, p, plan, Options{})
				walk.Watcher = observe.NewWatcher(w, fakeManager{world: w}, "operators")
				walk.Place.Mode = lifecycle.AllNamespaces
				thing := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"target": map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"tea": "true"}}}}}}
				thing.SetGroupVersionKind(thingKind)
				thing.SetName("a")
				if err := w.Create(t.Context(), thing); err != nil {
					t.Fatal(err)
				}
				o := &newObject{Object: &observe.Object{
					CRD: "things.example.com", Resource: thingKind.GroupVersion().WithResource("things").GroupResource(), Kind: "Thing", Version: "v1", Name: "a", UID: thing.GetUID(), Author: thing.Object,
				}}
				ctx, end := context.WithCancel(t.Context())
				defer end()
				go test.operator.run(ctx, w, o.UID)
				is := judge.New{}
				if err := walk.spreadNew(t.Context(), o, nil, judge.New{Spread: test.was}, &is); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, is.Spread); diff != "" {
					t.Error(diff)
				}
				var left corev1.NamespaceList
				if err := w.List(t.Context(), &left); err != nil || len(left.Items) != 1 {
					t.Errorf("%v, %d namespaces are left", err, len(left.Items))
				}
			})
		})
	}
}

// spreader makes a ConfigMap in each namespace that is labelled.
type spreader struct {
	old, leaves, once bool // it knows those that are there at its start alone; leaves what it made; looks at labels once
	late              time.Duration
}

func (s spreader) run(ctx context.Context, w *world, owner types.UID) {
	known := map[string]bool{}
	for began := true; ctx.Err() == nil; began = false {
		var all corev1.NamespaceList
		_ = w.List(ctx, &all)
		_ = sleep(ctx, max(s.late, 300*time.Millisecond))
		for _, n := range all.Items {
			first, before := known[n.Name]
			if !before {
				first = n.Labels["tea"] == "true" && (began || !s.old)
				known[n.Name] = first
			}
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Name, Name: "a", OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Thing", Name: "a", UID: owner}}}}
			wanted := n.Labels["tea"] == "true" && (!s.old || first)
			if s.once {
				wanted = wanted && first
				known[n.Name] = wanted
			}
			switch {
			case wanted:
				_ = w.Create(ctx, m)
			case !s.leaves:
				_ = client.IgnoreNotFound(w.Delete(ctx, m))
			}
		}
	}
}

// Labels are those of selectors of namespaces, wherever an object has some.
func TestChosenBy(t *testing.T) {
	got := chosenBy(map[string]any{
		"selector":          map[string]any{"matchLabels": map[string]any{"app": "tea"}},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"a": "1"}, "matchExpressions": []any{}},
		"targets":           []any{map[string]any{"podNamespaceSelector": map[string]any{"matchLabels": map[string]any{"b": "2"}}}},
		"namespace":         "n",
	})
	if want := map[string]string{"a": "1", "b": "2"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
