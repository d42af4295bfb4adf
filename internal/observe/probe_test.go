package observe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/managerlog"
)

// slowWrites is an API server that reads at once and takes its time over writes.
type slowWrites struct {
	dynamic.NamespaceableResourceInterface
	takes time.Duration
}

func (s slowWrites) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return s
}
func (s slowWrites) Namespace(string) dynamic.ResourceInterface { return s }

func (s slowWrites) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{}, nil
}

func (s slowWrites) Patch(ctx context.Context, _ string, _ types.PatchType, _ []byte, _ metav1.PatchOptions, _ ...string) (*unstructured.Unstructured, error) {
	select {
	case <-time.After(s.takes):
		return &unstructured.Unstructured{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// What a webhook says, for as long as a hop lasts, is not all kept.
func TestProbeSaysLittle(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	if got := managerlog.Cut(long, mostSaid); len(got) > mostSaid+len("…") || !utf8.ValidString(got) || !strings.HasPrefix(long, strings.TrimSuffix(got, "…")) {
		t.Errorf("%d bytes", len(got))
	}
	o := &Object{Kind: "Thing", Name: "a"}
	if a, _ := (probe{Operation: Read, Object: o, Version: "v1"}).try(t.Context(), refuses{says: long}, 1, false); len(a.Err) > 2*mostSaid {
		t.Errorf("%d bytes of an attempt", len(a.Err))
	}
}

// refuses has every read refused.
type refuses struct {
	slowWrites
	says string
}

func (r refuses) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return r
}

func (r refuses) Namespace(string) dynamic.ResourceInterface { return r }

func (r refuses) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	return nil, errors.New(r.says)
}

// What runs out of time to the last is given more time: whether it works, and how long it takes, are two things.
func TestAwaitSuccess(t *testing.T) {
	for _, test := range []struct {
		name               string
		takes              time.Duration
		failing, late      bool
		waitsMost, atLeast time.Duration
	}{
		{"works", 100 * time.Millisecond, false, false, 0, 0},
		{"slow", 3 * time.Second, false, true, 20 * time.Second, 10 * time.Second},
		{"hangs", time.Hour, true, false, 45 * time.Second, 40 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &Cluster{Watcher: NewWatcher(nil, &olmv0.Client{}, "operators")}
				c.Watcher.See(nil, &apiextensionsv1.CustomResourceDefinition{
					ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
					Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}}},
				}, false)
				o := &Object{CRD: "things.example.com", Version: "v2", Name: "a"}
				observer := Start(t.Context(), slowWrites{takes: test.takes}, []probe{{Object: o, Version: "v1", Operation: Write}})
				time.Sleep(5 * time.Second)
				began := time.Now()
				if err := c.AwaitSuccess(t.Context(), observer, RetryTimeout); err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(began); waited < test.atLeast || waited > test.waitsMost {
					t.Errorf("waited %s", waited)
				}
				if failing := len(observer.failing(c.IsServed)) > 0; failing != test.failing {
					t.Errorf("failing: %t", failing)
				}
				var last Attempt
				for _, a := range observer.Stop() {
					if a.Operation == Write {
						last = a
					}
				}
				if last.Late != test.late || (last.Err != "") != test.failing {
					t.Errorf("the last attempt: %+v", last)
				}
			})
		})
	}
}

// TestTurns: probes take turns, so that what befalls all for a moment is met by the next, and are not more than rate a second.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes []probe
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			probes = append(probes, probe{Object: &Object{CRD: "things.example.com", Version: "v2", Name: name}, Version: "v1", Operation: Write})
		}
		observer := Start(t.Context(), slowWrites{}, probes)
		time.Sleep(time.Second - time.Millisecond)
		at := map[time.Time]bool{}
		writes := 0
		for _, a := range observer.Stop() {
			if a.Operation == Write {
				at[a.Start] = true
				writes++
			}
		}
		if writes != rate || len(at) != rate {
			t.Errorf("%d attempts at %d moments of a second, want %d", writes, len(at), rate)
		}
	})
}
