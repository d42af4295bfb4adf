package leftover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

var teaKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Tea"}

// Tea is a kind that an operator brings.
type Tea struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
}

func (t *Tea) DeepCopyObject() runtime.Object {
	return &Tea{TypeMeta: t.TypeMeta, ObjectMeta: *t.DeepCopy()}
}

// TeaList is a list of Teas.
type TeaList struct {
	metav1.TypeMeta
	metav1.ListMeta `json:"metadata"`
	Items           []Tea `json:"items"`
}

func (l *TeaList) DeepCopyObject() runtime.Object {
	c := &TeaList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy()}
	for _, t := range l.Items {
		c.Items = append(c.Items, *t.DeepCopyObject().(*Tea))
	}
	return c
}

func init() {
	olmv0.Scheme().AddKnownTypes(teaKind.GroupVersion(), &Tea{}, &TeaList{})
}

// noon is when the walk began.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// named names o and says that it was made so many minutes after noon, with labels of the form KEY=VALUE.
func named[T client.Object](o T, name string, minutes int, labels ...string) T {
	namespace, name, inside := strings.Cut(name, "/")
	if !inside {
		namespace, name = "", namespace
	}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetCreationTimestamp(metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)))
	o.SetLabels(map[string]string{})
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		o.GetLabels()[key] = value
	}
	return o
}

const (
	ours  = cluster.WalkLabel + "=w1"
	other = cluster.WalkLabel + "=w2"
)

func tea(name string, labels ...string) *Tea { return named(&Tea{}, name, 5, labels...) }

func definition(name string, minutes int, labels ...string) *apiextensionsv1.CustomResourceDefinition {
	d := named(&apiextensionsv1.CustomResourceDefinition{}, name, minutes, labels...)
	plural, group, _ := strings.Cut(name, ".")
	kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	d.Spec.Group, d.Spec.Names = group, apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List"}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}}
	return d
}

func plan(name string, phase v1alpha1.InstallPlanPhase) *v1alpha1.InstallPlan {
	p := named(&v1alpha1.InstallPlan{}, name, 3)
	p.Status.Phase = phase
	return p
}

// killed is what a walk that was killed leaves with the OLM that it installed.
func killed() []client.Object {
	home := named(&corev1.Namespace{}, "olmkit-walk", 1, ours)
	home.Annotations = map[string]string{olmv0.BringsAnnotation: "CustomResourceDefinition/teas.example.com,ClusterRole/tea-editor"}
	return []client.Object{
		home,
		named(&corev1.Namespace{}, "olmkit-catalog", 1, ours),
		named(&corev1.ConfigMap{}, "olmkit-catalog/olmkit-1-0", 1, ours),
		named(&v1alpha1.CatalogSource{}, "olmkit-walk/olmkit", 2, ours),
		named(&operatorsv1.OperatorGroup{}, "olmkit-walk/olmkit-walk", 2, ours),
		named(&v1alpha1.Subscription{}, "olmkit-walk/tea", 2, ours),
		plan("olmkit-walk/install-1", v1alpha1.InstallPlanPhaseComplete),
		named(&v1alpha1.ClusterServiceVersion{}, "olmkit-walk/tea.v1", 3),
		definition("teas.example.com", 4),
		named(&rbacv1.ClusterRole{}, "tea-editor", 4, "olm.managed=true"),
		named(&rbacv1.ClusterRole{}, "tea.v1-abc", 4, "olm.owner.namespace=olmkit-walk"),
		named(&admissionregistrationv1.ValidatingWebhookConfiguration{}, "tea-hook", 4, "olm.owner.namespace=olmkit-walk"),
		named(&admissionregistrationv1.ValidatingAdmissionPolicy{}, "olmkit-fault", 5, ours),
		named(&operatorsv1.Operator{}, "tea.olmkit-walk", 4),
		tea("olmkit-samples/green", ours),
		named(&corev1.Namespace{}, "olmkit-samples", 1, ours),
		definition("subscriptions.operators.coreos.com", 0, ours),
		named(&corev1.Namespace{}, "olm", 0, ours),
		named(&appsv1.Deployment{}, "olm/olm-operator", 0, ours),
	}
}

// users is what was on the cluster before the walk, or is somebody's.
func users() []client.Object {
	return []client.Object{
		named(&corev1.Namespace{}, "default", -9),
		named(&corev1.Namespace{}, "theirs", 9, "app.kubernetes.io/managed-by=olmkit"),
		definition("cups.example.com", 4, "operators.coreos.com/cup.theirs="),
		named(&rbacv1.ClusterRole{}, "theirs", 4, "olm.managed=true"),
		named(&rbacv1.ClusterRole{}, "cup.v1-abc", 4, "olm.owner.namespace=theirs"),
		named(&v1alpha1.ClusterServiceVersion{}, "olmkit-walk/everywhere.v1", 9, v1alpha1.CopiedLabelKey+"=theirs"),
		// By its name the walk could have brought it, but it is older.
		named(&rbacv1.ClusterRole{}, "tea-viewer", -9, "olm.managed=true"),
	}
}

// newCleaner returns a Cleaner of a cluster with objects, and what is deleted there, in order.
func newCleaner(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) (*Cleaner, *[]string) {
	t.Helper()
	var deleted []string
	refuse := funcs.Delete
	funcs.Delete = func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
		if refuse != nil {
			if err := refuse(ctx, c, o, options...); err != nil {
				return err
			}
		}
		err := c.Delete(ctx, o, options...)
		if err == nil {
			deleted = append(deleted, nameOf(t, o))
		}
		return err
	}
	kinds := []schema.GroupVersionKind{teaKind}
	for i, o := range objects {
		o.SetUID(types.UID(strconv.Itoa(i)))
		kind, err := apiutil.GVKForObject(o, olmv0.Scheme())
		if err != nil {
			kind = o.GetObjectKind().GroupVersionKind()
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	c := fake.NewClientBuilder().WithScheme(olmv0.Scheme()).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return &Cleaner{label: cluster.WalkLabel, olm: &olmv0.Client{WithWatch: c}, kinds: func() ([]schema.GroupVersionKind, error) { return kinds, nil }}, &deleted
}

func nameOf(t *testing.T, o client.Object) string {
	t.Helper()
	kind, err := apiutil.GVKForObject(o, olmv0.Scheme())
	if err != nil {
		kind = o.GetObjectKind().GroupVersionKind()
	}
	return kind.Kind + "/" + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

func namesOf(t *testing.T, objects []client.Object) []string {
	t.Helper()
	var names []string
	for _, o := range objects {
		names = append(names, nameOf(t, o))
	}
	slices.Sort(names)
	return names
}

func sortedNames(objects []Object) []string {
	return slices.Sorted(slices.Values(Found{Objects: objects}.Names()))
}

func TestFind(t *testing.T) {
	c, _ := newCleaner(t, interceptor.Funcs{}, append(killed(), users()...)...)
	for walk, want := range map[string][]string{"": namesOf(t, killed()), "w1": namesOf(t, killed()), "w2": nil} {
		found, err := c.Find(t.Context(), walk)
		if got := sortedNames(found.Objects); err != nil || !slices.Equal(got, want) {
			t.Errorf("of walk %q: %v\n got %q\nwant %q", walk, err, got, want)
		}
	}
	found, err := c.Find(t.Context(), "")
	if got := found.Walks(); err != nil || !slices.Equal(got, []string{"w1"}) {
		t.Errorf("walks %q, %v", got, err)
	}
}

// In a namespace that somebody made before only that is the walk's what its Subscription brought.
func TestFindInSomebodysNamespace(t *testing.T) {
	const component = componentPrefix + "tea.theirs="
	left := []client.Object{
		named(&v1alpha1.Subscription{}, "theirs/tea", 1, ours),
		named(&v1alpha1.ClusterServiceVersion{}, "theirs/tea.v1", 2, component),
		definition("teas.example.com", 2, component),
		named(&operatorsv1.Operator{}, "tea.theirs", 2),
	}
	c, _ := newCleaner(t, interceptor.Funcs{}, append(slices.Clone(left),
		named(&corev1.Namespace{}, "theirs", -9),
		named(&v1alpha1.ClusterServiceVersion{}, "theirs/cup.v1", 3),
		named(&v1alpha1.InstallPlan{}, "theirs/install-1", 3),
		named(&operatorsv1.Operator{}, "cup.theirs", 3),
		named(&rbacv1.ClusterRole{}, "cup.v1-abc", 4, "olm.owner.namespace=theirs"),
		definition("pots.example.com", -9, component),
	)...)
	found, err := c.Find(t.Context(), "")
	if got := sortedNames(found.Objects); err != nil || !slices.Equal(got, namesOf(t, left)) {
		t.Errorf("%v: %q", err, got)
	}
}

// A kind that cannot be listed does not hide the others, and is told.
func TestFindTellsWhatItCannotRead(t *testing.T) {
	broken := errors.New("the webhook is gone")
	c, _ := newCleaner(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if list.GetObjectKind().GroupVersionKind().Group == teaKind.Group {
			return broken
		}
		return c.List(ctx, list, options...)
	}}, killed()...)
	found, err := c.Find(t.Context(), "")
	if err != nil || len(found.Objects) != len(killed())-1 || len(found.Unread) != 1 || found.Unread[0] != "list Tea.example.com: the webhook is gone" {
		t.Errorf("%v: %d objects, unread %q", err, len(found.Objects), found.Unread)
	}
}

func TestRemove(t *testing.T) {
	c, deleted := newCleaner(t, interceptor.Funcs{}, append(killed(), users()...)...)
	r, err := c.Remove(t.Context(), "")
	if err != nil || len(r.Kept) > 0 || !slices.Equal(sortedNames(r.Removed), namesOf(t, killed())) {
		t.Errorf("%v: kept %+v, removed %q", err, r.Kept, sortedNames(r.Removed))
	}
	if got := slices.Sorted(slices.Values(*deleted)); !slices.Equal(got, namesOf(t, killed())) {
		t.Errorf("deleted %q", got)
	}
	at := func(name string) int { return slices.Index(*deleted, name) }
	order := []string{
		"ValidatingAdmissionPolicy/olmkit-fault", "Tea/olmkit-samples/green", "Subscription/olmkit-walk/tea", "ClusterServiceVersion/olmkit-walk/tea.v1",
		"CustomResourceDefinition/teas.example.com", "OperatorGroup/olmkit-walk/olmkit-walk", "ClusterRole/tea.v1-abc", "Namespace/olmkit-walk",
		"Operator/tea.olmkit-walk", "Deployment/olm/olm-operator", "CustomResourceDefinition/subscriptions.operators.coreos.com",
	}
	if !slices.IsSortedFunc(order, func(a, b string) int { return at(a) - at(b) }) {
		t.Errorf("the order is %q", *deleted)
	}
	again, err := c.Remove(t.Context(), "")
	if err != nil || len(again.Removed)+len(again.Kept) > 0 {
		t.Errorf("a second time: %v, %+v", err, again)
	}
}

// InstallPlans that OLM works on are deleted only when OLM is through with them, also one that it made since the walk's objects
// were looked for.
func TestRemoveAwaitsPlans(t *testing.T) {
	for _, phase := range []v1alpha1.InstallPlanPhase{v1alpha1.InstallPlanPhaseNone, v1alpha1.InstallPlanPhaseInstalling} {
		lists, early := 0, false
		c, deleted := newCleaner(t, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				plans, ok := list.(*v1alpha1.InstallPlanList)
				if !ok {
					return c.List(ctx, list, options...)
				}
				if lists++; lists < 4 {
					plans.Items = append(plans.Items, *plan("olmkit-walk/install-2", phase))
				}
				return nil
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if o.GetName() == "install-1" && lists < 4 {
					early = true
				}
				return c.Delete(ctx, o, options...)
			},
		}, killed()...)
		if _, err := c.Remove(t.Context(), ""); err != nil || early || lists < 4 {
			t.Errorf("%q: %v: deleted %q after %d lists", phase, err, *deleted, lists)
		}
	}
}

// TestUnderWay leaves alone what nobody approved: OLM does nothing about it.
func TestUnderWay(t *testing.T) {
	p := plan("ns/p", v1alpha1.InstallPlanPhaseRequiresApproval)
	if underWay(*p) {
		t.Error("nobody approved it")
	}
	if p.Spec.Approved = true; !underWay(*p) {
		t.Error("it is approved")
	}
	if underWay(*plan("ns/p", v1alpha1.InstallPlanPhaseFailed)) {
		t.Error("it failed")
	}
}

// A definition that OLM makes once more is removed once more, even if it comes as the last thing that OLM does; one that
// somebody else makes stays.
func TestRemoveWhatOLMRemakes(t *testing.T) {
	for _, test := range []struct {
		name, when string
		labels     []string
	}{
		{"by OLM", "olmkit-walk", []string{"olm.managed=true"}},
		{"by OLM, at its end", "olm-operator", []string{"olm.managed=true"}},
		{"by somebody", "olmkit-walk", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, _ := newCleaner(t, interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
					if o.GetName() == test.when && o.GetNamespace() != "olmkit-walk" {
						d := definition("teas.example.com", 9, test.labels...)
						d.UID = "another"
						if err := c.Create(ctx, d); err != nil {
							return err
						}
					}
					return c.Delete(ctx, o, options...)
				},
			}, killed()...)
			if _, err := c.Remove(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			err := c.olm.Get(t.Context(), client.ObjectKey{Name: "teas.example.com"}, &apiextensionsv1.CustomResourceDefinition{})
			if (test.labels == nil) != (err == nil) {
				t.Errorf("read after the removal: %v", err)
			}
		})
	}
}

// A role that OLM makes once more, as it was at work on the OperatorGroup when that was deleted, is found by the namespace that is
// gone by then.
func TestRemoveRoleThatOLMRemakes(t *testing.T) {
	role := named(&rbacv1.ClusterRole{}, "olm.og.olmkit-walk.edit-abc", 9, "olm.managed=true", "olm.owner.namespace=olmkit-walk")
	c, _ := newCleaner(t, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if nameOf(t, o) == "Namespace/olmkit-walk" {
				if err := c.Create(ctx, role); err != nil {
					return err
				}
			}
			return c.Delete(ctx, o, options...)
		},
	}, killed()...)
	r, err := c.Remove(t.Context(), "")
	if err != nil || !slices.Contains(sortedNames(r.Removed), nameOf(t, role)) {
		t.Errorf("%v: removed %q", err, sortedNames(r.Removed))
	}
	if err := c.olm.Get(t.Context(), client.ObjectKeyFromObject(role), role); !apierrors.IsNotFound(err) {
		t.Errorf("read after the removal: %v", err)
	}
}

// A walk that ended before it came to install anything leaves namespaces alone, which go too.
func TestRemoveNamespacesAlone(t *testing.T) {
	c, deleted := newCleaner(t, interceptor.Funcs{}, named(&corev1.Namespace{}, "olmkit-walk", 1, ours), named(&corev1.Namespace{}, "another", 1, other))
	if _, err := c.Remove(t.Context(), "w1"); err != nil || fmt.Sprint(*deleted) != "[Namespace/olmkit-walk]" {
		t.Errorf("%v: deleted %q", err, *deleted)
	}
}

// What somebody else uses by now stays, and the removal says so.
func TestRemoveKeepsWhatIsUsed(t *testing.T) {
	theirs := []client.Object{tea("default/mine"), named(&v1alpha1.Subscription{}, "default/cup", 9)}
	c, deleted := newCleaner(t, interceptor.Funcs{}, append(killed(), theirs...)...)
	r, err := c.Remove(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, k := range r.Kept {
		kept = append(kept, k.String()+": "+k.Why)
		if k.Fix == "" {
			t.Errorf("nothing is said of how to remove %s", k)
		}
	}
	const inUse = "OLM is in use: Subscription/default/cup"
	if want := []string{
		"CustomResourceDefinition/subscriptions.operators.coreos.com: " + inUse,
		"CustomResourceDefinition/teas.example.com: it has objects that olmkit did not make: Tea/default/mine",
		"Deployment/olm/olm-operator: " + inUse, "Namespace/olm: " + inUse,
	}; !slices.Equal(kept, want) {
		t.Errorf("kept %q", kept)
	}
	if len(*deleted) != len(killed())-len(kept) || slices.ContainsFunc(theirs, func(o client.Object) bool { return slices.Contains(*deleted, nameOf(t, o)) }) {
		t.Errorf("deleted %q", *deleted)
	}
}

// What cannot be deleted does not keep the rest from being removed.
func TestRemoveGoesOn(t *testing.T) {
	c, _ := newCleaner(t, interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
		if o.GetName() == "tea-hook" {
			return errors.New("forbidden")
		}
		return nil
	}}, killed()...)
	r := removal{Cleaner: c, reasons: map[key]Kept{}, limit: time.Second, finalizers: time.Second}
	var err error
	if r.found, err = c.Find(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := r.stages(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := c.Find(t.Context(), "")
	if err != nil || len(left.Objects) != 0 {
		// Its namespace is gone, so that nothing says any more that it was the walk's: it was told before.
		t.Errorf("%v: left %q", err, left.Names())
	}
	if len(r.reasons) != 1 {
		t.Errorf("it says %+v", r.reasons)
	}
	for _, k := range r.reasons {
		if k.String() != "ValidatingWebhookConfiguration/tea-hook" || k.Why != "it cannot be deleted: forbidden" ||
			k.Fix != "see what holds it with 'kubectl get validatingwebhookconfiguration.admissionregistration.k8s.io tea-hook -o yaml', and delete it" {
			t.Errorf("it says %s: %s: %s", k, k.Why, k.Fix)
		}
	}
}
