package walk

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clientretry "k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/test/support/expect"
)

// restoredThings are as many Things of a user, of which one kind of shape has a note.
func restoredThings(count int) *Restored {
	d := thingDefinition()
	d.Status.StoredVersions = []string{"v1"}
	r := &Restored{Definitions: []*apiextensionsv1.CustomResourceDefinition{d}, Mode: lifecycle.AllNamespaces, Notes: []string{"it was read"}}
	for i := range count {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(i + 1)}, "status": map[string]any{"seen": true}}}
		o.SetGroupVersionKind(thingKind)
		o.SetNamespace("shop")
		o.SetName(fmt.Sprintf("thing-%02d", i))
		if i%2 == 1 {
			o.Object["spec"].(map[string]any)["note"] = o.GetName() + "'s"
		}
		r.Objects = append(r.Objects, o)
	}
	return r
}

// A walk with restored objects is about these: what an upgrade loses of them is told, once for all that lose the same, and nothing
// is told where it loses nothing. The bundle's own sample is not made.
func TestRestore(t *testing.T) {
	const count = 40
	for name, loses := range map[string]bool{"sound": false, "lossy": true} {
		t.Run(name, func(t *testing.T) {
			p, plan := things(t, "v1", "v2")
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.on = func(call string) error {
					if call == "Request" && loses && w.called("Request") == 2 {
						return w.dropNotes(t)
					}
					return nil
				}
				r, err := w.walk(t.Context(), t, p, plan, Options{Restore: restoredThings(count)})
				if err != nil {
					t.Fatal(err)
				}
				hop := r.Hops[0]
				if !loses {
					if hop.Result != report.Passed || codes(hop.Findings) != "" {
						t.Errorf("the hop %s: %s", hop.Result, expect.Said(hop.Findings))
					}
				} else if got := strings.Join(expect.Said(hop.Findings), "\n"); hop.Result != report.Failed || strings.Count(got, code.FieldLost) != 1 ||
					!strings.Contains(got, `spec.note was "thing-01's" and is gone`) || !strings.Contains(got, fmt.Sprintf("the same of %d more", count/2-1)) {
					t.Errorf("the hop %s: %s", hop.Result, got)
				}
				if got := strings.Join(r.Cluster.Limitations, "; "); !strings.Contains(got, "it was read") {
					t.Errorf("limitations: %s", got)
				}
				list := w.thingsOf(t, "olmkit-samples")
				if len(list) > 0 {
					t.Errorf("%d samples were made", len(list))
				}
				for _, o := range w.thingsOf(t, "shop") {
					if seen, _, _ := unstructured.NestedBool(o.Object, "status", "seen"); !seen && !strings.HasSuffix(o.GetName(), "-olmkit-w") {
						t.Errorf("%s has lost its status", o.GetName())
					}
				}
			})
		})
	}
}

// TestRestoreMany: restored objects are listed, so that more of them take no more requests for single ones. One that somebody else
// changes in between is read again.
func TestRestoreMany(t *testing.T) {
	gets := func(count int, disturbed bool) (gets int) {
		p, plan := things(t, "v1", "v2")
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			if disturbed {
				w.rival = w.rivals(t)
			}
			r, err := w.walk(t.Context(), t, p, plan, Options{Restore: restoredThings(count)})
			if err != nil || r.Hops[0].Result != report.Passed || codes(r.Hops[0].Findings) != "" {
				t.Fatal(err, expect.Said(r.Hops[0].Findings))
			}
			for _, o := range w.thingsOf(t, "shop") {
				if seen, _, _ := unstructured.NestedBool(o.Object, "status", "seen"); !seen && !strings.HasSuffix(o.GetName(), "-olmkit-w") {
					t.Errorf("%s has lost its status", o.GetName())
				}
			}
			gets = w.gets
		})
		return gets
	}
	few, many, again := gets(10, false), gets(50, false), gets(50, true)
	if many-few >= 40 {
		t.Errorf("%d single objects are read of 10, and %d of 50", few, many)
	}
	if again-many < 80 { // each is made, and all but a few chosen ones are written back
		t.Errorf("%d single objects are read of 50, and %d if others write them as well", many, again)
	}
}

// rivals writes each object once before its status is restored, and once before it is written back.
func (w *world) rivals(t *testing.T) func(*unstructured.Unstructured) {
	var mu sync.Mutex
	written := map[string]bool{}
	return func(o *unstructured.Unstructured) {
		phase := fmt.Sprint("rival-", w.called("Request"))
		mu.Lock()
		defer mu.Unlock()
		if written[o.GetName()+phase] || strings.HasSuffix(o.GetName(), "-olmkit-w") {
			return
		}
		written[o.GetName()+phase] = true
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(thingKind)
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(o), now); err != nil {
			t.Error(err)
			return
		}
		now.SetAnnotations(map[string]string{observe.Writes: phase}) // which the operator passes over
		if err := w.Update(context.Background(), now); err != nil {
			t.Error(err)
		}
	}
}

func (w *world) thingsOf(t *testing.T, namespace string) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(thingKind.GroupVersion().WithKind("ThingList"))
	if err := w.List(context.Background(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// dropNotes takes the note out of every Thing.
func (w *world) dropNotes(t *testing.T) error {
	ctx := context.Background()
	for _, o := range w.thingsOf(t, "shop") {
		// The walk's own writes come in between.
		err := clientretry.RetryOnConflict(clientretry.DefaultBackoff, func() error {
			if err := w.Get(ctx, client.ObjectKeyFromObject(&o), &o); err != nil {
				return err
			}
			unstructured.RemoveNestedField(o.Object, "spec", "note")
			return w.Update(ctx, &o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// refusing creates nothing.
type refusing struct {
	dynamic.Interface
	dynamic.NamespaceableResourceInterface
}

func (r refusing) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return r
}
func (r refusing) Namespace(string) dynamic.ResourceInterface { return r }

func (r refusing) Create(context.Context, *unstructured.Unstructured, metav1.CreateOptions, ...string) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewInvalid(thingKind.GroupKind(), "thing", nil)
}

// The definition stores objects in its own version again, also where all that were stored in an older one are refused.
func TestRestoreRefused(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	w := newWorld()
	walk := w.connect(t, p, plan, Options{Restore: &Restored{}})
	walk.Dynamic = refusing{}
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"}}
	d.Spec.Names.Kind = "Thing"
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}, {Name: "v1beta1", Served: true}}
	if err := w.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	findings, err := walk.restoreAs(t.Context(), walk.releases["v1"], d, "v1beta1", restoredThings(2).Objects, nil)
	if err != nil || len(findings) != 2 {
		t.Fatal(err, findings)
	}
	now := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(d), now); err != nil || definition.StorageVersion(now) != "v1" || now.ResourceVersion == d.ResourceVersion {
		t.Errorf("%v; %+v", err, now.Spec.Versions)
	}
}
