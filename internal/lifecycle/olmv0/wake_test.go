package olmv0

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Wake changes nothing but a label, and nothing of other namespaces, nor what OLM copied from them.
func TestWake(t *testing.T) {
	at := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	mine := &v1alpha1.ClusterServiceVersion{ObjectMeta: at("operators", "tea.v2"), Status: v1alpha1.ClusterServiceVersionStatus{Phase: v1alpha1.CSVPhasePending}}
	copied := &v1alpha1.ClusterServiceVersion{ObjectMeta: at("operators", "other.v1")}
	copied.Labels = map[string]string{v1alpha1.CopiedLabelKey: "elsewhere"}
	touched := []client.Object{mine, &v1alpha1.Subscription{ObjectMeta: at("operators", "tea")}, &v1alpha1.InstallPlan{ObjectMeta: at("operators", "install-1")}}
	left := []client.Object{copied, &v1alpha1.ClusterServiceVersion{ObjectMeta: at("elsewhere", "tea.v2")}}
	var refuse error
	c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(touched...).WithObjects(left...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if refuse != nil {
				return refuse
			}
			return c.Patch(ctx, o, patch, options...)
		},
	}).Build()}
	if err := c.Wake(t.Context(), lifecycle.Place{Namespace: "operators"}); err != nil {
		t.Fatal(err)
	}
	for _, o := range append(touched, left...) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range touched {
		if o.GetLabels()[wokenLabel] == "" || len(o.GetLabels()) != 1 || len(o.GetAnnotations()) > 0 {
			t.Errorf("%s has the labels %v and the annotations %v", Describe(o), o.GetLabels(), o.GetAnnotations())
		}
	}
	for _, o := range left {
		if o.GetLabels()[wokenLabel] != "" {
			t.Errorf("%s has the labels %v", Describe(o), o.GetLabels())
		}
	}
	if mine.Status.Phase != v1alpha1.CSVPhasePending {
		t.Errorf("%+v", mine.Status)
	}
	refuse = errors.New("no right to patch")
	if err := c.Wake(t.Context(), lifecycle.Place{Namespace: "operators"}); !errors.Is(err, refuse) || !strings.Contains(err.Error(), "Subscription/operators/tea") {
		t.Error(err)
	}
}
