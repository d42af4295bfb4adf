package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Meter is a cluster that measures for how long pods use a processor.
type Meter interface {
	// Used returns for how long the containers of a pod that run now have used a processor.
	Used(ctx context.Context, namespace, pod string) (time.Duration, error)
}

// Used returns for how long the pods of r's operator that are there have used a processor, if the cluster measures that.
func (c *Cluster) Used(ctx context.Context, r *lifecycle.Release) (used time.Duration, known bool) {
	meter, ok := c.Provider.(Meter)
	if !ok {
		return 0, false
	}
	for name, pod := range c.Watcher.OperatorPods() {
		if pod.Release != r.Name {
			continue
		}
		if of, err := meter.Used(ctx, c.Place.Namespace, name); err == nil { // of those that were there once, some are gone
			used, known = used+of, true
		}
	}
	return used, known
}

// idleGroups are the API groups in which an operator that has come to rest writes as well: it renews its Lease, and asks who is who.
var idleGroups = []string{"coordination.k8s.io", "authentication.k8s.io", "authorization.k8s.io"}

// CountWrites counts between from and to what the accounts that account returns asked the API server to make or to be otherwise, as log says, whether
// it then was or not. Events are none, nor is what only runs, as a command in a pod.
func CountWrites(log []auditv1.Event, account func(auditv1.Event) string, from, to time.Time) (n int) {
	for _, e := range log {
		at, o := e.RequestReceivedTimestamp.Time, e.ObjectRef
		if at.Before(from) || !at.Before(to) || o == nil || o.Resource == "events" || slices.Contains(idleGroups, o.APIGroup) || account(e) == "" {
			continue
		}
		if slices.Contains([]string{"update", "patch", "delete"}, e.Verb) || e.Verb == "create" && o.Subresource == "" {
			n++
		}
	}
	return n
}

// Asked says how often the accounts that account returns asked the API server for anything, as log says, and what for last: not for what they do at rest.
func Asked(log []auditv1.Event, account func(auditv1.Event) string) string {
	times, last := 0, auditv1.Event{}
	for _, e := range log {
		if o := e.ObjectRef; o == nil || slices.Contains(idleGroups, o.APIGroup) || account(e) == "" {
			continue
		}
		times, last = times+1, e
	}
	if times == 0 {
		return "it asked the API server for nothing"
	}
	answer := int32(0)
	if last.ResponseStatus != nil {
		answer = last.ResponseStatus.Code
	}
	of := strings.Trim(strings.Join([]string{last.ObjectRef.Resource, last.ObjectRef.Namespace, last.ObjectRef.Name}, "/"), "/")
	return fmt.Sprintf("it asked the API server %d times, last for %s of %s (%d)", times, last.Verb, of, answer)
}
