package walk

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// A deleted copy goes once its operator has let it go, and the walk has; one that is gone before the walk let it go was taken from others.
func TestParting(t *testing.T) {
	pots := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "pots"}
	const own = "example.com/keep"
	for name, c := range map[string]struct {
		there, deleted bool
		finalizers     []string
		guarded, late  bool
		want           parting
		left           []string
	}{
		"not deleted yet": {true, false, []string{own, foreign}, true, true, parting{guarded: true}, []string{own, foreign}},
		"held":            {true, true, []string{own, foreign}, true, false, parting{guarded: true, held: []string{own}}, []string{own, foreign}},
		"held too long":   {true, true, []string{own, foreign}, true, true, parting{guarded: true, held: []string{own}, gone: true}, nil},
		"let go":          {true, true, []string{foreign}, true, false, parting{guarded: true, gone: true}, nil},
		"stripped":        {false, true, nil, true, false, parting{guarded: true, stripped: true, gone: true}, nil},
		"gone":            {false, true, nil, false, false, parting{gone: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := teaWalk()
			pot := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Pot"}}
			pot.SetNamespace("n")
			pot.SetName("a")
			pot.SetFinalizers(c.finalizers)
			if c.deleted {
				pot.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
			}
			tracker := w.Dynamic.(*dynamicfake.FakeDynamicClient).Tracker()
			if c.there {
				if err := tracker.Create(pots, pot, "n"); err != nil {
					t.Fatal(err)
				}
			}
			p := parting{guarded: c.guarded}
			w.lookAtParting(t.Context(), &newObject{Object: &observe.Object{Resource: pots.GroupResource(), Version: "v1", Namespace: "n", Name: "a"}}, &p, c.late)
			if fmt.Sprint(p) != fmt.Sprint(c.want) {
				t.Errorf("%+v, want %+v", p, c.want)
			}
			if c.there {
				now, err := w.Dynamic.Resource(pots).Namespace("n").Get(t.Context(), "a", metav1.GetOptions{})
				if err != nil || !slices.Equal(now.GetFinalizers(), c.left) {
					t.Errorf("%v, %v, want %v", now, err, c.left)
				}
			}
		})
	}
}

// Of two objects with long names, each has to have its own; that is known only where there are two.
func TestLackOf(t *testing.T) {
	for _, size := range judge.LongNames {
		names := longNames("queue-sample-new3", size)
		if len(names[0]) != size || names[0] == names[1] || names[0][:size-1] != names[1][:size-1] {
			t.Errorf("%q", names)
		}
	}
	one := &newObject{Object: &observe.Object{Kind: "Pot", Namespace: "n", Name: "1", CRD: "pots"}}
	two := &newObject{Object: &observe.Object{Kind: "Pot", Namespace: "n", Name: "2", CRD: "pots"}}
	operands := map[string]observe.Operand{}
	for _, of := range []*newObject{one, two} {
		operands["s"+of.Name] = observe.Operand{Kind: observe.KindService, Direct: true, Of: of.String()}
	}
	operands["d"] = observe.Operand{Kind: "Deployment", Direct: true, Of: one.String()}
	kinds := []string{"Deployment", observe.KindService}
	if got := lackOf(kinds, []*newObject{one, two}, "pots", operands); !slices.Equal(got, []string{"Deployment"}) {
		t.Errorf("they lack %v", got)
	}
	if got := lackOf(kinds, []*newObject{one}, "pots", operands); got != nil {
		t.Errorf("of one it is known that it lacks %v", got)
	}
}
