package walk

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/observe"
)

// TestHold: pods are kept off all nodes as long as it is asked for, and the nodes are as before then, also when what is done meanwhile fails.
func TestHold(t *testing.T) {
	own := corev1.Taint{Key: "own", Effect: corev1.TaintEffectNoExecute}
	nodes := []*corev1.Node{
		{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{own}}}, {ObjectMeta: metav1.ObjectMeta{Name: "two"}},
	}
	w := &walk{Cluster: &observe.Cluster{Client: fake.NewClientBuilder().WithObjects(nodes[0], nodes[1]).Build()}}
	taints := func() (n, kept int) {
		var list corev1.NodeList
		if err := w.Client.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		for _, node := range list.Items {
			for _, taint := range node.Spec.Taints {
				switch taint {
				case holding:
					n++
				case own:
					kept++
				}
			}
		}
		return n, kept
	}
	ctx, cancel := context.WithCancel(t.Context())
	broken := errors.New("broken")
	err := w.whileHeld(ctx, func() error {
		if n, kept := taints(); n != 2 || kept != 1 {
			t.Errorf("%d nodes are held, %d taints kept", n, kept)
		}
		cancel() // as when the walk is interrupted
		return broken
	})
	if n, kept := taints(); !errors.Is(err, broken) || n != 0 || kept != 1 {
		t.Errorf("%v, %d nodes are held still, %d taints kept", err, n, kept)
	}
}

// TestNoneRuns: an object waits for its pods if what runs them is not ready, and nothing of it is.
func TestNoneRuns(t *testing.T) {
	const tea = "Tea/n/a"
	of := func(kind, unready, of string) observe.Operand {
		return observe.Operand{Kind: kind, Unready: unready, Of: of}
	}
	for name, c := range map[string]struct {
		operands map[string]observe.Operand
		want     bool
	}{
		"nothing is made":          {nil, false},
		"a Deployment waits":       {map[string]observe.Operand{"a": of("Deployment", "0 of 1", tea), "b": of("Service", "", tea)}, true},
		"a Deployment runs":        {map[string]observe.Operand{"a": of("Deployment", "", tea), "b": of("StatefulSet", "0 of 1", tea)}, false},
		"a Job waits":              {map[string]observe.Operand{"a": of("Job", "it runs", tea)}, false},
		"what is another's waits":  {map[string]observe.Operand{"a": of("Deployment", "0 of 1", "Tea/n/b")}, false},
		"a DaemonSet has no nodes": {map[string]observe.Operand{"a": of("DaemonSet", "", tea)}, false},
	} {
		if got := noneRuns(tea, c.operands); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
