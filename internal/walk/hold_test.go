package walk

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/judge"
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
	err := w.whileHeld(ctx, mostHeld, func() error {
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

// TestPodsOf: the pods of all that was made for an object count, and none of a workload that wants none.
func TestPodsOf(t *testing.T) {
	const tea = "Tea/n/a"
	of := func(kind string, ready int64, unready, of string) observe.Operand {
		return observe.Operand{Kind: kind, Running: ready, Unready: unready, Of: of}
	}
	pod := func(node string) observe.Operand {
		return observe.Operand{Kind: "Pod", Of: tea, Content: map[string]any{"spec": map[string]any{"nodeName": node}}}
	}
	type operands map[string]observe.Operand
	for name, c := range map[string]struct {
		operands operands
		want     pods
		held     bool
	}{
		"nothing is made":         {},
		"a Deployment waits":      {operands{"a": of("Deployment", 0, "0 of 1", tea), "b": of("Service", 0, "", tea), "c": of("StatefulSet", 0, "", tea), "p": pod("")}, pods{wanted: true}, true},
		"one of two is ready":     {operands{"a": of("Deployment", 2, "", tea), "b": of("StatefulSet", 0, "0 of 1", tea)}, pods{ready: 2, wanted: true}, false},
		"a pod starts":            {operands{"a": of("Deployment", 0, "0 of 1", tea), "p": pod(""), "q": pod("one")}, pods{wanted: true, placed: true}, false},
		"a Job waits":             {operands: operands{"a": of("Job", 0, "it runs", tea)}},
		"what is another's waits": {operands: operands{"a": of("Deployment", 0, "0 of 1", "Tea/n/b")}},
	} {
		if got := podsOf(tea, c.operands); got != c.want || got.held() != c.held {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestNote: what a status tells until pods run, and what then; it is told at once only if it is soon after they ran. The walk's own changes are
// not looked at.
func TestNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &walk{Cluster: &observe.Cluster{}}
		o := &newObject{Object: &observe.Object{Kind: "Tea", Namespace: "n", Name: "a-new1"}, held: true, readiness: judge.Readiness{Before: map[string]string{"status.phase": "Pending"}}}
		look := func(phase string, running int64, unready string) {
			t.Helper()
			now := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase}}}
			if err := w.note(t.Context(), o, now, map[string]observe.Operand{"d": {Kind: "Deployment", Of: o.String(), Running: running, Unready: unready}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		look("Pending", 0, "0 of 2")
		if o.readiness.Prompt || !o.readiness.Unready || o.readiness.Before["status.phase"] != "Pending" {
			t.Errorf("none runs: %+v", o.readiness)
		}
		look("Pending", 1, "1 of 2")
		look("Pending", 2, "")
		look("Running", 2, "")
		if !o.readiness.Waits() || o.readiness.Then["status.phase"] != "Running" {
			t.Errorf("all run: %+v", o.readiness)
		}
		look("Pending", 0, "0 of 2")
		if o.readiness.Before["status.phase"] != "Pending" || o.readiness.Prompt {
			t.Errorf("none runs any more: %+v", o.readiness)
		}
		o.noted = true
		look("Odd", 2, "")
		if o.readiness.Then["status.phase"] == "Odd" {
			t.Error("the walk changes it, and it is noted")
		}
	})
}
