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
