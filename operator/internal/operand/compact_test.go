package operand

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// What the operator applied is told from what somebody changed by the digest alone, for each kind of object.
func TestCompact(t *testing.T) {
	t.Parallel()
	d := DesiredFor(&metav1.ObjectMeta{Name: "m", Namespace: "ns", UID: "uid"}, "cache.example.com/v1")
	d.Replicas, d.Image, d.ExtraArgs = 2, "example.com/memcached:1", []string{"-v"}
	// A quantity as people write it, which comes back in its canonical form.
	d.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m"), corev1.ResourceMemory: resource.MustParse("1024Mi")}
	other := d
	other.UID = "another"
	status := regexp.MustCompile(`,"f:status":.*$`)
	for name, test := range map[string]struct {
		live   client.Object
		wanted func(Desired) runtime.ApplyConfiguration
		change string
	}{
		"Deployment":          {&appsv1.Deployment{}, func(d Desired) runtime.ApplyConfiguration { return Deployment(d) }, `{"spec":{"replicas":5}}`},
		"Service":             {&corev1.Service{}, func(d Desired) runtime.ApplyConfiguration { return Service(d) }, `{"spec":{"selector":{"app":"another"}}}`},
		"PodDisruptionBudget": {&policyv1.PodDisruptionBudget{}, func(d Desired) runtime.ApplyConfiguration { return DisruptionBudget(d) }, `{"metadata":{"labels":{"app.kubernetes.io/name":"another"}}}`},
		"NetworkPolicy":       {&networkingv1.NetworkPolicy{}, func(d Desired) runtime.ApplyConfiguration { return NetworkPolicy(d) }, `{"spec":{"policyTypes":["Ingress"]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, c := t.Context(), fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithReturnManagedFields().Build()
			test.live.SetNamespace(d.Namespace)
			test.live.SetName(Name(d.Name))
			if err := c.Create(ctx, test.live.DeepCopyObject().(client.Object)); err != nil {
				t.Fatal(err)
			}
			read := func() client.Object {
				t.Helper()
				if err := c.Get(ctx, client.ObjectKeyFromObject(test.live), test.live); err != nil {
					t.Fatal(err)
				}
				// Unlike an API server, the fake one has the zero status applied, too.
				fields := test.live.GetManagedFields()
				for i := range fields {
					if own := fields[i].FieldsV1; own != nil {
						own.SetRawString(status.ReplaceAllString(own.GetRawString(), "}"))
					}
				}
				test.live.SetManagedFields(fields)
				return compact(test.live.DeepCopyObject().(client.Object))
			}
			if before := read(); applied(before) || asApplied(before, test.wanted(d)) {
				t.Error("somebody else's counts as applied")
			}
			if err := c.Apply(ctx, test.wanted(d), client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
				t.Fatal(err)
			}
			now := read()
			if !applied(now) || !asApplied(now, test.wanted(d)) {
				t.Error("what was applied does not count as applied")
			}
			if diff := cmp.Diff(now, compact(now)); diff != "" {
				t.Error("what is compact changes:", diff)
			}
			if asApplied(now, test.wanted(other)) {
				t.Error("another wish counts as applied")
			}
			if err := c.Patch(ctx, test.live, client.RawPatch("application/merge-patch+json", []byte(test.change)), client.FieldOwner("somebody")); err != nil {
				t.Fatal(err)
			}
			if changed := read(); !applied(changed) || asApplied(changed, test.wanted(d)) {
				t.Error("what somebody changed counts as applied")
			}
		})
	}
}

// Of a Deployment stays what is read, and of its conditions what is wrong.
func TestCompactDeployment(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	identity := metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u", ResourceVersion: "7", Generation: 3, DeletionTimestamp: &now, Finalizers: []string{"f"}, OwnerReferences: []metav1.OwnerReference{{Name: "m"}}}
	full := identity
	full.Labels, full.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate}}
	failed := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "r", Message: "m"}
	status := appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1}
	in := &appsv1.Deployment{
		ObjectMeta: full,
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{}},
		Status:     status,
	}
	in.Status.ReadyReplicas, in.Status.Conditions = 1, []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}, failed}
	status.Conditions = []appsv1.DeploymentCondition{failed}
	got, err := Compact(in)
	want := &appsv1.Deployment{ObjectMeta: identity, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}, Status: status}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, other := range []any{"x", &corev1.ConfigMap{ObjectMeta: full}} {
		if got, err := Compact(other); err != nil || cmp.Diff(other, got) != "" {
			t.Errorf("%v became %v, %v", other, got, err)
		}
	}
}
