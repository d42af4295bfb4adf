// Package rbac measures which rights of an operator's ServiceAccounts are used, by an audit log, and tells the least that allow the
// same.
package rbac

import (
	"cmp"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/report"
)

// right is one verb on one resource or URL; a name limits it to the object of that name.
type right struct {
	scope, group, resource, url, name, verb string
}

// verbs are those that the API server knows for resources; a wildcard stands for them.
var verbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// Call is a request of a ServiceAccount, once for each thing that it needs to be allowed.
type Call struct {
	right
	Namespace string
	Local     bool // permissions of the CSV reach it
	Denied    bool
}

// decisionKey is the annotation with which the API server says in its audit log what RBAC decided (k8s.io/apiserver v0.36.3,
// pkg/endpoints/filters/authorization.go).
const decisionKey = "authorization.k8s.io/decision"

// denied is what the API server says where RBAC refuses, with the verb: one that creates by a patch needs two.
var denied = regexp.MustCompile(`cannot ([a-z]+) resource "`)

// Calls returns what e asks for. That RBAC allowed it counts, not whether it was done.
func Calls(e auditv1.Event) []Call {
	c := Call{right: right{verb: e.Verb}}
	if o := e.ObjectRef; o != nil && o.Resource != "" {
		c.group, c.resource, c.name, c.Namespace = o.APIGroup, strings.TrimSuffix(o.Resource+"/"+o.Subresource, "/"), o.Name, o.Namespace
	} else {
		c.url, _, _ = strings.Cut(e.RequestURI, "?")
	}
	status := e.ResponseStatus
	if status == nil || status.Code == http.StatusUnauthorized {
		return nil
	}
	c.Denied = e.Annotations[decisionKey] == "forbid"
	if m := denied.FindStringSubmatch(status.Message); m != nil && status.Code == http.StatusForbidden {
		c.verb, c.Denied = m[1], true
	}
	calls := []Call{c}
	if status.Code == http.StatusCreated && e.Verb != "create" {
		c.verb, c.name = "create", ""
		calls = append(calls, c)
	}
	return calls
}

// Measure tells what account, by its name, did with the rights that csv gives it. served says whether the cluster has a resource.
func Measure(csv *v1alpha1.ClusterServiceVersion, account string, calls []Call, served func(group, resource string) bool) report.Access {
	strategy := csv.Spec.InstallStrategy.StrategySpec
	has := rightsOf(rulesFor(strategy.ClusterPermissions, account), rulesFor(strategy.Permissions, account))
	used, refused := map[right]bool{}, map[right]bool{}
	for _, c := range calls {
		if c.Denied {
			r := c.right
			r.name, r.scope = "", report.ScopeCluster
			if c.Local {
				r.scope = report.ScopeNamespace
			}
			refused[r] = true
			continue
		}
		for _, r := range granting(has, c) {
			used[r] = true
		}
	}
	for r := range maps.Clone(used) {
		if other := r; partner(&other) {
			for _, needed := range grantingAt(has, other, r.scope) {
				used[needed] = true
			}
		}
	}
	a := report.Access{Release: csv.Name, Version: csv.Spec.Version.String(), Account: account}
	kept, unused := map[right]bool{}, map[right]bool{}
	grants := grantsRights(used, has)
	for r := range has {
		switch {
		case used[r]:
		case grants, unmeasured(r, used, served):
			kept[r] = true
		default:
			unused[r] = true
		}
	}
	a.Used, a.Unused, a.Kept, a.Denied = merge(used), merge(unused), merge(kept), merge(refused)
	return a
}

// partner changes r to the right that is needed wherever r is, if there is one. Which of list and watch an informer asks for depends
// on the API server, and an event that comes again is patched (client-go v0.36.3, tools/cache/reflector.go and tools/events).
func partner(r *right) bool {
	for _, pair := range [][2]string{{"list", "watch"}, {"watch", "list"}, {"create", "patch"}} {
		if r.verb == pair[0] && (pair[0] != "create" || r.resource == "events") {
			r.verb = pair[1]
			return true
		}
	}
	return false
}

// rulesFor returns the rules of permissions that are account's.
func rulesFor(permissions []v1alpha1.StrategyDeploymentPermissions, account string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, p := range permissions {
		if p.ServiceAccountName == account {
			rules = append(rules, p.Rules...)
		}
	}
	return rules
}

// rightsOf spreads rules into single rights. All verbs are those that there are, one by one; so that of a wildcard the used ones can
// be kept.
func rightsOf(cluster, namespaced []rbacv1.PolicyRule) map[right]bool {
	all := map[right]bool{}
	for scope, rules := range map[string][]rbacv1.PolicyRule{report.ScopeCluster: cluster, report.ScopeNamespace: namespaced} {
		for _, rule := range rules {
			names := rule.ResourceNames
			if len(names) == 0 {
				names = []string{""}
			}
			known := rule.Verbs
			if slices.Contains(known, rbacv1.VerbAll) {
				known = verbs
			}
			for _, verb := range known {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, name := range names {
							all[right{scope: scope, group: group, resource: resource, name: name, verb: verb}] = true
						}
					}
				}
			}
			for _, verb := range rule.Verbs {
				for _, url := range rule.NonResourceURLs {
					all[right{scope: scope, url: url, verb: verb}] = true
				}
			}
		}
	}
	return all
}

// granting returns the rights that has should hold for c: those of the namespace before those of the cluster, each as narrow as c.
// There are none where something else than the CSV allows it.
func granting(has map[right]bool, c Call) []right {
	if c.Local {
		if found := grantingAt(has, c.right, report.ScopeNamespace); found != nil {
			return found
		}
	}
	return grantingAt(has, c.right, report.ScopeCluster)
}

// grantingAt returns what of scope allows r, narrowed to r: a wildcard is no part of it, names stay.
func grantingAt(has map[right]bool, r right, scope string) []right {
	r.scope = scope
	if r.url != "" {
		return grantingURL(has, r)
	}
	resources := []string{r.resource, rbacv1.ResourceAll}
	if _, sub, is := strings.Cut(r.resource, "/"); is {
		resources = append(resources, "*/"+sub)
	}
	for _, name := range []string{"", r.name} {
		for _, group := range []string{r.group, rbacv1.APIGroupAll} {
			for _, resource := range resources {
				if has[right{scope: scope, group: group, resource: resource, name: name, verb: r.verb}] {
					r.name = name
					return []right{r}
				}
			}
		}
	}
	return nil
}

// grantingURL returns what of r's scope allows r, a request of a URL: the narrowest, if there are several.
func grantingURL(has map[right]bool, r right) []right {
	var all []right
	for granted := range has {
		if granted.scope == r.scope && granted.url != "" && (granted.verb == r.verb || granted.verb == rbacv1.VerbAll) && matchesURL(granted.url, r.url) {
			all = append(all, granted)
		}
	}
	if len(all) == 0 {
		return nil
	}
	wide := func(g right) int {
		n := 0
		if strings.HasSuffix(g.url, "*") {
			n += 2
		}
		if g.verb == rbacv1.VerbAll {
			n++
		}
		return n
	}
	return []right{slices.MinFunc(all, func(a, b right) int {
		return cmp.Or(cmp.Compare(wide(a), wide(b)), cmp.Compare(len(b.url), len(a.url)))
	})}
}

// matchesURL reports whether a rule for pattern is one for url (k8s.io/kubernetes pkg/apis/rbac/v1/evaluation_helpers.go).
func matchesURL(pattern, url string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	return pattern == url || wild && strings.HasPrefix(url, prefix)
}

// rbacKinds are what nobody may write who does not have the rights that it gives, unless he may escalate or bind.
var rbacKinds = []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"}

// grantsRights reports whether the account gives rights to others, and may give only what it has.
func grantsRights(used, has map[right]bool) bool {
	writes := false
	for r := range used {
		writes = writes || r.group == rbacv1.GroupName && slices.Contains(rbacKinds, r.resource) && slices.Contains([]string{"create", "update", "patch"}, r.verb)
	}
	if !writes {
		return false
	}
	for r := range has {
		if r.verb == "escalate" || r.verb == "bind" {
			return false
		}
	}
	return true
}

// unmeasured reports whether nothing can be told of r by an audit log of this cluster: verbs that no request has (use, bind,
// escalate, impersonate), the right to set owner references that block deletion, which only some clusters ask for, reviews of those
// who call the operator, which a walk does not, and resources that the cluster does not have.
func unmeasured(r right, used map[right]bool, served func(group, resource string) bool) bool {
	if r.url != "" {
		return false
	}
	if !slices.Contains(verbs, r.verb) {
		return true
	}
	if r.verb == "create" && (r.resource == "tokenreviews" || r.resource == "subjectaccessreviews") {
		return true
	}
	kind, sub, _ := strings.Cut(r.resource, "/")
	if sub == "finalizers" && r.verb == "update" {
		for u := range used {
			if of, _, _ := strings.Cut(u.resource, "/"); u.group == r.group && of == kind {
				return true
			}
		}
	}
	wild := r.group == rbacv1.APIGroupAll || strings.Contains(r.resource, rbacv1.ResourceAll)
	return !wild && !served(r.group, kind)
}
