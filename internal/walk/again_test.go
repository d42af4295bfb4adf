package walk

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/olmkit/olmkit/internal/observe"
)

// What belonged to an object that is gone is deleted before another of its name is created, and nothing else; where some of it stays, or may not be
// deleted, none is.
func TestCollect(t *testing.T) {
	settings := func(name string, owners ...types.UID) *corev1.ConfigMap {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		for _, owner := range owners {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Thing", Name: "a", UID: owner})
		}
		return m
	}
	for name, c := range map[string]struct {
		had     []*corev1.ConfigMap
		refused bool
		done    bool
		left    []string
	}{
		"all of it is its own":       {had: []*corev1.ConfigMap{settings("mine", "old"), settings("also", "old")}, done: true},
		"it is kept on purpose":      {had: []*corev1.ConfigMap{settings("mine", "old"), settings("kept")}, done: true, left: []string{"kept"}},
		"it is another's by now":     {had: []*corev1.ConfigMap{settings("theirs", "new")}, done: true, left: []string{"theirs"}},
		"somebody else owns it, too": {had: []*corev1.ConfigMap{settings("shared", "old", "new")}, left: []string{"shared"}},
		"it may not be deleted":      {had: []*corev1.ConfigMap{settings("mine", "old")}, refused: true, left: []string{"mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &newObject{Object: &observe.Object{Kind: "Thing", Namespace: "n", Name: "a", UID: "old"}, had: map[string]observe.Operand{}}
				cluster := newWorld().WithWatch
				for _, m := range c.had {
					if err := cluster.Create(t.Context(), m); err != nil {
						t.Fatal(err)
					}
					made := observe.Operand{Kind: "ConfigMap", Namespace: "n", Name: m.Name, UID: m.UID}
					o.had[made.String()] = made
				}
				asked := interceptor.NewClient(cluster, interceptor.Funcs{Delete: func(ctx context.Context, asked client.WithWatch, m client.Object, options ...client.DeleteOption) error {
					if c.refused {
						return denial(m)
					}
					return asked.Delete(ctx, m, options...)
				}})
				w := &walk{Cluster: &observe.Cluster{Dynamic: dynamicOf{WithWatch: asked}}}
				done, err := w.collect(t.Context(), o)
				if err != nil || done != c.done {
					t.Errorf("%t, %v", done, err)
				}
				var list corev1.ConfigMapList
				if err := cluster.List(t.Context(), &list); err != nil {
					t.Fatal(err)
				}
				var left []string
				for _, m := range list.Items {
					left = append(left, m.Name)
				}
				if !slices.Equal(left, c.left) {
					t.Errorf("left are %q", left)
				}
			})
		})
	}
}
