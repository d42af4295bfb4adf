package upgrade

import (
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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

// TestLeads follows an election from the old pod to the new one, with and without the lock being released.
func TestLeads(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(seconds int, e event) event {
		e.At = start.Add(time.Duration(seconds) * time.Second)
		return e
	}
	pod := func(seconds int, name, state string) event {
		return at(seconds, event{Kind: kindPod, Name: name, State: state})
	}
	held := func(seconds int, holder string) event {
		return at(seconds, event{Kind: kindLease, Name: "l", State: stateHeld, For: holder})
	}
	old := []event{pod(0, "old", stateCreated), held(1, "old_1"), pod(5, "new", stateCreated)}
	long := "operator-with-a-name-that-is-longer-than-host-names-may-be-767cb44dc5-dlwdn"
	for _, test := range []struct {
		name     string
		timeline []event
		pods     []string
		elects   bool
		leads    bool
		gap      time.Duration
	}{
		{"nobody elects", []event{pod(0, "new", stateCreated)}, []string{"new"}, false, false, 0},
		{"somebody else's lock", []event{pod(0, "new", stateCreated), held(1, "stranger_1")}, []string{"new"}, false, false, 0},
		{"the first leader", []event{pod(0, "new", stateCreated), held(1, "new_1")}, []string{"new"}, true, true, 0},
		{"the old one still leads", old, []string{"new"}, true, false, 0},
		{"it ended and did not release", append(old, pod(8, "old", stateGone)), []string{"new"}, true, false, 0},
		{"taken over when the lease ran out", append(old, pod(8, "old", stateGone), held(23, "new_2")), []string{"new"}, true, true, 15 * time.Second},
		{"released", append(old, held(8, ""), pod(9, "old", stateGone), held(10, "new_2")), []string{"new"}, true, true, 0},
		{"leader for life", append(old[:1:1], held(1, "old"), pod(3, "old", stateGone), held(3, ""), held(4, "new")), []string{"new"}, true, true, 0},
		{"it led and is gone", append(old, held(9, "new_2"), pod(12, "new", stateGone)), []string{"new"}, true, false, 0},
		{"lost again to another", append(old, held(9, "new_2"), held(12, "third_3")), []string{"new"}, true, false, 0},
		{"a long name", []event{pod(0, long, stateCreated), held(1, long[:63]+"_1")}, []string{long}, true, true, 0},
	} {
		l := leads(test.timeline, test.pods)
		if l.Elects != test.elects || l.Leads != test.leads || l.Gap != test.gap {
			t.Errorf("%s: %+v", test.name, l)
		}
	}
	expect(t, judgeElection(leadership{Leads: true, Lock: "Lease/l", Gap: 15 * time.Second}),
		"info U204 Lease/l: no pod of the operator led for 15.0s: the old leader ended without releasing the lock, and the new one waited until it ran out")
	expect(t, judgeElection(leadership{Leads: true, Lock: "Lease/l", Gap: 2 * time.Second}))
}

// TestJudgeLocks tells a new leader that took another lock than the old one held, and is silent about one that waits for it.
func TestJudgeLocks(t *testing.T) {
	held := func(second float64, lock, holder string) event {
		return event{At: at(second), Kind: kindLease, Name: lock, State: stateHeld, For: holder}
	}
	pod := func(second float64, name, state string) event {
		return event{At: at(second), Kind: kindPod, Name: name, State: state}
	}
	old := []event{pod(0, "old", stateCreated), held(1, "one", "old_1"), held(1, "strange", "somebody")}
	for _, test := range []struct {
		name string
		then []event
		lock string
		want []string
	}{
		{"the same lock", []event{held(6, "one", "new_1")}, "one", nil},
		{"another lock", []event{held(6, "two", "new_1"), pod(8, "old", stateGone)}, "two",
			[]string{"warning U207 Lease/two: the new version elects its leader with Lease/two, the old version with Lease/one: neither waits for the other; both led for 2.0s"}},
		{"another lock, later", []event{pod(5.5, "old", stateGone), held(6, "two", "new_1")}, "two",
			[]string{"warning U207 Lease/two: the new version elects its leader with Lease/two, the old version with Lease/one: neither waits for the other"}},
		{"one of two that there were", []event{held(2, "two", "old_1"), held(6, "two", "new_1")}, "two", nil},
		{"a second lock beside the first", []event{held(6, "one", "new_1"), held(7, "two", "new_1")}, "two", nil},
	} {
		timeline := append(slices.Clone(old), append([]event{pod(5, "new", stateCreated)}, test.then...)...)
		l := leads(timeline, []string{"new"})
		if l.Lock != "Lease/"+test.lock {
			t.Fatalf("%s: took %s", test.name, l.Lock)
		}
		t.Run(test.name, func(t *testing.T) { expect(t, judgeLocks(timeline, at(4), l), test.want...) })
	}
}
