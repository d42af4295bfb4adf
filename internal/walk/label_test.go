package walk

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/observe"
)

// named is a cluster that stays.
type named struct{ cluster.Cluster }

func (named) Name() string { return "staging" }

// Names stay names when something is added.
func TestShortened(t *testing.T) {
	for name, want := range map[string]string{
		"short":                 "short",
		"short.":                "short.",
		strings.Repeat("a", 50): strings.Repeat("a", 40),
		strings.Repeat("a", 38) + ".-" + "example.com":  strings.Repeat("a", 38),
		strings.Repeat("a", 39) + ".example.com-sample": strings.Repeat("a", 39),
	} {
		if got := shortened(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What samples need is labelled as the walk's on a cluster that stays, and never put over what somebody has there.
func TestApplyExtraLeavesOthersAlone(t *testing.T) {
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theirs"}, Data: map[string]string{"a": "theirs"}}
	c := fake.NewClientBuilder().WithScheme(olmv0.Scheme()).WithObjects(theirs).Build()
	w := &walk{Cluster: &observe.Cluster{Provider: named{}, Client: c}, options: Options{ID: "w1"}}
	for name, says := range map[string]string{"theirs": "it is on cluster staging already, and the walk did not create it", "ours": ""} {
		for range 2 { // a later release needs it again
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "sample"},
				"metadata": map[string]any{"namespace": "default", "name": name, "labels": map[string]any{"app.kubernetes.io/managed-by": "kustomize"}},
			}}
			err := w.applyExtra(t.Context(), o)
			if says == "" && err != nil || says != "" && (err == nil || err.Error() != says || !strings.Contains(hint.Of(err), "rename")) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, want := range map[string][3]string{"theirs": {"theirs", "", ""}, "ours": {"sample", "w1", "kustomize"}} {
		var o corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &o); err != nil {
			t.Fatal(err)
		}
		if got := [3]string{o.Data["a"], o.Labels[cluster.WalkLabel], o.Labels[cluster.ManagedByLabel]}; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// On a cluster that goes with the walk samples stay as their authors wrote them.
func TestSamplesStayUnlabelled(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	(&walk{}).label(o)
	if o.GetLabels() != nil {
		t.Errorf("it has the labels %v", o.GetLabels())
	}
}
