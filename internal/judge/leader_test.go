package judge

import (
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

// TestLeads follows an election from the old pod to the new one, with and without the lock being released.
func TestLeads(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(seconds int, e lifecycle.Event) lifecycle.Event {
		e.At = start.Add(time.Duration(seconds) * time.Second)
		return e
	}
	pod := func(seconds int, name, state string) lifecycle.Event {
		return at(seconds, lifecycle.Event{Kind: observe.KindPod, Name: name, State: state})
	}
	held := func(seconds int, holder string) lifecycle.Event {
		return at(seconds, lifecycle.Event{Kind: observe.KindLease, Name: "l", State: observe.StateHeld, For: holder})
	}
	old := []lifecycle.Event{pod(0, "old", observe.StateCreated), held(1, "old_1"), pod(5, "new", observe.StateCreated)}
	long := "operator-with-a-name-that-is-longer-than-host-names-may-be-767cb44dc5-dlwdn"
	for _, test := range []struct {
		name     string
		timeline []lifecycle.Event
		pods     []string
		elects   bool
		leads    bool
		gap      time.Duration
		given    bool
	}{
		{"nobody elects", []lifecycle.Event{pod(0, "new", observe.StateCreated)}, []string{"new"}, false, false, 0, false},
		{"somebody else's lock", []lifecycle.Event{pod(0, "new", observe.StateCreated), held(1, "stranger_1")}, []string{"new"}, false, false, 0, false},
		{"the first leader", []lifecycle.Event{pod(0, "new", observe.StateCreated), held(1, "new_1")}, []string{"new"}, true, true, 0, false},
		{"the old one still leads", old, []string{"new"}, true, false, 0, false},
		{"it ended and did not release", append(old, pod(8, "old", observe.StateGone)), []string{"new"}, true, false, 0, false},
		{"taken over when the lease ran out", append(old, pod(8, "old", observe.StateGone), held(23, "new_2")), []string{"new"}, true, true, 15 * time.Second, false},
		{"released", append(old, held(8, ""), pod(9, "old", observe.StateGone), held(10, "new_2")), []string{"new"}, true, true, 0, true},
		{"leader for life", append(old[:1:1], held(1, "old"), pod(3, "old", observe.StateGone), held(3, ""), held(4, "new")), []string{"new"}, true, true, 0, true},
		{"it led and is gone", append(old, held(9, "new_2"), pod(12, "new", observe.StateGone)), []string{"new"}, true, false, 0, false},
		{"lost again to another", append(old, held(9, "new_2"), held(12, "third_3")), []string{"new"}, true, false, 0, false},
		{"a long name", []lifecycle.Event{pod(0, long, observe.StateCreated), held(1, long[:63]+"_1")}, []string{long}, true, true, 0, false},
	} {
		l := observe.Leads(test.timeline, test.pods)
		if l.Elects != test.elects || l.Leads != test.leads || l.Gap != test.gap || l.Given != test.given {
			t.Errorf("%s: %+v", test.name, l)
		}
	}
	expect.Findings(t, Election(observe.Leadership{Leads: true, Lock: "Lease/l", Gap: 15 * time.Second}),
		"info U204 Lease/l: no pod of the operator led for 15.0s: the old leader ended without releasing the lock, and the new one waited until it ran out")
	expect.Findings(t, Election(observe.Leadership{Leads: true, Lock: "Lease/l", Gap: 2 * time.Second}))
}

// TestJudgeLocks tells a new leader that took another lock than the old one held, and is silent about one that waits for it.
func TestJudgeLocks(t *testing.T) {
	held := func(second float64, lock, holder string) lifecycle.Event {
		return lifecycle.Event{At: at(second), Kind: observe.KindLease, Name: lock, State: observe.StateHeld, For: holder}
	}
	pod := func(second float64, name, state string) lifecycle.Event {
		return lifecycle.Event{At: at(second), Kind: observe.KindPod, Name: name, State: state}
	}
	old := []lifecycle.Event{pod(0, "old", observe.StateCreated), held(1, "one", "old_1"), held(1, "strange", "somebody")}
	for _, test := range []struct {
		name string
		then []lifecycle.Event
		lock string
		want []string
	}{
		{"the same lock", []lifecycle.Event{held(6, "one", "new_1")}, "one", nil},
		{"another lock", []lifecycle.Event{held(6, "two", "new_1"), pod(8, "old", observe.StateGone)}, "two",
			[]string{"warning U207 Lease/two: the new version elects its leader with Lease/two, the old version with Lease/one: neither waits for the other; both led for 2.0s"}},
		{"another lock, later", []lifecycle.Event{pod(5.5, "old", observe.StateGone), held(6, "two", "new_1")}, "two",
			[]string{"warning U207 Lease/two: the new version elects its leader with Lease/two, the old version with Lease/one: neither waits for the other"}},
		{"one of two that there were", []lifecycle.Event{held(2, "two", "old_1"), held(6, "two", "new_1")}, "two", nil},
		{"a second lock beside the first", []lifecycle.Event{held(6, "one", "new_1"), held(7, "two", "new_1")}, "two", nil},
	} {
		timeline := append(slices.Clone(old), append([]lifecycle.Event{pod(5, "new", observe.StateCreated)}, test.then...)...)
		l := observe.Leads(timeline, []string{"new"})
		if l.Lock != "Lease/"+test.lock {
			t.Fatalf("%s: took %s", test.name, l.Lock)
		}
		t.Run(test.name, func(t *testing.T) { expect.Findings(t, Locks(timeline, at(4), l), test.want...) })
	}
}

// TestUnelected tells an operator that reconciles without the lock that the one before led with, and is silent where nobody led, or
// the release before had given leader election up already.
func TestUnelected(t *testing.T) {
	event := func(second float64, kind, name, state, holder string) lifecycle.Event {
		return lifecycle.Event{At: at(second), Kind: kind, Name: name, State: state, For: holder}
	}
	old := event(0, observe.KindPod, "manager-5d8f7c9b6d-abcde", observe.StateCreated, "")
	led := event(1, observe.KindLease, "one", observe.StateHeld, "manager-5d8f7c9b6d-abcde_1")
	gone := event(7, observe.KindPod, "manager-5d8f7c9b6d-abcde", observe.StateGone, "")
	for _, test := range []struct {
		name     string
		timeline []lifecycle.Event
		replicas int32
		want     string
	}{
		{"no lock any more", []lifecycle.Event{old, led, gone}, 1,
			"warning U209 Lease/one: v2 reconciles without being leader: none of its pods takes this lock, with which the old version led, or another"},
		{"several replicas", []lifecycle.Event{old, led, gone}, 2,
			"warning U209 Lease/one: v2 reconciles without being leader: none of its pods takes this lock, with which the old version led, or another; the 2 pods of Deployment manager all reconcile at the same time"},
		{"the lock was released", []lifecycle.Event{old, led, event(6, observe.KindLease, "one", observe.StateHeld, ""), gone}, 1,
			"warning U209 Lease/one: v2 reconciles without being leader: none of its pods takes this lock, with which the old version led, or another"},
		{"it leads", []lifecycle.Event{old, led, gone, event(8, observe.KindLease, "one", observe.StateHeld, "new_1")}, 1, ""},
		{"nobody elected", []lifecycle.Event{old, gone}, 1, ""},
		{"given up before", []lifecycle.Event{old, led, event(2, observe.KindPod, "manager-5d8f7c9b6d-abcde", observe.StateGone, ""), event(3, observe.KindPod, "older", observe.StateCreated, "")}, 1, ""},
		{"an operand led", []lifecycle.Event{event(0, observe.KindPod, "operand-5d8f7c9b6d-abcde", observe.StateCreated, ""), event(1, observe.KindLease, "one", observe.StateHeld, "operand-5d8f7c9b6d-abcde_1")}, 2, ""},
		{"an operand leads with it now", []lifecycle.Event{old, led, gone, event(8, observe.KindPod, "operand-5d8f7c9b6d-abcde", observe.StateCreated, ""), event(9, observe.KindLease, "one", observe.StateHeld, "operand-5d8f7c9b6d-abcde_1")}, 1, ""},
		{"released before", []lifecycle.Event{old, led, event(2, observe.KindLease, "one", observe.StateHeld, "")}, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			to := newRelease("v2")
			to.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: "manager", Spec: appsv1.DeploymentSpec{Replicas: &test.replicas}}}
			timeline := append(slices.Clone(test.timeline), event(5, observe.KindPod, "new", observe.StateCreated, ""))
			slices.SortStableFunc(timeline, func(a, b lifecycle.Event) int { return a.At.Compare(b.At) })
			var want []string
			if test.want != "" {
				want = append(want, test.want)
			}
			expect.Findings(t, Unelected(timeline, at(4), to, to, observe.Leads(timeline, []string{"new"})), want...)
		})
	}
}
