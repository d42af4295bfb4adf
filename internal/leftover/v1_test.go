package leftover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
)

func init() {
	olmv0.Scheme().AddKnownTypes(olmv1.GroupVersion, &olmv1.ClusterExtension{}, &olmv1.ClusterExtensionList{}, &olmv1.ClusterCatalog{}, &olmv1.ClusterCatalogList{})
}

// ranV1 is what 'bundle run' of the package tea makes under OLM v1, and what that makes for it.
func ranV1() []client.Object {
	owned := definition("teas.example.com", 4)
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: olmv1.KindExtension, Name: "tea", UID: "1"}} // newCleaner numbers them
	return []client.Object{
		named(&corev1.Namespace{}, "tea", 1, runOfTea),
		named(&olmv1.ClusterExtension{}, "tea", 2, runOfTea),
		named(&olmv1.ClusterCatalog{}, "olmkit-run-tea", 2, runOfTea),
		named(&corev1.ServiceAccount{}, "tea/tea-installer", 2, runOfTea),
		named(&rbacv1.ClusterRole{}, "tea-installer", 2, runOfTea),
		owned,
		definition("cups.example.org", 4),
	}
}

// TestRunsUnderOLMv1: with a ClusterExtension OLM v1 deletes its definitions, so that it stays, with all that it needs, while these
// have objects, or cannot be read. Else it goes before what it needs.
func TestRunsUnderOLMv1(t *testing.T) {
	all := []string{
		"ClusterCatalog/olmkit-run-tea", "ClusterExtension/tea", "ClusterRole/tea-installer", "CustomResourceDefinition/teas.example.com",
		"Namespace/tea", "ServiceAccount/tea/tea-installer",
	}
	unreadable := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if partial, ok := list.(*metav1.PartialObjectMetadataList); ok && partial.Kind == "TeaList" && len(options) == 0 {
			return errors.New("the webhook does not answer")
		}
		return c.List(ctx, list, options...)
	}}
	for name, test := range map[string]struct {
		funcs     interceptor.Funcs
		add       []client.Object
		kept      []string
		why, fix  string
		deletions int
	}{
		"no objects":            {kept: nil, deletions: len(all)},
		"an object":             {interceptor.Funcs{}, []client.Object{tea("default/mine")}, all, "Tea/default/mine", "kubectl delete teas.example.com --all --all-namespaces", 0},
		"objects of a webhook":  {unreadable, nil, all, "the webhook does not answer", "kubectl delete clusterextensions.olm.operatorframework.io tea", 0},
		"what a walk left":      {interceptor.Funcs{}, []client.Object{named(&corev1.Namespace{}, "olmkit-samples", 1, ours)}, nil, "", "", len(all)},
		"another's definitions": {interceptor.Funcs{}, []client.Object{named(&olmv1.ClusterExtension{}, "cup", 1)}, nil, "", "", len(all)},
	} {
		t.Run(name, func(t *testing.T) {
			c, deleted := newCleaner(t, test.funcs, append(ranV1(), test.add...)...)
			removal, err := c.OfRuns().Remove(t.Context(), "tea")
			if err != nil {
				t.Fatal(err)
			}
			var kept []string
			for _, k := range removal.Kept {
				kept = append(kept, k.String())
				if k.String() == "ClusterExtension/tea" && !strings.Contains(k.Why, test.why) || !strings.Contains(k.Fix, test.fix) {
					t.Errorf("%s: %s; fix: %s", k, k.Why, k.Fix)
				}
			}
			if !slices.Equal(kept, test.kept) {
				t.Errorf("kept %q", kept)
			}
			if len(*deleted) != test.deletions || test.deletions > 0 && (*deleted)[0] != "ClusterExtension/tea" {
				t.Errorf("deleted %q", *deleted)
			}
		})
	}
}

// TestWalksUnderOLMv1: a walk's own objects go before its ClusterExtension, also where nobody takes their finalizers away; one that
// somebody made holds it.
func TestWalksUnderOLMv1(t *testing.T) {
	for name, test := range map[string]struct {
		add     []client.Object
		kept    int
		deleted []string
	}{
		"an operator that is gone": {nil, 0, []string{"Tea/olmkit-samples/green", "ClusterExtension/tea"}},
		"somebody's object":        {[]client.Object{tea("default/mine")}, 4, []string{"Tea/olmkit-samples/green", "Namespace/olmkit-samples"}},
	} {
		t.Run(name, func(t *testing.T) {
			green := tea("olmkit-samples/green", ours)
			green.Finalizers = []string{"tea.example.com/goodbye"}
			owned := definition("teas.example.com", 4)
			owned.OwnerReferences = []metav1.OwnerReference{{Kind: olmv1.KindExtension, Name: "tea", UID: "0"}} // newCleaner numbers them
			c, deleted := newCleaner(t, interceptor.Funcs{}, append([]client.Object{
				named(&olmv1.ClusterExtension{}, "tea", 2, ours), named(&corev1.ServiceAccount{}, "olmkit-walk/tea-installer", 2, ours), owned, green,
				named(&corev1.Namespace{}, "olmkit-samples", 1, other),
			}, test.add...)...)
			r := removal{Cleaner: c, reasons: map[key]Kept{}, limit: time.Second, finalizers: time.Second}
			var err error
			if r.found, err = c.Find(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			if err := r.stages(t.Context()); err != nil || len(r.reasons) != test.kept {
				t.Errorf("%v: kept %+v", err, r.reasons)
			}
			if len(*deleted) < len(test.deleted) || !slices.Equal((*deleted)[:len(test.deleted)], test.deleted) {
				t.Errorf("deleted %q", *deleted)
			}
		})
	}
}

// TestExtensionThatHangs: what a ClusterExtension needs stays with one that does not go.
func TestExtensionThatHangs(t *testing.T) {
	refuse := interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
		if o.GetObjectKind().GroupVersionKind().Kind == olmv1.KindExtension {
			return errors.New("no")
		}
		return nil
	}}
	c, deleted := newCleaner(t, refuse, ranV1()...)
	r := removal{Cleaner: c.OfRuns(), walk: "tea", reasons: map[key]Kept{}}
	var err error
	if r.found, err = r.Find(t.Context(), "tea"); err != nil {
		t.Fatal(err)
	}
	if err := r.removeExtensions(t.Context()); err != nil || len(r.todo()) > 0 || len(*deleted) > 0 {
		t.Errorf("%v: %v is to be removed, %q was", err, r.todo(), *deleted)
	}
	if n := len(r.found.Objects); n != 6 {
		t.Errorf("%d objects: %v", n, r.found.Names())
	}
}
