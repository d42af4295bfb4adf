package fault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/observe"
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
	return Injection{At: at, Fault: Fault{Name: parts[0], inject: func(_ *Set, _ context.Context, k *Active) error {
		for _, part := range parts {
			k.Undo.Push(func(ctx context.Context) error {
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
func newTestFaults(t *testing.T, ctx context.Context, injections ...Injection) (*Set, error) {
	t.Helper()
	started := time.Now()
	watcher := observe.NewWatcher(nil, v0, "")
	watcher.Timeline = wholeHop(started)[:7]
	hop := Hop{
		Cluster: &observe.Cluster{Manager: v0, Watcher: watcher},
		From:    &lifecycle.Release{Name: "a"}, To: &lifecycle.Release{Name: "b"}, Timeout: time.Minute,
	}
	s, err := New(ctx, hop, injections)
	if err == nil {
		s.Begin(ctx, started)
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
			return []Injection{j.change(t, BeforeHop, fine, "one"), j.change(t, BeforeHop, fails, "two")}
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
				_, err = s.Finish()
			}
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("it says %v", err)
			}
			for range 2 {
				if err := s.UndoAll(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if got := j.read(); got != test.want {
				t.Errorf("%s; want %s", got, test.want)
			}
		})
	}
}

// An upgrade that takes too long to come to where a fault would stop it says nothing of the fault.
func TestHeldTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		held := j.change(t, BeforeHop, func() error { return nil }, "approval")
		inject := held.inject
		held.inject = func(s *Set, ctx context.Context, k *Active) error {
			k.held = func(context.Context) (bool, error) { return false, nil }
			return inject(s, ctx, k)
		}
		s, err := newTestFaults(t, t.Context(), held)
		if err != nil {
			t.Fatal(err)
		}
		<-s.faults[0].ended
		if results, err := s.Finish(); err != nil || len(results) != 1 || results[0].Held || !strings.Contains(results[0].Why, "within 30s; give it more time with --timeout") {
			t.Errorf("%+v: %v", results, err)
		}
		if got := j.read(); got != "+approval, -approval" {
			t.Error(got)
		}
	})
}

// A fault that holds the hop up is undone when the walk is interrupted while it waits for that.
func TestInterruptedFaultIsUndone(t *testing.T) {
	j := &journal{}
	ctx, interrupt := context.WithCancel(t.Context())
	held := j.change(t, BeforeHop, func() error { return nil }, "approval")
	inject := held.inject
	held.inject = func(s *Set, ctx context.Context, k *Active) error {
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
	if _, err := s.Finish(); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
	if got := j.read(); got != "+approval, -approval" {
		t.Error(got)
	}
}

// A policy whose binding could not be made does not stay: it would forbid the next walk's operator.
func TestForbidLeavesNoPolicy(t *testing.T) {
	broken := errors.New("broken")
	c := fake.NewClientBuilder().WithScheme(olmv0.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, binding := o.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding); binding {
				return broken
			}
			return c.Create(ctx, o, options...)
		},
	}).Build()
	r := &lifecycle.Release{CSV: &v1alpha1.ClusterServiceVersion{}}
	s := &Set{Hop: Hop{Cluster: &observe.Cluster{Client: c, Place: lifecycle.Place{Namespace: "n"}, Watcher: &observe.Watcher{}}, From: r, To: r, Timeout: time.Minute}}
	injections, err := ParseInjections(v0, "forbidden")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.injectNow(t.Context(), &Active{Result: &Result{Injection: injections[0]}}); !errors.Is(err, broken) {
		t.Errorf("it says %v", err)
	}
	var policies admissionregistrationv1.ValidatingAdmissionPolicyList
	if err := c.List(t.Context(), &policies); err != nil || len(policies.Items) > 0 {
		t.Errorf("left: %v, %+v", err, policies.Items)
	}
}

// slow is a cluster with a registry of its own.
type slow struct {
	cluster.Cluster
	by []time.Duration
}

func (s *slow) DelayImages(_ context.Context, by time.Duration) error {
	s.by = append(s.by, by)
	return nil
}

// A slow registry answers as before afterwards.
func TestRegistrySlow(t *testing.T) {
	i := slices.IndexFunc(clusterFaults, func(f Fault) bool { return f.Name == "registry-slow" })
	c := &slow{}
	if !clusterFaults[i].Possible(c) || clusterFaults[i].Possible(struct{ cluster.Cluster }{}) {
		t.Error("it is possible where a registry is not the cluster's, or not where it is")
	}
	s := &Set{Hop: Hop{Cluster: &observe.Cluster{Provider: c}}}
	k := &Active{}
	if err := clusterFaults[i].inject(s, t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if err := k.Undo.Run(t.Context(), time.Minute); err != nil || !slices.Equal(c.by, []time.Duration{time.Second, 0}) {
		t.Errorf("%v: delays %v", err, c.by)
	}
}

// v0 is OLM v0, not connected: it tells what it knows of itself.
var v0 = &olmv0.Client{}
