package observe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

func TestAttribute(t *testing.T) {
	at := time.Unix(100, 0)
	request := func(after time.Duration, user, agent, verb, resource, name string, code int32) auditv1.Event {
		return auditv1.Event{
			Verb: verb, UserAgent: agent, User: authenticationv1.UserInfo{Username: user}, StageTimestamp: metav1.NewMicroTime(at.Add(after)),
			ObjectRef: &auditv1.ObjectReference{Resource: resource, Name: name}, ResponseStatus: &metav1.Status{Code: code},
		}
	}
	const olmAccount = "system:serviceaccount:olm:olm-operator-serviceaccount"
	log := []auditv1.Event{
		request(1*time.Second, olmAccount, "catalog/v0.0.0", "update", "customresourcedefinitions", "c", 200),
		request(2*time.Second, "system:serviceaccount:operators:manager", "manager/1", "update", "customresourcedefinitions", "c", 409),
		request(3*time.Second, olmAccount, "olm/v0.0.0", "patch", "customresourcedefinitions", "c", 200),
		request(3*time.Second, "system:serviceaccount:operators:manager", "manager/1", "get", "customresourcedefinitions", "c", 200),
		request(4*time.Second, "system:serviceaccount:kube-system:replicaset-controller", "kube-controller-manager/1", "delete", "pods", "p", 200),
		request(5*time.Second, "system:node:embedded", "olmkit/1", "delete", "pods", "p", 200),
	}
	for _, test := range []struct {
		name string
		e    lifecycle.Event
		want string
	}{
		{"the catalog operator wrote it", lifecycle.Event{Kind: KindCRD, Name: "c", At: at.Add(1100 * time.Millisecond)}, "OLM's catalog operator"},
		{"who was refused did not", lifecycle.Event{Kind: KindCRD, Name: "c", At: at.Add(2100 * time.Millisecond)}, "OLM's catalog operator"},
		{"olm-operator repaired it", lifecycle.Event{Kind: KindCRD, Name: "c", At: at.Add(3100 * time.Millisecond)}, "OLM's olm-operator"},
		{"who asked for the end of a pod", lifecycle.Event{Kind: KindPod, Name: "p", State: StateGone, At: at.Add(5100 * time.Millisecond)}, "Kubernetes' replicaset-controller"},
		{"nobody is known", lifecycle.Event{Kind: KindCRD, Name: "other", At: at.Add(time.Minute)}, ""},
		{"of other kinds nobody asks", lifecycle.Event{Kind: "ClusterServiceVersion", Name: "c", At: at.Add(time.Minute)}, ""},
	} {
		if got := attribute(v0, []lifecycle.Event{test.e}, log)[0].By; got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestChangesOfEndpoints(t *testing.T) {
	slice := func(ready ...bool) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a-x", Labels: map[string]string{discoveryv1.LabelServiceName: "a"}}}
		for _, r := range ready {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(r)}})
		}
		return s
	}
	if got := changes(slice(true, true), slice(false, true), false); len(got) != 0 {
		t.Errorf("one of two endpoints is left, and it says %v", got)
	}
	if got := changes(slice(true), slice(false), false); len(got) != 1 || got[0].State != StateUnready || got[0].Name != "n/a" {
		t.Errorf("the last endpoint is gone, and it says %v", got)
	}
	if got := changes(slice(true), slice(true), true); len(got) != 1 || got[0].State != StateGone {
		t.Errorf("the slice is gone, and it says %v", got)
	}
}

// A Service is without endpoints when none of its slices has one.
func TestServiceOfSeveralSlices(t *testing.T) {
	slice := func(name string, ready bool) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "a"}},
			Endpoints:  []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		}
	}
	w := NewWatcher(nil, v0, "n")
	for _, step := range []struct {
		before, now *discoveryv1.EndpointSlice
		gone        bool
		want        string // the event's state
	}{
		{nil, slice("four", true), false, StateReady},
		{nil, slice("six", false), false, ""},
		{slice("six", false), slice("six", true), false, ""},
		{slice("four", true), slice("four", false), false, ""},
		{slice("six", true), slice("six", false), false, StateUnready},
		{slice("four", false), slice("four", true), false, StateReady},
		{nil, slice("six", false), true, ""},
		{nil, slice("four", true), true, StateGone},
		{nil, slice("six", true), false, StateReady},
	} {
		known := len(w.Timeline)
		if step.before == nil {
			w.See(nil, step.now, step.gone)
		} else {
			w.See(step.before, step.now, step.gone)
		}
		got := ""
		for _, e := range w.Timeline[known:] {
			got += e.State
			if e.Kind != KindService || e.Name != "n/a" || e.For != "" {
				t.Errorf("%+v", e)
			}
		}
		if got != step.want {
			t.Errorf("%s, ready %v, gone %v: %q, wanted %q", step.now.Name, *step.now.Endpoints[0].Conditions.Ready, step.gone, got, step.want)
		}
	}
}

// v0 is OLM v0, not connected: it tells what it knows of itself.
var v0 = &olmv0.Client{}

var zero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return zero.Add(time.Duration(seconds * float64(time.Second))) }

func TestMilestones(t *testing.T) {
	csv := func(s float64, name, phase string) lifecycle.Event {
		return lifecycle.Event{At: at(s), Kind: "ClusterServiceVersion", Name: name, State: phase}
	}
	timeline := []lifecycle.Event{
		csv(-5, "a.v2", "Succeeded"), // of an earlier hop
		{At: at(0.2), Kind: "CatalogSource", State: "connecting"},
		{At: at(0.4), Kind: "CatalogSource", State: StateReady},
		{At: at(1), Kind: "InstallPlan", For: "a.v2"},
		{At: at(1.2), Kind: "InstallPlan", For: "a.v2", State: "Installing"},
		csv(1.5, "a.v2", ""),
		{At: at(1.8), Kind: KindCRD, Name: "c", CRD: &lifecycle.Definition{}},
		csv(2, "a.v1", "Replacing"),
		{At: at(2.5), Kind: KindCRD, Name: "c", CRD: &lifecycle.Definition{}},
		csv(3, "a.v2", "InstallReady"),
		csv(4, "a.v2", "Installing"),
		csv(5, "a.v2", "Succeeded"),
		csv(6, "a.v2", "Failed"),
		csv(7, "a.v2", "Succeeded"),
		csv(8, "a.v1", StateGone),
		{At: at(9), Kind: "InstallPlan", For: "a.v2", State: "Complete"},
		{At: at(11), Kind: KindWalk, State: StateStable},
	}
	want := []string{
		"0.4 catalog noticed", "0.6 install plan created", "0.5 CSV created", "0.3 CRDs written", "1.2 requirements met", "1 installing",
		"3 succeeded", "1 old CSV gone", "1 install plan complete", "2 stable",
	}
	if diff := cmp.Diff(want, phasesOf(timeline)); diff != "" {
		t.Error(diff)
	}
}

// TestMilestonesUnseen has the API server away while a release is installed: its last phase says that it was in those before.
func TestMilestonesUnseen(t *testing.T) {
	timeline := []lifecycle.Event{
		{At: at(1), Kind: "InstallPlan", For: "a.v2"},
		{At: at(5), Kind: "ClusterServiceVersion", Name: "a.v2", State: "Succeeded"},
		{At: at(9), Kind: "ClusterServiceVersion", Name: "a.v2", State: "Installing"}, // once more
	}
	want := []string{"1 install plan created", "4 CSV created", "0 requirements met", "0 installing", "0 succeeded"}
	if diff := cmp.Diff(want, phasesOf(timeline)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"1 install plan created", "8 CSV created", "0 requirements met", "0 installing"}, phasesOf(slices.Delete(timeline, 1, 2))); diff != "" {
		t.Error(diff)
	}
}

// phasesOf are the seconds and the names of the hop's phases.
func phasesOf(timeline []lifecycle.Event) []string {
	var list []string
	for _, p := range Phases(Milestones(v0.Milestones("a.v1", "a.v2"), timeline, zero), zero) {
		seconds := strings.TrimSuffix(strings.TrimRight(at(p.Seconds).Format("5.000"), "0"), ".")
		list = append(list, seconds+" "+p.Name)
	}
	return list
}
