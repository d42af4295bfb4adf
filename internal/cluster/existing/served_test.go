package existing

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/olmkit/olmkit/internal/cluster"
)

// OLM reads a catalog until it is told the next one's address: the pod that serves it stays until then, and no longer.
func TestCatalogServesUntilTheNext(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	client.PrependReactor("create", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
		pod, ok := action.(k8stesting.CreateAction).GetObject().(*corev1.Pod)
		if ok {
			pod.Status.PodIP = "10.0.0.1"
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		return false, nil, nil
	})
	c := &Cluster{client: client, walk: "w1"}
	for _, want := range [][]string{
		{"ConfigMap olmkit-1-0", "Pod olmkit-1"},
		{"ConfigMap olmkit-1-0", "ConfigMap olmkit-2-0", "Pod olmkit-1", "Pod olmkit-2"},
		{"ConfigMap olmkit-2-0", "ConfigMap olmkit-3-0", "Pod olmkit-2", "Pod olmkit-3"},
	} {
		if _, err := c.Catalog(t.Context(), "olmkit", []byte(`{"schema":"olm.package","name":"tea"}`)); err != nil {
			t.Fatal(err)
		}
		var got []string
		note := func(kind string, o metav1.ObjectMeta) {
			got = append(got, kind+" "+o.Name)
			if o.Labels[cluster.WalkLabel] != "w1" {
				t.Errorf("%s %s has the labels %v", kind, o.Name, o.Labels)
			}
		}
		maps, err := client.CoreV1().ConfigMaps(Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range maps.Items {
			note("ConfigMap", o.ObjectMeta)
		}
		pods, err := client.CoreV1().Pods(Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range pods.Items {
			note("Pod", o.ObjectMeta)
		}
		if !slices.Equal(got, want) {
			t.Errorf("there are %q, want %q", got, want)
		}
	}
}
