package observe

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// TestCountWrites: what an operator writes in a time, but for its Lease, Events, what only runs and what it asks about who is who.
func TestCountWrites(t *testing.T) {
	began := time.Now()
	var log []auditv1.Event
	add := func(after time.Duration, user, verb, group, resource string) {
		e := auditv1.Event{RequestReceivedTimestamp: metav1.NewMicroTime(began.Add(after)), Verb: verb, ObjectRef: &auditv1.ObjectReference{APIGroup: group, Resource: resource}}
		e.User.Username = user
		log = append(log, e)
	}
	add(-time.Millisecond, "tea", "update", "apps", "deployments")
	add(0, "tea", "update", "apps", "deployments")
	add(time.Millisecond, "tea", "patch", "", "services")
	add(time.Millisecond, "tea", "get", "", "services")
	add(time.Millisecond, "tea", "update", "coordination.k8s.io", "leases")
	add(time.Millisecond, "tea", "create", "authorization.k8s.io", "subjectaccessreviews")
	add(time.Millisecond, "tea", "create", "events.k8s.io", "events")
	add(time.Millisecond, "tea", "create", "", "pods")
	log[len(log)-1].ObjectRef.Subresource = "exec"
	add(time.Millisecond, "other", "patch", "", "services")
	add(time.Second, "tea", "update", "apps", "deployments")
	log = append(log, auditv1.Event{RequestReceivedTimestamp: metav1.NewMicroTime(began), Verb: "create"})
	tea := func(e auditv1.Event) string {
		if e.User.Username == "other" {
			return ""
		}
		return e.User.Username
	}
	if n := CountWrites(log, tea, began, began.Add(time.Second)); n != 2 {
		t.Errorf("%d writes", n)
	}
}

// TestAsked: what an operator asks for, but for its Lease, and what it got last.
func TestAsked(t *testing.T) {
	request := func(verb, group, resource string, answer int32) auditv1.Event {
		return auditv1.Event{Verb: verb, ObjectRef: &auditv1.ObjectReference{APIGroup: group, Resource: resource, Namespace: "shop", Name: "tea"}, ResponseStatus: &metav1.Status{Code: answer}}
	}
	anybody := func(auditv1.Event) string { return "tea" }
	lease := request("update", "coordination.k8s.io", "leases", 200)
	for want, log := range map[string][]auditv1.Event{
		"it asked the API server for nothing":                                            {lease, {}},
		"it asked the API server 2 times, last for patch of statefulsets/shop/tea (409)": {request("get", "", "pods", 200), request("patch", "apps", "statefulsets", 409), lease},
	} {
		if got := Asked(log, anybody); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
