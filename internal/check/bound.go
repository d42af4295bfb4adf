package check

import (
	"encoding/json"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmkit/olmkit/internal/bundle"
)

// boundRule is a rule that a Role or ClusterRole of the bundle gives to the operator, by a binding of the bundle.
type boundRule struct {
	rbacv1.PolicyRule
	account string
	cluster bool
}

// clusterAdmin is the rule of the ClusterRole that every cluster has.
var clusterAdmin = rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}

// binds reports whether boundRules looks at objects of a kind.
func binds(kind string) bool {
	return slices.Contains([]string{"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}, kind)
}

// boundRules returns the rules that manifests bind to the ServiceAccounts of deployments. Roles that are not in the bundle are
// not known, but for cluster-admin.
func boundRules(manifests []json.RawMessage, deployments []v1alpha1.StrategyDeploymentSpec) []boundRule {
	accounts := map[string]bool{}
	for _, d := range deployments {
		accounts[accountOf(d)] = true
	}
	roles := map[string][]rbacv1.PolicyRule{"ClusterRole/cluster-admin": {clusterAdmin}}
	var bindings []rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
	for _, raw := range manifests {
		head := bundle.Manifest{JSON: raw}
		if !head.Identify() {
			continue
		}
		switch head.Kind {
		case "Role", "ClusterRole":
			var role rbacv1.ClusterRole
			if json.Unmarshal(raw, &role) == nil {
				roles[head.Kind+"/"+head.Name] = role.Rules
			}
		case "RoleBinding", "ClusterRoleBinding":
			var binding rbacv1.ClusterRoleBinding
			if json.Unmarshal(raw, &binding) == nil {
				binding.Kind = head.Kind
				bindings = append(bindings, binding)
			}
		}
	}
	var list []boundRule
	for _, b := range bindings {
		for _, s := range b.Subjects {
			if s.Kind != rbacv1.ServiceAccountKind || !accounts[s.Name] {
				continue
			}
			for _, rule := range roles[b.RoleRef.Kind+"/"+b.RoleRef.Name] {
				list = append(list, boundRule{rule, s.Name, b.Kind == "ClusterRoleBinding"})
			}
		}
	}
	return list
}
