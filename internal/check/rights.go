package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// right is one verb on one resource, or on one URL, which begins with a slash; a name limits it to the object of that name.
type right struct {
	scope, group, resource, verb, name string
}

const (
	clusterScope   = "cluster"
	namespaceScope = "namespace"

	deleteCollection = "deletecollection"
)

// verbs are those that the API server knows for resources; a wildcard stands for them.
var verbs = []string{"create", "delete", deleteCollection, "get", "list", "patch", "update", "watch"}

// rights spreads the rules of the CSV into single rights; those on names or URLs are left out. Nobody may change what it returns.
func (r *release) rights(global bool) map[right]bool {
	return r.spread.get(global, func() map[right]bool {
		all := r.allRights(global)
		maps.DeleteFunc(all, func(one right, _ bool) bool { return one.name != "" || one.url() })
		return all
	})
}

// allRights spreads the rules of the CSV into single rights. In a global OperatorGroup OLM makes ClusterRoles of Roles
// (operator-lifecycle-manager v0.46.0, pkg/controller/operators/olm/operatorgroup.go, ensureSingletonRBAC).
func (r *release) allRights(global bool) map[right]bool {
	all := map[right]bool{}
	add := func(scope string, permissions []v1alpha1.StrategyDeploymentPermissions) {
		for _, p := range permissions {
			for _, rule := range p.Rules {
				addRights(all, scope, rule)
			}
		}
	}
	add(clusterScope, r.csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions)
	scope := namespaceScope
	if global {
		scope = clusterScope
	}
	add(scope, r.csv.Spec.InstallStrategy.StrategySpec.Permissions)
	for _, b := range r.bound {
		scope := namespaceScope
		if b.cluster {
			scope = clusterScope
		}
		addRights(all, scope, b.PolicyRule)
	}
	return all
}

func addRights(all map[right]bool, scope string, rule rbacv1.PolicyRule) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, v := range rule.Verbs {
		for _, g := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					all[right{scope, g, resource, v, name}] = true
				}
			}
		}
		for _, url := range rule.NonResourceURLs {
			all[right{scope: scope, resource: "/" + strings.TrimPrefix(url, "/"), verb: v}] = true
		}
	}
}

// url reports whether the right is on a URL.
func (r right) url() bool { return strings.HasPrefix(r.resource, "/") }

// global reports whether the release can be installed in a global OperatorGroup, and whether in no other.
func (r *release) global() (can, must bool) {
	others := false
	for _, m := range r.csv.Spec.InstallModes {
		switch {
		case m.Type == v1alpha1.InstallModeTypeAllNamespaces:
			can = m.Supported
		case m.Supported:
			others = true
		}
	}
	return can, can && !others
}

// allowed reports whether rights hold r, directly or by a wildcard; what the cluster scope allows, each namespace does, and
// what all objects allow, each name. A resource "*" stands for subresources too, and "*/status" for those of all resources
// (k8s.io/component-helpers v0.36.3, auth/rbac/validation/policy_compact.go).
func allowed(rights map[right]bool, r right) bool {
	if r.name != "" {
		unnamed := r
		unnamed.name = ""
		if allowed(rights, unnamed) {
			return true
		}
	}
	scopes := []string{r.scope}
	if r.scope == namespaceScope {
		scopes = append(scopes, clusterScope)
	}
	resources := []string{r.resource, rbacv1.ResourceAll}
	if r.url() {
		resources = []string{r.resource, "/" + rbacv1.NonResourceAll}
	} else if _, sub, is := strings.Cut(r.resource, "/"); is {
		resources = append(resources, "*/"+sub)
	}
	for _, scope := range scopes {
		for _, group := range []string{r.group, rbacv1.APIGroupAll} {
			for _, resource := range resources {
				if rights[right{scope, group, resource, r.verb, r.name}] || rights[right{scope, group, resource, rbacv1.VerbAll, r.name}] {
					return true
				}
			}
		}
	}
	return false
}

// missing returns the rights of had that has does not allow.
func missing(had, has map[right]bool) map[right]bool {
	lost := map[right]bool{}
	for r := range had {
		if !allowed(has, r) {
			lost[r] = true
		}
	}
	return lost
}

// rightsText lists rights by resource, as far as there is room.
func rightsText(rights map[right]bool) string { return abridge(rightsList(rights)) }

// rightsList lists rights by resource.
func rightsList(rights map[right]bool) []string {
	byResource := map[string][]string{}
	for r := range rights {
		resource, sub, is := strings.Cut(r.resource, "/")
		if r.group != "" {
			resource += "." + r.group
		}
		if is {
			resource += "/" + sub
		}
		if r.name != "" {
			resource += " " + r.name
		}
		if r.scope == clusterScope {
			resource += " (cluster-wide)"
		}
		byResource[resource] = append(byResource[resource], r.verb)
	}
	list := make([]string, 0, len(byResource))
	for resource, v := range byResource {
		slices.Sort(v)
		list = append(list, strings.Join(slices.Compact(v), ",")+" "+resource)
	}
	slices.Sort(list)
	return list
}

// kind is one by which rights are compared, as rules name it.
type kind struct {
	group, plural string
}

// kinds returns what the release owns, requires, or has webhooks for.
func (r *release) kinds() map[kind]bool {
	all := map[kind]bool{}
	for _, d := range slices.Concat(r.csv.Spec.CustomResourceDefinitions.Owned, r.csv.Spec.CustomResourceDefinitions.Required) {
		plural, group, _ := strings.Cut(d.Name, ".")
		all[kind{group, plural}] = true
	}
	for _, w := range r.csv.Spec.WebhookDefinitions {
		for _, rule := range w.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					if plural, _, _ := strings.Cut(resource, "/"); plural != rbacv1.ResourceAll && group != rbacv1.APIGroupAll {
						all[kind{group, plural}] = true
					}
				}
			}
		}
	}
	return all
}

// called returns the rights by which operators work with objects of a kind: those on the objects, on a status that the CRD
// has as a subresource, and on finalizers, which the admission plugin OwnerReferencesPermissionEnforcement asks for.
func (r *release) called(k kind) []right {
	list := make([]right, 0, len(verbs)+3)
	for _, v := range verbs {
		list = append(list, right{group: k.group, resource: k.plural, verb: v})
	}
	c := r.crd(k.plural + "." + k.group)
	if c == nil {
		return list
	}
	list = append(list, right{group: k.group, resource: k.plural + "/finalizers", verb: "update"})
	for _, v := range c.Spec.Versions {
		if v.Served && v.Subresources != nil && v.Subresources.Status != nil {
			return append(list, right{group: k.group, resource: k.plural + "/status", verb: "update"}, right{group: k.group, resource: k.plural + "/status", verb: "patch"})
		}
	}
	return list
}

// lostRights returns the rights that an upgrade takes on kinds that the release still owns or names, verb by verb, with
// wildcards expanded.
func lostRights(u upgrade) map[right]bool {
	can, _ := u.to.global()
	had, has := u.from.rights(false), u.to.rights(can)
	lost := map[right]bool{}
	for k := range u.to.kinds() {
		ofKind := map[right]bool{}
		for _, r := range u.to.called(k) {
			for _, scope := range []string{clusterScope, namespaceScope} {
				if r.scope = scope; allowed(had, r) && !allowed(has, r) {
					ofKind[r] = true
					break
				}
			}
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(ofKind)), func(r right) bool { return r.verb != deleteCollection }) {
			maps.Copy(lost, ofKind)
		}
	}
	return lost
}

// expanded returns rights with the verbs that a wildcard stands for, and for all resources of a group those that the release
// owns there, where there are such.
func (r *release) expanded(rights map[right]bool) map[right]bool {
	own := map[string][]string{}
	for _, d := range r.csv.Spec.CustomResourceDefinitions.Owned {
		plural, group, _ := strings.Cut(d.Name, ".")
		own[group] = append(own[group], plural, plural+"/status", plural+"/finalizers")
	}
	all := map[right]bool{}
	for one := range rights {
		resources, by := []string{one.resource}, []string{one.verb}
		if one.resource == rbacv1.ResourceAll && own[one.group] != nil {
			resources = own[one.group]
		}
		if one.verb == rbacv1.VerbAll {
			by = verbs
		}
		for _, resource := range resources {
			for _, v := range by {
				all[right{one.scope, one.group, resource, v, one.name}] = true
			}
		}
	}
	return all
}

func rightsLost(_ *subject, u upgrade, found func(hit)) {
	if lost := lostRights(u); len(lost) > 0 {
		found(dropsRights(u, lost))
	}
}

func otherRightsLost(_ *subject, u upgrade, found func(hit)) {
	_, global := u.to.global()
	needed := lostRights(u)
	lost := missing(u.from.expanded(u.from.rights(global)), u.to.rights(global))
	maps.DeleteFunc(lost, func(r right, _ bool) bool { return needed[r] })
	if len(lost) > 0 {
		found(dropsRights(u, lost))
	}
}

// permissions is the path of an operator's permissions in a CSV, as far as it is one.
var permissions = []any{"spec", "install", "spec", "clusterPermissions"}

func dropsRights(u upgrade, lost map[right]bool) hit {
	return hit{path: permissions, message: fmt.Sprintf("%s drops permissions that %s had: %s", u.To, u.From, rightsText(lost))}
}

// rightsGained takes what the release before got from OLM for what it had.
func rightsGained(_ *subject, u upgrade, found func(hit)) {
	_, global := u.from.global()
	gained := missing(u.to.rights(global), u.from.rights(global))
	if len(gained) > 0 {
		found(hit{path: permissions, message: fmt.Sprintf("%s adds permissions that %s did not have: %s", u.To, u.From, rightsText(gained))})
	}
}
