package observe

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// StillForbidden returns list without what RBAC refused and would not refuse any more.
func (c *Cluster) StillForbidden(ctx context.Context, list []Refusal) ([]Refusal, error) {
	var still []Refusal
	for _, r := range list {
		if r.Code == code.Forbidden && RefusedVerb().MatchString(r.Why) {
			allowed, err := c.Allowed(ctx, r.Access)
			if err != nil {
				return nil, err
			}
			if allowed {
				continue
			}
		}
		still = append(still, r)
	}
	return still, nil
}

// Lapsed returns which of used, which the operator did, it would be refused now: an operator starts while the role of the
// release before is still there, and what it watches from then on nobody asks about again until its next start.
func (c *Cluster) Lapsed(ctx context.Context, used []Access) ([]Refusal, error) {
	var list []Refusal
	for _, a := range used {
		allowed, err := c.Allowed(ctx, a)
		if err != nil {
			return nil, err
		}
		if !allowed {
			list = append(list, Refusal{Access: a, Code: code.Forbidden,
				Why: "it was allowed as long as the role of the version before was there, and is refused from the operator's next start on"})
		}
	}
	return list, nil
}

// Lost returns what an operator was allowed before to was there, and to's is not allowed although it cannot do without. told has
// been found already.
func (c *Cluster) Lost(ctx context.Context, to *lifecycle.Release, used []Access, told []Refusal) ([]Refusal, error) {
	var owned []string
	for _, d := range to.CRDs {
		owned = append(owned, d.Name)
	}
	var list []Refusal
	for _, a := range used {
		needed := a.alternatives(owned)
		known := slices.ContainsFunc(told, func(r Refusal) bool {
			return r.Code == code.Forbidden && slices.Contains(needed, r.Verb) && r.Account == a.Account && r.FullResource() == a.FullResource()
		})
		if len(needed) == 0 || known {
			continue
		}
		may, err := c.allowedAny(ctx, a, needed...)
		if err == nil && !may && a.Verb == "create" {
			// Who may not change them either takes care of them no more.
			may, err = c.allowedAny(ctx, a, "patch", "update")
			may = !may
		}
		if err != nil {
			return nil, err
		}
		if !may {
			list = append(list, Refusal{Access: a, Code: code.Forbidden, Why: "the version before did it, and nothing shows that this one can do without"})
		}
	}
	return list, nil
}

// informerVerbs are what an informer needs. It asks for list only where the API server does not stream what is there to whoever
// watches (client-go v0.36.3 tools/cache/reflector.go, ListAndWatchWithContext), so of one that runs often only watch is known.
var informerVerbs = []string{"list", "watch"}

// WithInformers returns list with the other verb of an informer beside each that is refused, if that is not allowed either.
func WithInformers(list []Refusal, allowed func(Access) (bool, error)) ([]Refusal, error) {
	all := slices.Clone(list)
	for _, r := range list {
		if r.Code != code.Forbidden || !slices.Contains(informerVerbs, r.Verb) {
			continue
		}
		for _, verb := range informerVerbs {
			other := r.Access
			other.Verb = verb
			if slices.ContainsFunc(all, func(o Refusal) bool { return o.Code == code.Forbidden && o.Access == other }) {
				continue
			}
			may, err := allowed(other)
			if err != nil {
				return nil, err
			}
			if !may {
				all = append(all, Refusal{Access: other, Code: code.Forbidden, Why: r.Why})
			}
		}
	}
	return all, nil
}

// starved is what an informer asked for by its verb, and did not get when it last asked: since it may not, or since the API server could not answer, as where the webhook that
// converts is not there yet.
type starved struct {
	Access
	version   string
	forbidden bool
}

// starving lists, each once, what the informers of the accounts that account returns ask for and did not get when they last asked, as log says.
func starving(log []auditv1.Event, account func(auditv1.Event) string) []starved {
	asked := map[Access]starved{}
	var order []Access
	for _, e := range log {
		who := account(e)
		if who == "" || e.ResponseStatus == nil {
			continue
		}
		for _, a := range accesses(e, who) {
			s := starved{a, e.ObjectRef.APIVersion, refusedAs(e) == code.Forbidden}
			a.Verb = ""
			switch failed := e.ResponseStatus.Code; {
			case !slices.Contains(informerVerbs, s.Verb):
			case granted(e):
				delete(asked, a)
			case s.forbidden || failed >= http.StatusInternalServerError || failed == http.StatusTooManyRequests:
				asked[a] = s
				order = append(order, a)
			}
		}
	}
	var list []starved
	for _, a := range order {
		if s, still := asked[a]; still {
			delete(asked, a)
			list = append(list, s)
		}
	}
	return list
}

// wouldGet asks whether an informer would get now what it asked for.
func (c *Cluster) wouldGet(ctx context.Context, s starved) (bool, error) {
	if s.forbidden {
		return c.Allowed(ctx, s.Access)
	}
	resource := schema.GroupVersionResource{Group: s.Group, Version: s.version, Resource: s.Resource}
	_, err := c.Dynamic.Resource(resource).Namespace(s.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil, ctx.Err()
}

// retryLimit is how long an informer may wait until it asks again for what it was refused: it doubles its pause up to 30 s, and adds as much
// again at random (NewReflectorWithOptions in tools/cache/reflector.go of client-go v0.36.3).
const retryLimit = 65 * time.Second

// awaitInformers waits until r's operator has asked again for what it did not get and would get by now, as where OLM gives it its rights
// in a namespace late, or where it converts what it asks for itself: until then it knows nothing of the objects there.
func (c *Cluster) awaitInformers(ctx context.Context, r *lifecycle.Release, since time.Time) error {
	auditor, ok := c.Provider.(Auditor)
	if !ok {
		return nil
	}
	mine := Asker(r, c.Place.Namespace, c.Watcher.OperatorPods(), since, time.Time{})
	return c.Watcher.AtMost(ctx, retryLimit, func() (bool, error) {
		log, err := auditor.Audit(ctx, since)
		if err != nil {
			return false, fmt.Errorf("ask what the operator was refused: %w", err)
		}
		for _, s := range starving(log, mine) {
			if now, err := c.wouldGet(ctx, s); now || err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// allowedAny asks whether the API server would do a by any of verbs now.
func (c *Cluster) allowedAny(ctx context.Context, a Access, verbs ...string) (bool, error) {
	for _, verb := range verbs {
		a.Verb = verb
		if allowed, err := c.Allowed(ctx, a); err != nil || allowed {
			return allowed, err
		}
	}
	return false, nil
}

// usesLimit bounds what is asked about.
const usesLimit = 300

// Uses lists what log says was granted to the accounts that account returns, each once, with one of the objects' names.
func Uses(log []auditv1.Event, account func(auditv1.Event) string) []Access {
	seen := map[Access]bool{}
	var list []Access
	for _, e := range log {
		who := account(e)
		if who == "" || !granted(e) || len(list) >= usesLimit {
			continue
		}
		for _, a := range accesses(e, who) {
			named := a
			a.Name = ""
			if seen[a] {
				continue
			}
			seen[a] = true
			if a.Verb != "create" {
				a = named // roles may name the objects
			}
			list = append(list, a)
		}
	}
	return list
}

// Allowed asks whether the API server would do a now.
func (c *Cluster) Allowed(ctx context.Context, a Access) (bool, error) {
	namespace, name, _ := strings.Cut(a.Account, "/")
	resource, subresource, _ := strings.Cut(a.Resource, "/")
	review := lifecycle.Review(namespace, name, authorizationv1.ResourceAttributes{
		Verb: a.Verb, Group: a.Group, Resource: resource, Subresource: subresource, Namespace: a.Namespace, Name: a.Name,
	})
	if err := Retry(ctx, Refused, func() error { return c.Client.Create(ctx, review) }); err != nil {
		return false, fmt.Errorf("ask whether ServiceAccount %s may %s %s: %w", a.Account, a.Verb, a.FullResource(), err)
	}
	return review.Status.Allowed, nil
}

// Live returns the object that r is about as it is now, or nil.
func (c *Cluster) Live(ctx context.Context, r Refusal) map[string]any {
	resource, _, _ := strings.Cut(r.Resource, "/")
	o, err := c.Dynamic.Resource(schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: resource}).
		Namespace(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return o.Object
}
