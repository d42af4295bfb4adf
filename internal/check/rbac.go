package check

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmkit/olmkit/internal/finding"
)

// rbacChecks look at what the ClusterServiceVersion lets the operator do.
var rbacChecks = []Check{
	{
		Code: "RBAC001", Severity: finding.Error,
		Title: "a Deployment uses a ServiceAccount that nothing creates",
		Cause: "its pods are not created: OLM creates only the ServiceAccounts that permissions name",
		Fix:   "add permissions for the ServiceAccount, or add the ServiceAccount to the bundle",
		judge: ofCSV(checkAccountsExist),
	},
	{
		Code: "RBAC002", Severity: finding.Info,
		Title: "permissions name a ServiceAccount that no Deployment uses",
		Cause: "the rules apply to no pod of the operator, unless the operator itself creates pods with that ServiceAccount",
		Fix:   "correct the name, unless the operator uses the ServiceAccount for its operands",
		judge: ofCSV(checkAccountsUsed),
	},
	{
		Code: "RBAC003", Severity: finding.Warning,
		Title: "the operator has no permissions on a kind that it owns",
		Cause: "it cannot list or watch the objects that it reconciles",
		Fix:   "grant get, list and watch on the kind's resource",
		judge: ofCSV(checkOwnedGranted),
	},
	{
		Code: "RBAC004", Severity: finding.Info,
		Title: "the operator has all verbs on all resources",
		Cause: "whoever controls the operator's pod controls the cluster",
		Fix:   "grant only the resources and verbs that the operator needs",
		judge: ofCSV(checkWildcards),
	},
	{
		Code: "RBAC005", Severity: finding.Info,
		Title: "the operator can raise its own permissions",
		Cause: "with escalate, bind or impersonate it can grant or use permissions that it does not have itself",
		Fix:   "grant the operator these permissions themselves, if they are few",
		judge: ofCSV(checkEscalation),
	},
	{
		Code: "RBAC006", Severity: finding.Info,
		Title: "the operator can read all Secrets of the cluster",
		Cause: "whoever controls the operator's pod can read every credential in the cluster",
		Fix:   "name the Secrets in resourceNames, or grant them in permissions instead of clusterPermissions",
		judge: ofCSV(checkSecrets),
	},
	{
		Code: "RBAC007", Severity: finding.Warning,
		Title: "permissions contain a cluster-scoped resource",
		Cause: "a Role does not grant it: the API server refuses the operator's requests, except in install mode AllNamespaces, for which OLM creates ClusterRoles. " +
			"The only exception are namespaces: a request that names the operator's own Namespace, such as get, is allowed",
		Fix:   "move the rule to clusterPermissions",
		judge: ofCSV(checkClusterScoped),
	},
	{
		Code: "RBAC008", Severity: finding.Info,
		Title: "permissions name a ServiceAccount twice",
		Cause: "OLM creates a role for each entry, and a reader of the first can miss the second",
		Fix:   "move the rules into one entry",
		judge: ofCSV(func(s *single, found func(hit)) {
			strategy := s.spec.Spec.InstallStrategy.StrategySpec
			for _, list := range []struct {
				key         string
				permissions []v1alpha1.StrategyDeploymentPermissions
			}{{"permissions", strategy.Permissions}, {"clusterPermissions", strategy.ClusterPermissions}} {
				seen := map[string]bool{}
				for i, p := range list.permissions {
					if seen[p.ServiceAccountName] {
						found(s.at([]any{"spec", "install", "spec", list.key, i, "serviceAccountName"}, "%s names ServiceAccount %s a second time", list.key, p.ServiceAccountName))
					}
					seen[p.ServiceAccountName] = true
				}
			}
		}),
	},
	{
		Code: "RBAC009", Severity: finding.Info,
		Title: "the operator has no permissions on a kind that it requires",
		Cause: "it cannot read or create the objects for which it requires the other operator",
		Fix:   "grant the verbs that the operator needs, or remove the requirement",
		judge: ofCSV(func(s *single, found func(hit)) {
			rules := s.allRules()
			for i, required := range s.spec.Spec.CustomResourceDefinitions.Required {
				resource, group, _ := strings.Cut(required.Name, ".")
				if !grants(rules, group, resource) {
					found(s.at([]any{"spec", "customresourcedefinitions", "required", i}, "no rule grants permissions on required CRD %s", required.Name))
				}
			}
		}),
	},
	{
		Code: "RBAC010", Severity: finding.Info,
		Title: "rules grant all verbs or all resources",
		Cause: "resources and verbs that a later version of the API adds are granted too, without review",
		Fix:   "grant only the verbs and resources that the operator needs",
		judge: ofCSV(checkBroadRules),
	},
}

// checkBroadRules tells of the rules of each ServiceAccount at once.
func checkBroadRules(s *single, found func(hit)) {
	var order []string
	first, rules := map[string][]any{}, map[string][]string{} // by account
	for _, r := range s.rules() {
		verbs, resources := slices.Contains(r.Verbs, "*"), slices.Contains(r.Resources, "*")
		var at, text string
		switch {
		case len(r.Resources) == 0, verbs && resources && slices.Contains(r.APIGroups, "*"): // RBAC004
			continue
		case verbs:
			at, text = "verbs", "all verbs on "+abridge(r.Resources)
		case resources:
			at, text = "resources", strings.Join(r.Verbs, ", ")+" on all resources of API group "+abridge(r.APIGroups)
		default:
			continue
		}
		if first[r.account] == nil {
			order, first[r.account] = append(order, r.account), append(slices.Clone(r.path), at)
		}
		rules[r.account] = append(rules[r.account], text)
	}
	for _, account := range order {
		found(s.at(first[account], "ServiceAccount %s has %s", account, sentences(rules[account])))
	}
}

// granted is a rule of the CSV, with its place.
type granted struct {
	rbacv1.PolicyRule
	account string
	cluster bool
	path    []any
}

func (s *single) rules() []granted {
	var rules []granted
	strategy := s.spec.Spec.InstallStrategy.StrategySpec
	add := func(key string, permissions []v1alpha1.StrategyDeploymentPermissions, cluster bool) {
		for i, p := range permissions {
			for j, rule := range p.Rules {
				rules = append(rules, granted{rule, p.ServiceAccountName, cluster, []any{"spec", "install", "spec", key, i, "rules", j}})
			}
		}
	}
	add("permissions", strategy.Permissions, false)
	add("clusterPermissions", strategy.ClusterPermissions, true)
	return rules
}

// allRules returns the rules of the CSV, and those that the bundle binds to the operator, which have no place.
func (s *single) allRules() []granted {
	rules := s.rules()
	var manifests []json.RawMessage
	for _, m := range s.bundle.Manifests {
		if binds(m.Kind) {
			manifests = append(manifests, m.JSON)
		}
	}
	for _, b := range boundRules(manifests, s.spec.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) {
		rules = append(rules, granted{PolicyRule: b.PolicyRule, account: b.account, cluster: b.cluster})
	}
	return rules
}

// grants reports whether some rule is about a resource.
func grants(rules []granted, group, resource string) bool {
	return slices.ContainsFunc(rules, func(r granted) bool { return names(r.APIGroups, group) && names(r.Resources, resource) })
}

func accountOf(d v1alpha1.StrategyDeploymentSpec) string {
	pod := d.Spec.Template.Spec
	if pod.ServiceAccountName != "" {
		return pod.ServiceAccountName
	}
	if pod.DeprecatedServiceAccount != "" {
		return pod.DeprecatedServiceAccount
	}
	return "default"
}

func checkAccountsExist(s *single, found func(hit)) {
	strategy := s.spec.Spec.InstallStrategy.StrategySpec
	known := map[string]bool{"default": true}
	for _, p := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		known[p.ServiceAccountName] = true
	}
	for _, m := range s.bundle.Manifests {
		if m.Kind == rbacv1.ServiceAccountKind {
			known[m.Name] = true
		}
	}
	for i, d := range strategy.DeploymentSpecs {
		if account := accountOf(d); !known[account] {
			found(s.at(append(slices.Clone(deploymentsPath), i, "spec", "template", "spec", "serviceAccountName"),
				"Deployment %s uses ServiceAccount %s, which no permissions name and the bundle does not contain", d.Name, account))
		}
	}
}

func checkAccountsUsed(s *single, found func(hit)) {
	strategy := s.spec.Spec.InstallStrategy.StrategySpec
	used := map[string]bool{}
	for _, d := range strategy.DeploymentSpecs {
		used[accountOf(d)] = true
	}
	check := func(key string, permissions []v1alpha1.StrategyDeploymentPermissions) {
		for i, p := range permissions {
			if !used[p.ServiceAccountName] {
				found(s.at([]any{"spec", "install", "spec", key, i, "serviceAccountName"}, "no Deployment uses ServiceAccount %s", p.ServiceAccountName))
			}
		}
	}
	check("permissions", strategy.Permissions)
	check("clusterPermissions", strategy.ClusterPermissions)
}

func checkOwnedGranted(s *single, found func(hit)) {
	rules := s.allRules()
	seen := map[string]bool{}
	for i, owned := range s.spec.Spec.CustomResourceDefinitions.Owned {
		resource, group, _ := strings.Cut(owned.Name, ".")
		if seen[owned.Name] {
			continue
		}
		seen[owned.Name] = true
		if !grants(rules, group, resource) {
			found(s.at([]any{"spec", "customresourcedefinitions", "owned", i}, "no rule grants permissions on owned CRD %s", owned.Name))
		}
	}
}

func names(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

func checkWildcards(s *single, found func(hit)) {
	for _, r := range s.rules() {
		if slices.Contains(r.APIGroups, "*") && slices.Contains(r.Resources, "*") && slices.Contains(r.Verbs, "*") {
			found(s.at(r.path, "ServiceAccount %s has all verbs on all resources of all API groups", r.account))
		}
	}
}

func checkEscalation(s *single, found func(hit)) {
	for _, r := range s.rules() {
		for _, verb := range []string{"escalate", "bind", "impersonate"} {
			if slices.Contains(r.Verbs, verb) {
				found(s.at(r.path, "ServiceAccount %s can %s %s", r.account, verb, strings.Join(r.Resources, ", ")))
			}
		}
	}
}

func checkSecrets(s *single, found func(hit)) {
	for _, r := range s.rules() {
		reads := names(r.Verbs, "get") || names(r.Verbs, "list") || names(r.Verbs, "watch")
		if r.cluster && reads && names(r.APIGroups, "") && slices.Contains(r.Resources, "secrets") && len(r.ResourceNames) == 0 {
			found(s.at(r.path, "ServiceAccount %s can read the Secrets of all namespaces", r.account))
		}
	}
}

// clusterScoped are resources of Kubernetes that have no namespace and that operators ask for.
var clusterScoped = map[string][]string{
	"":                             {"namespaces", "nodes", "persistentvolumes"},
	"apiextensions.k8s.io":         {"customresourcedefinitions"},
	"admissionregistration.k8s.io": {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
	"rbac.authorization.k8s.io":    {"clusterroles", "clusterrolebindings"},
	"storage.k8s.io":               {"storageclasses", "csidrivers", "csinodes", "volumeattachments"},
	"scheduling.k8s.io":            {"priorityclasses"},
	"authentication.k8s.io":        {"tokenreviews"},
	"authorization.k8s.io":         {"subjectaccessreviews"},
}

// acrossNamespaces are the verbs by which a Namespace is not asked for by name. Those that name one are requests within it,
// which a Role can allow (k8s.io/apiserver v0.36.3, pkg/endpoints/request/requestinfo.go).
var acrossNamespaces = []string{"list", "watch", "create"}

// outOfReach returns the verbs of a rule on a cluster-scoped resource that a Role does not give.
func (r granted) outOfReach(resource string) []string {
	if resource != "namespaces" {
		return r.Verbs
	}
	var verbs []string
	for _, verb := range acrossNamespaces {
		if names(r.Verbs, verb) {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

func checkClusterScoped(s *single, found func(hit)) {
	elsewhere := slices.ContainsFunc(s.spec.Spec.InstallModes, func(m v1alpha1.InstallMode) bool {
		return m.Supported && m.Type != v1alpha1.InstallModeTypeAllNamespaces
	})
	if !elsewhere {
		return
	}
	for _, r := range s.rules() {
		if r.cluster {
			continue
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				if !slices.Contains(clusterScoped[group], resource) || s.grantedClusterWide(r.account, group, resource) {
					continue
				}
				if verbs := r.outOfReach(resource); len(verbs) > 0 {
					found(s.at(r.path, "permissions of ServiceAccount %s contain %s (%s), which are cluster-scoped", r.account, resource, strings.Join(verbs, ", ")))
				}
			}
		}
	}
}

func (s *single) grantedClusterWide(account, group, resource string) bool {
	return slices.ContainsFunc(s.allRules(), func(r granted) bool {
		return r.cluster && r.account == account && names(r.APIGroups, group) && names(r.Resources, resource)
	})
}
