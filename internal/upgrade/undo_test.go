package upgrade

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

// journal is what faults of a test did, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) read() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, ", ")
}

// change makes a fault that changes the parts named, and then goes on with next.
func (j *journal) change(t *testing.T, at string, next func() error, parts ...string) Injection {
	return Injection{At: at, Fault: Fault{Name: parts[0], inject: func(_ *hopFaults, _ context.Context, k *activeFault) error {
		for _, part := range parts {
			k.undo.push(func(ctx context.Context) error {
				if _, limited := ctx.Deadline(); ctx.Err() != nil || !limited {
					t.Errorf("%s is undone under %v, with a deadline: %t", part, ctx.Err(), limited)
				}
				j.add("-" + part)
				return nil
			})
			j.add("+" + part)
		}
		return next()
	}}}
}

// newTestFaults prepares injections on a walk whose hop is at the phase installing.
func newTestFaults(t *testing.T, ctx context.Context, injections ...Injection) (*hopFaults, error) {
	t.Helper()
	started := time.Now()
	w := &walk{manager: v0, watcher: &watcher{changed: make(chan struct{}), timeline: wholeHop(started)[:7]}, options: Options{Timeout: time.Minute}}
	s, err := w.newHopFaults(ctx, &release{Name: "a"}, &release{Name: "b"}, injections)
	if err == nil {
		s.begin(ctx, started)
	}
	return s, err
}

// However a hop ends, what its faults changed is taken back: all of it, once, the last change first.
func TestFaultsAreUndone(t *testing.T) {
	fine := func() error { return nil }
	broken := errors.New("broken")
	fails := func() error { return broken }
	for name, test := range map[string]struct {
		injections func(j *journal) []Injection
		says       string
		want       string
	}{
		"the second one fails before the hop": {func(j *journal) []Injection {
			return []Injection{j.change(t, beforeHop, fine, "one"), j.change(t, beforeHop, fails, "two")}
		}, "make the fault two@before: broken", "+one, +two, -two, -one"},
		"one is half made": {func(j *journal) []Injection {
			return []Injection{j.change(t, "installing", fails, "policy", "binding")}
		}, "make the fault policy@installing: broken", "+policy, +binding, -binding, -policy"},
		"one cannot be made after all": {func(j *journal) []Injection {
			return []Injection{j.change(t, "installing", func() error { return inapplicable("why not") }, "one")}
		}, "", "+one, -one"},
		"one panics": {func(j *journal) []Injection {
			return []Injection{j.change(t, "installing", func() error { panic("boom") }, "one")}
		}, "the fault one@installing panicked: boom", "+one, -one"},
	} {
		t.Run(name, func(t *testing.T) {
			j := &journal{}
			s, err := newTestFaults(t, t.Context(), test.injections(j)...)
			if err == nil {
				<-s.faults[0].ended
				_, err = s.finish()
			}
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("it says %v", err)
			}
			for range 2 {
				if err := s.undoAll(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if got := j.read(); got != test.want {
				t.Errorf("%s; want %s", got, test.want)
			}
		})
	}
}

// A fault that holds the hop up is undone when the walk is interrupted while it waits for that.
func TestInterruptedFaultIsUndone(t *testing.T) {
	j := &journal{}
	ctx, interrupt := context.WithCancel(t.Context())
	held := j.change(t, beforeHop, func() error { return nil }, "approval")
	inject := held.inject
	held.inject = func(s *hopFaults, ctx context.Context, k *activeFault) error {
		k.held = func(context.Context) (bool, error) {
			interrupt()
			return false, nil
		}
		return inject(s, ctx, k)
	}
	s, err := newTestFaults(t, ctx, held)
	if err != nil {
		t.Fatal(err)
	}
	<-s.faults[0].ended
	if _, err := s.finish(); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
	if got := j.read(); got != "+approval, -approval" {
		t.Error(got)
	}
}

// What can no longer be undone does not keep the rest from being undone.
func TestUndoGoesOn(t *testing.T) {
	j := &journal{}
	var u undoStack
	u.push(func(context.Context) error { j.add("first"); return nil })
	u.push(func(context.Context) error { return errors.New("broken") })
	if err := u.run(t.Context(), time.Minute); err == nil || err.Error() != "broken" || j.read() != "first" || !u.empty() {
		t.Errorf("%v, %s, %d left", err, j.read(), len(u.steps))
	}
}

// A policy whose binding could not be made does not stay: it would forbid the next walk's operator.
func TestForbidLeavesNoPolicy(t *testing.T) {
	broken := errors.New("broken")
	c := fake.NewClientBuilder().WithScheme(olmv0.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, binding := o.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); binding {
				return broken
			}
			return c.Create(ctx, o, options...)
		},
	}).Build()
	r := &release{CSV: &v1alpha1.ClusterServiceVersion{}}
	s := &hopFaults{walk: &walk{client: c, place: lifecycle.Place{Namespace: "n"}, watcher: &watcher{}, options: Options{Timeout: time.Minute}}, from: r, to: r}
	injections, err := ParseInjections(v0, "forbidden")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.injectNow(t.Context(), &activeFault{faultResult: &faultResult{Injection: injections[0]}}); !errors.Is(err, broken) {
		t.Errorf("it says %v", err)
	}
	var policies admissionregistrationv1.ValidatingAdmissionPolicyList
	if err := c.List(t.Context(), &policies); err != nil || len(policies.Items) > 0 {
		t.Errorf("left: %v, %+v", err, policies.Items)
	}
}

// Faults that hide the catalog at the same time end with OLM reading it where the walk serves it, in whatever order they end.
func TestHiddenCatalogComesBack(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(olmv0.Scheme).Build()
	w := &walk{manager: &olmv0.Client{WithWatch: c}, place: lifecycle.Place{Namespace: "n", Catalog: catalogName}, options: Options{Timeout: time.Minute}}
	address := func() string {
		t.Helper()
		var source v1alpha1.CatalogSource
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: catalogName}, &source); err != nil {
			t.Fatal(err)
		}
		return source.Spec.Address
	}
	w.publication.at = cluster.CatalogAddress{Address: "one:1"}
	if err := w.point(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := &hopFaults{walk: w}
	down, other := &activeFault{}, &activeFault{}
	for _, k := range []*activeFault{down, other} {
		if err := s.downCatalog(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, k := range []*activeFault{down, other} {
		got = append(got, address())
		if err := k.undo.run(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if got = append(got, address()); !slices.Equal(got, []string{nowhere.Address, nowhere.Address, "one:1"}) {
		t.Errorf("OLM looks for it at %q", got)
	}

	// A catalog that is published meanwhile is the one that comes back.
	if err := s.downCatalog(t.Context(), down); err != nil {
		t.Fatal(err)
	}
	w.publication.at = cluster.CatalogAddress{Address: "two:2"}
	if err := errors.Join(w.point(t.Context()), down.undo.run(t.Context(), time.Minute)); err != nil || address() != "two:2" {
		t.Errorf("OLM looks for it at %s: %v", address(), err)
	}

	// So it is when the walk is interrupted while the catalog flaps.
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	flap := &activeFault{}
	if err := s.flapCatalog(ctx, flap); err == nil {
		t.Error("the flapping was not interrupted")
	}
	if err := flap.undo.run(ctx, time.Minute); err != nil || address() != "two:2" {
		t.Errorf("OLM looks for it at %s: %v", address(), err)
	}
}
