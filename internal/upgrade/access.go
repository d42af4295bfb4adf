package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/finding"
)

// judgeAccess judges what the API server refused the operator of to since started, and what it would refuse from now on. What
// it refused the operator of from before that is told apart. earlier is what could be told of from then. done says whether the
// installation of to came to its end.
func (w *walk) judgeAccess(ctx context.Context, from, to *release, started time.Time, earlier evidence, done bool) ([]finding.Finding, error) {
	if from == nil {
		w.freshSince = started
	}
	w.began[to.Name] = started
	local := func(namespace string) bool {
		return namespace == w.place.Namespace || slices.Contains(w.place.Targets, namespace)
	}
	auditor, ok := w.cluster.(Auditor)
	if !ok {
		list, err := w.observedRefusals(ctx, from, to, started, earlier)
		return refusalFindings(list, earlier.Refused, to, started, local), err
	}
	log, err := auditor.Audit(ctx, w.freshSince)
	if err != nil {
		return nil, fmt.Errorf("ask what the API server refused the operator: %w", err)
	}
	pods := w.watcher.operatorPods()
	mine := asker(to, w.place.Namespace, pods, started, time.Time{})
	if !done {
		mine = known(mine)
	}
	list, err := w.stillForbidden(ctx, refusals(log, mine))
	if err != nil {
		return nil, err
	}
	lapsed, err := w.lapsed(ctx, uses(log, mine))
	if err != nil {
		return nil, err
	}
	list = append(list, lapsed...)
	var before []refusal
	if from != nil {
		before = refusals(log, asker(from, w.place.Namespace, pods, w.began[from.Name], started))
		lost, err := w.lost(ctx, to, uses(log, asker(to, w.place.Namespace, nil, time.Time{}, started)), list)
		if err != nil {
			return nil, err
		}
		list = append(list, lost...)
	}
	if list, err = withInformers(list, func(a access) (bool, error) { return w.allowed(ctx, a) }); err != nil {
		return nil, err
	}
	for i, r := range list {
		if r.Code == codeInvalid {
			list[i].Fields = r.changedFields(w.live(ctx, r))
		}
	}
	return refusalFindings(list, before, to, started, local), nil
}

// stillForbidden returns list without what RBAC refused and would not refuse any more.
func (w *walk) stillForbidden(ctx context.Context, list []refusal) ([]refusal, error) {
	var still []refusal
	for _, r := range list {
		if r.Code == codeForbidden && refusedVerb.MatchString(r.Why) {
			allowed, err := w.allowed(ctx, r.access)
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

// lapsed returns which of used, which the operator did, it would be refused now: an operator starts while the role of the
// release before is still there, and what it watches from then on nobody asks about again until its next start.
func (w *walk) lapsed(ctx context.Context, used []access) ([]refusal, error) {
	var list []refusal
	for _, a := range used {
		allowed, err := w.allowed(ctx, a)
		if err != nil {
			return nil, err
		}
		if !allowed {
			list = append(list, refusal{access: a, Code: codeForbidden,
				Why: "it was allowed as long as the role of the version before was there, and is refused from the operator's next start on"})
		}
	}
	return list, nil
}

// lost returns what an operator was allowed before to was there, and to's is not allowed although it cannot do without. told has
// been found already.
func (w *walk) lost(ctx context.Context, to *release, used []access, told []refusal) ([]refusal, error) {
	var owned []string
	for _, d := range to.CRDs {
		owned = append(owned, d.Name)
	}
	var list []refusal
	for _, a := range used {
		needed := a.alternatives(owned)
		known := slices.ContainsFunc(told, func(r refusal) bool {
			return r.Code == codeForbidden && slices.Contains(needed, r.Verb) && r.Account == a.Account && r.resource() == a.resource()
		})
		if len(needed) == 0 || known {
			continue
		}
		may, err := w.allowedAny(ctx, a, needed...)
		if err == nil && !may && a.Verb == "create" {
			// Who may not change them either takes care of them no more.
			may, err = w.allowedAny(ctx, a, "patch", "update")
			may = !may
		}
		if err != nil {
			return nil, err
		}
		if !may {
			list = append(list, refusal{access: a, Code: codeForbidden, Why: "the version before did it, and nothing shows that this one can do without"})
		}
	}
	return list, nil
}

// informerVerbs are what an informer needs. It asks for list only where the API server does not stream what is there to whoever
// watches (client-go v0.36.3 tools/cache/reflector.go, ListAndWatchWithContext), so of one that runs often only watch is known.
var informerVerbs = []string{"list", "watch"}

// withInformers returns list with the other verb of an informer beside each that is refused, if that is not allowed either.
func withInformers(list []refusal, allowed func(access) (bool, error)) ([]refusal, error) {
	all := slices.Clone(list)
	for _, r := range list {
		if r.Code != codeForbidden || !slices.Contains(informerVerbs, r.Verb) {
			continue
		}
		for _, verb := range informerVerbs {
			other := r.access
			other.Verb = verb
			if slices.ContainsFunc(all, func(o refusal) bool { return o.Code == codeForbidden && o.access == other }) {
				continue
			}
			may, err := allowed(other)
			if err != nil {
				return nil, err
			}
			if !may {
				all = append(all, refusal{access: other, Code: codeForbidden, Why: r.Why})
			}
		}
	}
	return all, nil
}

// allowedAny asks whether the API server would do a by any of verbs now.
func (w *walk) allowedAny(ctx context.Context, a access, verbs ...string) (bool, error) {
	for _, verb := range verbs {
		a.Verb = verb
		if allowed, err := w.allowed(ctx, a); err != nil || allowed {
			return allowed, err
		}
	}
	return false, nil
}

// usesLimit bounds what is asked about.
const usesLimit = 300

// uses lists what log says was granted to the accounts that account returns, each once, with one of the objects' names.
func uses(log []auditv1.Event, account func(auditv1.Event) string) []access {
	seen := map[access]bool{}
	var list []access
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

// allowed asks whether the API server would do a now.
func (w *walk) allowed(ctx context.Context, a access) (bool, error) {
	namespace, name, _ := strings.Cut(a.Account, "/")
	resource, subresource, _ := strings.Cut(a.Resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.Verb, Group: a.Group, Resource: resource, Subresource: subresource, Namespace: a.Namespace, Name: a.Name,
		},
	}}
	if err := retry(ctx, refused, func() error { return w.client.Create(ctx, review) }); err != nil {
		return false, fmt.Errorf("ask whether ServiceAccount %s may %s %s: %w", a.Account, a.Verb, a.resource(), err)
	}
	return review.Status.Allowed, nil
}

// live returns the object that r is about as it is now, or nil.
func (w *walk) live(ctx context.Context, r refusal) map[string]any {
	resource, _, _ := strings.Cut(r.Resource, "/")
	o, err := w.dynamic.Resource(schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: resource}).
		Namespace(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return o.Object
}
