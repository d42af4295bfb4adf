package olmv1

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
)

// brokenHost is a cluster on which no certificates can be issued.
type brokenHost struct{}

func (brokenHost) PushImage(context.Context, string, v1.Image) (string, error) { return "", nil }
func (brokenHost) ProvideCertificates(context.Context) error                   { return errors.New("no authority") }
func (brokenHost) Describe() cluster.Description {
	return cluster.Description{Simulates: true}
}

// established is a cluster where definitions are established as soon as they are made.
func established(objects ...client.Object) *Client {
	funcs := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "CustomResourceDefinition" {
			u = u.DeepCopy()
			u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
			o = u
		}
		return c.Create(ctx, o, options...)
	}}
	return &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()}
}

// TestInstallKeptInPart: an installation that fails says what it made, and no more, and that can be removed; what was there stays.
func TestInstallKeptInPart(t *testing.T) {
	theirs := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "issuers.cert-manager.io"}}
	theirs.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	c := established(theirs)
	made, err := InstallKept(t.Context(), c, brokenHost{})
	if err == nil || !strings.Contains(err.Error(), "no authority") || len(made) == 0 || slices.Contains(made.Names(), "CustomResourceDefinition/issuers.cert-manager.io") {
		t.Fatalf("%v: it made %q", err, made.Names())
	}
	if own, err := c.InstalledKept(t.Context()); err != nil || len(own) != len(made) {
		t.Errorf("%v: %q are its own, and it made %q", err, own.Names(), made.Names())
	}
	if err := c.Remove(t.Context(), made, time.Second); err != nil {
		t.Fatal(err)
	}
	var left apiextensionsv1.CustomResourceDefinitionList
	if err := c.List(t.Context(), &left); err != nil || len(left.Items) != 1 || left.Items[0].Name != theirs.Name {
		t.Errorf("%v: left are %v", err, left.Items)
	}
}

// TestInstallKeptLeavesOthersAlone: an OLM v1 that something else installed is neither completed nor removed.
func TestInstallKeptLeavesOthersAlone(t *testing.T) {
	theirs := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clusterextensions.olm.operatorframework.io"}}
	c := established(theirs)
	made, err := InstallKept(t.Context(), c, brokenHost{})
	if err == nil || !strings.Contains(err.Error(), "olmkit did not install it") || len(made) > 0 || hint.Of(err) == "" {
		t.Errorf("%v: it made %q", err, made.Names())
	}
	if own, err := c.InstalledKept(t.Context()); err != nil || len(own) > 0 {
		t.Errorf("%v: its own are %q", err, own.Names())
	}
}

// TestUsers: what OLM v1 made for a ClusterExtension, and its own certificates, use nothing.
func TestUsers(t *testing.T) {
	certificate := func(namespace string, owners ...metav1.OwnerReference) client.Object {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"})
		o.SetNamespace(namespace)
		o.SetName("c")
		o.SetOwnerReferences(owners)
		return o
	}
	c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(
		&ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: "tea"}}, &ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "teas"}},
		certificate(Namespace), certificate("mine"), certificate("tea", metav1.OwnerReference{Kind: KindExtension, Name: "tea", UID: "1"}),
	).Build()}
	want := []string{"ClusterExtension/tea", "ClusterCatalog/teas", "Certificate/mine/c"}
	if users, err := c.Users(t.Context()); err != nil || !slices.Equal(users, want) {
		t.Errorf("%v: %q, want %q", err, users, want)
	}
}

// TestRemoveSaysWhatStays names what does not go.
func TestRemoveSaysWhatStays(t *testing.T) {
	held := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace, Finalizers: []string{"example.com/held"}}}
	c := established(held)
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	o.SetName(Namespace)
	if err := c.Remove(t.Context(), Installation{o}, 300*time.Millisecond); err == nil || !strings.Contains(err.Error(), "Namespace/olmv1-system still there") {
		t.Error(err)
	}
}

// TestRulesWith: what a ServiceAccount had it keeps only if it is told to.
func TestRulesWith(t *testing.T) {
	rule := func(name string) rbacv1.PolicyRule { return rbacv1.PolicyRule{ResourceNames: []string{name}} }
	now, wanted := []rbacv1.PolicyRule{rule("a"), rule("b")}, []rbacv1.PolicyRule{rule("b"), rule("c")}
	if got := rulesWith(now, false, wanted); len(got) != 2 || got[0].ResourceNames[0] != "b" {
		t.Errorf("%v", got)
	}
	if got := rulesWith(now, true, wanted); len(got) != 3 || got[2].ResourceNames[0] != "c" {
		t.Errorf("%v", got)
	}
}
