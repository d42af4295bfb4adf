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
	if mended, err := c.Wake(t.Context(), lifecycle.Place{Namespace: "operators"}); err != nil || mended != "" {
		t.Fatal(mended, err)
	}
	for _, o := range append(touched, left...) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range touched {
		if o.GetLabels()[WokenLabel] == "" || len(o.GetLabels()) != 1 || len(o.GetAnnotations()) > 0 {
			t.Errorf("%s has the labels %v and the annotations %v", Describe(o), o.GetLabels(), o.GetAnnotations())
		}
	}
	for _, o := range left {
		if o.GetLabels()[WokenLabel] != "" {
			t.Errorf("%s has the labels %v", Describe(o), o.GetLabels())
		}
	}
	if mine.Status.Phase != v1alpha1.CSVPhasePending {
		t.Errorf("%+v", mine.Status)
	}
	refuse = errors.New("no right to patch")
	if _, err := c.Wake(t.Context(), lifecycle.Place{Namespace: "operators"}); !errors.Is(err, refuse) || !strings.Contains(err.Error(), "Subscription/operators/tea") {
		t.Error(err)
	}
}

// Wake ends what OLM v0.46.0 cannot: the old version waits for the API that the new one took away, and the new one for the old.
func TestWakeEndsADeadlock(t *testing.T) {
	for name, test := range map[string]struct {
		old, next v1alpha1.ClusterServiceVersionPhase
		reason    v1alpha1.ConditionReason
		replaces  string
		want      v1alpha1.ClusterServiceVersionPhase
	}{
		"both wait":                  {"Pending", "Pending", v1alpha1.CSVReasonRequirementsNotMet, "tea.v1", "Succeeded"},
		"the old one is replaced":    {"Replacing", "Pending", v1alpha1.CSVReasonBeingReplaced, "tea.v1", "Replacing"},
		"the old one goes on":        {"Pending", "Pending", v1alpha1.CSVReasonNeedsReinstall, "tea.v1", "Pending"},
		"the new one goes on":        {"Pending", "InstallReady", v1alpha1.CSVReasonRequirementsNotMet, "tea.v1", "Pending"},
		"it does not replace it":     {"Pending", "Pending", v1alpha1.CSVReasonRequirementsNotMet, "", "Pending"},
		"another, which is not here": {"Pending", "Pending", v1alpha1.CSVReasonRequirementsNotMet, "tea.v0", "Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			old := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "tea.v1"}}
			old.Status.Phase, old.Status.Reason = test.old, test.reason
			old.Status.RequirementStatus = []v1alpha1.RequirementStatus{{Kind: "CustomResourceDefinition", Name: "teas.example.com", Status: v1alpha1.RequirementStatusReasonNotPresent, Message: "CRD version not served"}}
			next := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "tea.v2"}}
			next.Spec.Replaces, next.Status.Phase = test.replaces, test.next
			c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(old, next).WithStatusSubresource(old).Build()}
			mended, err := c.Wake(t.Context(), lifecycle.Place{Namespace: "n"})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
				t.Fatal(err)
			}
			if did := strings.Contains(mended, "teas.example.com is NotPresent: CRD version not served"); old.Status.Phase != test.want || did != (test.want == "Succeeded") {
				t.Errorf("%s, %q", old.Status.Phase, mended)
			}
		})
	}
}
