package observe

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// TestRestart: an operator is back once as many pods are ready as were deleted; a Lease that one of these holds still is noted and deleted.
func TestRestart(t *testing.T) {
	const namespace, old = "operators", "manager-7dc5895c88-5kdz6"
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "operator:v1"}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		}
	}
	for name, c := range map[string]struct {
		holder string
		comes  bool
		want   Comeback
	}{
		"it comes back":            {"", true, Comeback{Back: true}},
		"it keeps its lock":        {old + "_5af35337", true, Comeback{Back: true, Held: "Lease/operator", Lease: 5 * time.Minute}},
		"somebody else has a lock": {"other-7dc5895c88-5kdz6", true, Comeback{Back: true}},
		"it does not come back":    {"", false, Comeback{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "operator"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &c.holder, LeaseDurationSeconds: ptr.To(int32(300))}}
				w := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pod(old), lease).WithInterceptorFuncs(interceptor.Funcs{
					Delete: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.DeleteOption) error {
						if _, is := o.(*corev1.Pod); is && c.comes {
							time.AfterFunc(time.Second, func() { _ = w.Create(context.Background(), pod("manager-7dc5895c88-x2x5q")) })
						}
						return w.Delete(ctx, o, options...)
					},
				}).Build()
				r := &lifecycle.Release{CSV: &v1alpha1.ClusterServiceVersion{}}
				r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: "manager"}}
				r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers = []corev1.Container{{Image: "operator:v1"}}
				cluster := &Cluster{Client: w, Provider: endingCluster{ends: true}, Place: lifecycle.Place{Namespace: namespace}, Watcher: &Watcher{Reader: w, pods: map[string]OperatorPod{}}}
				back, err := cluster.Restart(t.Context(), r)
				if err != nil || back != c.want {
					t.Errorf("%+v (%v), want %+v", back, err, c.want)
				}
				err = w.Get(t.Context(), client.ObjectKeyFromObject(lease), &coordinationv1.Lease{})
				if gone := client.IgnoreNotFound(err) == nil && err != nil; gone != (c.want.Held != "") {
					t.Errorf("the Lease: %v", err)
				}
			})
		})
	}
}

// TestLeaseOf: a Lease that was released says that it lasts for a second, but whoever is next looks at it as seldom as before.
func TestLeaseOf(t *testing.T) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "operator"}}
	held := func(by string, seconds int32) *coordinationv1.Lease {
		l := lease.DeepCopy()
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &by, &seconds
		return l
	}
	for name, c := range map[string]struct {
		seen []*coordinationv1.Lease
		want time.Duration
	}{
		"held":              {[]*coordinationv1.Lease{held("a", 137)}, 137 * time.Second},
		"released":          {[]*coordinationv1.Lease{held("a", 137), held("", 1)}, 137 * time.Second},
		"taken by another":  {[]*coordinationv1.Lease{held("a", 137), held("", 1), held("b", 15)}, 15 * time.Second},
		"nobody's at first": {[]*coordinationv1.Lease{held("", 1)}, time.Second},
		"of no time":        {[]*coordinationv1.Lease{lease}, leaseDuration},
	} {
		w := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(c.seen[len(c.seen)-1]).Build()
		cluster := &Cluster{Place: lifecycle.Place{Namespace: "operators"}, Watcher: NewWatcher(w, nil, "operators")}
		for _, l := range c.seen {
			cluster.Watcher.seeLease(l)
		}
		if got, err := cluster.leaseOf(t.Context(), "Lease/operator"); err != nil || got != c.want {
			t.Errorf("%s: %s (%v), want %s", name, got, err, c.want)
		}
	}
}
