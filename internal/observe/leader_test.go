package observe

import (
	"context"
	"slices"
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

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

func TestHolderOf(t *testing.T) {
	owned := func(kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: "p"}}}
	}
	noted := metav1.ObjectMeta{Annotations: map[string]string{"control-plane.alpha.kubernetes.io/leader": `{"holderIdentity":"p_1"}`}}
	for _, test := range []struct {
		name   string
		o      metav1.Object
		holder string
		is     bool
	}{
		{"a Lease", &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("p_1")}}, "p_1", true},
		{"a Lease that is free", &coordinationv1.Lease{}, "", true},
		{"an annotation", &metav1.PartialObjectMetadata{ObjectMeta: noted}, "p_1", true},
		{"an annotation that is none", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"control-plane.alpha.kubernetes.io/leader": "{"}}}, "", false},
		{"a ConfigMap of a pod", &metav1.PartialObjectMetadata{ObjectMeta: owned("Pod")}, "p", true},
		{"a ConfigMap of a Deployment", &metav1.PartialObjectMetadata{ObjectMeta: owned("Deployment")}, "", false},
	} {
		if holder, is := holderOf(test.o); holder != test.holder || is != test.is {
			t.Errorf("%s: %q, %v", test.name, holder, is)
		}
	}
}

// TestElectionBegan: the old leader goes on until the new pod is ready, and only then its lease runs out.
func TestElectionBegan(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(0, 0).Add(time.Duration(seconds) * time.Second) }
	pod := func(name, state string, seconds int) lifecycle.Event {
		return lifecycle.Event{Kind: KindPod, Name: name, State: state, At: at(seconds)}
	}
	lock := func(name, holder string, seconds int) lifecycle.Event {
		return lifecycle.Event{Kind: KindLease, Name: name, State: StateHeld, For: holder, At: at(seconds)}
	}
	came := []lifecycle.Event{pod("old", "", 1), lock("lock", "old", 2), pod("new", "", 10), pod("new", "", 20)}
	for name, c := range map[string]struct {
		more []lifecycle.Event
		want int
	}{
		"the new pod came":      {nil, 10},
		"the old pod went":      {[]lifecycle.Event{pod("old", StateGone, 25)}, 25},
		"the lock was released": {[]lifecycle.Event{pod("old", StateGone, 25), lock("lock", "", 26)}, 26},
		"another lock":          {[]lifecycle.Event{lock("another", "somebody", 30)}, 10},
	} {
		if began := electionBegan(append(slices.Clone(came), c.more...), []string{"new"}, "Lease/lock"); !began.Equal(at(c.want)) {
			t.Errorf("%s: %s, want %s", name, began, at(c.want))
		}
	}
}

// endingCluster is a cluster that ends with the walk, or stays.
type endingCluster struct {
	cluster.Cluster
	ends bool
}

func (c endingCluster) Disposable() bool { return c.ends }

// TestFree uninstalls an operator whose pod ends some seconds later, still holding its Lease. On a cluster that ends with the walk it is
// hurried. Leases of others stay, as do those of a pod that does not end.
func TestFree(t *testing.T) {
	const namespace, manager, neighbour = "operators", "manager-7dc5895c88-5kdz6", "manager-two-7dc5895c88-5kdz6"
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "operator:v1"}}}}
	}
	lease := func(name, holder string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
	}
	for _, test := range []struct {
		name       string
		disposable bool
		ends       time.Duration // 0 for never
		want       []string      // Leases that are left
	}{
		{"the pod ends", true, 5 * time.Second, []string{"neighbour", "released", "strange"}},
		{"the pod ends where others are", false, 5 * time.Second, []string{"neighbour", "released", "strange"}},
		{"the pod stays", true, 0, []string{"neighbour", "operator", "released", "strange"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hurried := false
				w := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pod(manager), lease("operator", manager+"_5af35337"), lease("released", ""),
					lease("strange", "somebody_5af35337"), lease("neighbour", neighbour)).WithInterceptorFuncs(interceptor.Funcs{
					Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
						if _, is := o.(*corev1.Pod); is {
							hurried = true
							return nil
						}
						return c.Delete(ctx, o, options...)
					},
				}).Build()
				c := &Cluster{Client: w, Provider: endingCluster{ends: test.disposable}, Place: lifecycle.Place{Namespace: namespace},
					Watcher: &Watcher{Reader: w, pods: map[string]OperatorPod{manager: {}, neighbour: {}}}}
				if test.ends > 0 {
					time.AfterFunc(test.ends, func() { _ = c.Client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace)) })
				}
				r := &lifecycle.Release{CSV: &v1alpha1.ClusterServiceVersion{}}
				r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: "manager"}}
				began := time.Now()
				if err := c.Free(t.Context(), []*lifecycle.Release{r}, time.Minute); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); test.ends > 0 && took > test.ends+time.Second || hurried != test.disposable {
					t.Errorf("it waited for %s, and hurried the pod: %v", took, hurried)
				}
				var left coordinationv1.LeaseList
				if err := w.List(t.Context(), &left); err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, l := range left.Items {
					names = append(names, l.Name)
				}
				if !slices.Equal(names, test.want) {
					t.Errorf("%q are left, not %q", names, test.want)
				}
			})
		})
	}
}
