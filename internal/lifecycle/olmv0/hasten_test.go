package olmv0

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// unpacking is a Job that unpacks a bundle, completed so many seconds after the first, or not if that is negative.
func unpacking(name string, completed int) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{unpackLabel: name}}}
	if completed >= 0 {
		j.Status.CompletionTime = &metav1.Time{Time: time.Unix(int64(1000+completed), 0)}
	}
	return j
}

// The Subscription is labelled once for each Job that ends while OLM says that it unpacks, and with nothing else.
func TestHasten(t *testing.T) {
	unlabelled := unpacking("elsewhere", 9)
	unlabelled.Labels = nil
	for name, test := range map[string]struct {
		unpacks corev1.ConditionStatus
		jobs    []client.Object
		labels  map[string]string
		want    string
		writes  bool
	}{
		"it unpacks nothing":      {corev1.ConditionFalse, []client.Object{unpacking("a", 1)}, nil, "", false},
		"the Job is under way":    {corev1.ConditionTrue, []client.Object{unpacking("a", -1), unlabelled}, nil, "", false},
		"the Job has ended":       {corev1.ConditionTrue, []client.Object{unpacking("b", 2), unpacking("a", 1), unpacking("c", -1)}, nil, "uid-b", true},
		"OLM was told of it":      {corev1.ConditionTrue, []client.Object{unpacking("b", 2), unpacking("a", 1)}, map[string]string{UnpackedLabel: "uid-b"}, "uid-b", false},
		"OLM was told of another": {corev1.ConditionTrue, []client.Object{unpacking("b", 2), unpacking("a", 1)}, map[string]string{UnpackedLabel: "uid-a"}, "uid-b", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "tea", Labels: test.labels}, Spec: &v1alpha1.SubscriptionSpec{CatalogSourceNamespace: "olm"},
				Status: v1alpha1.SubscriptionStatus{Conditions: []v1alpha1.SubscriptionCondition{{Type: v1alpha1.SubscriptionBundleUnpacking, Status: test.unpacks}}},
			}
			c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(append(test.jobs, s)...).Build()}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
				t.Fatal(err)
			}
			before := s.ResourceVersion
			if err := c.Hasten(t.Context(), lifecycle.Place{Namespace: "operators", Package: "tea"}, c); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
				t.Fatal(err)
			}
			if s.Labels[UnpackedLabel] != test.want || s.ResourceVersion != before != test.writes {
				t.Errorf("labels %v, written %t", s.Labels, s.ResourceVersion != before)
			}
		})
	}
	c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).Build()}
	if err := c.Hasten(t.Context(), lifecycle.Place{Namespace: "operators", Package: "tea"}, c); err != nil {
		t.Errorf("without a Subscription: %v", err)
	}
}
