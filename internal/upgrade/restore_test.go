package upgrade

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientretry "k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/report"
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
						t.Errorf("the hop %s: %s", hop.Result, said(hop.Findings))
					}
				} else if got := strings.Join(said(hop.Findings), "\n"); hop.Result != report.Failed || strings.Count(got, codeFieldLost) != 1 ||
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

// What objects have lost is told once for the same fields, whatever their values are; other fields and kinds are told apart.
func TestSummarize(t *testing.T) {
	a := find(codeFieldLost, "A/n/1", `read as v1: spec.x was "a; b" and is gone; spec.y was 1 and is 2`)
	b := find(codeFieldLost, "A/n/2", `read as v1: spec.x was "c" and is gone; spec.y was {"z":"\""} and is "4; 5"`)
	c := find(codeFieldLost, "A/n/3", `read as v1: spec.x was "c" and is gone`)
	d := find(codeFieldLost, "B/n/1", `read as v1: spec.x was "c" and is gone`)
	e := find(codeSampleRefused, "A/n/1", `it is refused: A "1" is invalid: size is 0`)
	f := find(codeSampleRefused, "A/n/2", `it is refused: A "2" is invalid: size is 0`)
	got := summarize([]finding.Finding{a, b, c, d, e, f})
	if len(got) != 4 || got[3].Message != e.Message+"; the same of 1 more: A/n/2" || got[0].Message != a.Message+"; the same of 1 more: A/n/2" {
		t.Errorf("%d findings: %s", len(got), said(got))
	}
}
