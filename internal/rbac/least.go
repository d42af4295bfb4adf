package rbac

import (
	"cmp"
	"maps"
	"slices"

	"github.com/blang/semver/v4"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmkit/olmkit/internal/report"
)

// merge puts single rights together by what they are about, sorted.
func merge(rights map[right]bool) []report.Right {
	var list []right
	for r := range rights {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b right) int {
		return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.url, b.url),
			cmp.Compare(a.name, b.name), cmp.Compare(a.verb, b.verb))
	})
	var merged []report.Right
	for _, r := range list {
		last := len(merged) - 1
		names := []string(nil)
		if r.name != "" {
			names = []string{r.name}
		}
		if last >= 0 && merged[last].Scope == r.scope && merged[last].Group == r.group && merged[last].Resource == r.resource && merged[last].URL == r.url && slices.Equal(merged[last].Names, names) {
			merged[last].Verbs = append(merged[last].Verbs, r.verb)
			continue
		}
		merged = append(merged, report.Right{Scope: r.scope, Group: r.group, Resource: r.resource, URL: r.url, Names: names, Verbs: []string{r.verb}})
	}
	return withNames(merged)
}

// withNames makes one of rights that differ in names alone.
func withNames(list []report.Right) []report.Right {
	var merged []report.Right
	for _, r := range list {
		i := slices.IndexFunc(merged, func(o report.Right) bool {
			return len(r.Names) > 0 && len(o.Names) > 0 && o.Scope == r.Scope && o.Group == r.Group && o.Resource == r.Resource && slices.Equal(o.Verbs, r.Verbs)
		})
		if i < 0 {
			merged = append(merged, r)
			continue
		}
		merged[i].Names = append(slices.Clone(merged[i].Names), r.Names...)
	}
	return merged
}

// split is what merge did, undone.
func split(list []report.Right) map[right]bool {
	all := map[right]bool{}
	for _, r := range list {
		names := r.Names
		if len(names) == 0 {
			names = []string{""}
		}
		for _, name := range names {
			for _, verb := range r.Verbs {
				all[right{scope: r.Scope, group: r.Group, resource: r.Resource, url: r.URL, name: name, verb: verb}] = true
			}
		}
	}
	return all
}

// Least returns the rules that an account needs of those that it would get, by what was measured of it, and what it does not get.
// What was used is in them. So is what the measured release did not have: nothing shows that it is not needed.
func Least(measured report.Access, cluster, namespaced []rbacv1.PolicyRule) (leastCluster, leastNamespaced []rbacv1.PolicyRule, dropped []report.Right) {
	needed, without := split(measured.Used), map[right]bool{}
	unused := split(measured.Unused)
	for r := range rightsOf(cluster, namespaced) {
		switch {
		case needed[r]:
		case unused[r]:
			without[r] = true
		default:
			needed[r] = true
		}
	}
	byScope := map[string][]report.Right{}
	for _, r := range merge(needed) {
		byScope[r.Scope] = append(byScope[r.Scope], r)
	}
	return rules(byScope[report.ScopeCluster]), rules(byScope[report.ScopeNamespace]), merge(without)
}

// rules makes rules of rights: one for all resources of a group with the same verbs.
func rules(list []report.Right) []rbacv1.PolicyRule {
	var made []rbacv1.PolicyRule
	for _, r := range list {
		i := slices.IndexFunc(made, func(o rbacv1.PolicyRule) bool {
			return slices.Equal(o.Verbs, r.Verbs) && slices.Equal(o.ResourceNames, r.Names) &&
				(r.URL != "" && len(o.NonResourceURLs) > 0 || r.URL == "" && slices.Equal(o.APIGroups, []string{r.Group}))
		})
		switch {
		case i >= 0 && r.URL != "":
			made[i].NonResourceURLs = append(made[i].NonResourceURLs, r.URL)
		case i >= 0:
			made[i].Resources = append(made[i].Resources, r.Resource)
		case r.URL != "":
			made = append(made, rbacv1.PolicyRule{NonResourceURLs: []string{r.URL}, Verbs: r.Verbs})
		default:
			made = append(made, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, ResourceNames: r.Names, Verbs: r.Verbs})
		}
	}
	return made
}

// Join makes one of what the parts of a walk measured of the same account of a release, the newest release last. A right that one of them used is used.
func Join(list []report.Access) []report.Access {
	var joined []report.Access
	for _, a := range list {
		i := slices.IndexFunc(joined, func(o report.Access) bool {
			return o.Package == a.Package && o.Release == a.Release && o.Account == a.Account && o.OLM == a.OLM && o.Kubernetes == a.Kubernetes
		})
		if i < 0 {
			joined = append(joined, a)
			continue
		}
		both := joined[i]
		used, kept, unused := split(slices.Concat(both.Used, a.Used)), split(slices.Concat(both.Kept, a.Kept)), split(slices.Concat(both.Unused, a.Unused))
		maps.DeleteFunc(kept, func(r right, _ bool) bool { return used[r] })
		maps.DeleteFunc(unused, func(r right, _ bool) bool { return used[r] || kept[r] })
		both.Used, both.Kept, both.Unused, both.Denied = merge(used), merge(kept), merge(unused), merge(split(slices.Concat(both.Denied, a.Denied)))
		joined[i] = both
	}
	slices.SortStableFunc(joined, func(a, b report.Access) int {
		older, err1 := semver.ParseTolerant(a.Version)
		newer, err2 := semver.ParseTolerant(b.Version)
		if err1 != nil || err2 != nil {
			return 0
		}
		return older.Compare(newer)
	})
	return joined
}

// Of returns the newest measured release in r, and what its ServiceAccounts did, by their names. Each walk tells the
// newest of its releases last. What an older release used is no unused right of the newest: who upgrades does not create what is there.
func Of(r *report.Report) (string, map[string]report.Access) {
	release := ""
	accounts, used := map[string]report.Access{}, map[string]map[right]bool{}
	for _, a := range r.Access {
		if a.Release != release {
			release = a.Release
			clear(accounts)
		}
		accounts[a.Account] = a
		if used[a.Account] == nil {
			used[a.Account] = map[right]bool{}
		}
		maps.Copy(used[a.Account], split(a.Used))
	}
	for name, a := range accounts {
		unused, all := split(a.Unused), split(a.Used)
		for one := range used[name] {
			if unused[one] {
				all[one] = true
				delete(unused, one)
			}
		}
		a.Used, a.Unused = merge(all), merge(unused)
		accounts[name] = a
	}
	return release, accounts
}
