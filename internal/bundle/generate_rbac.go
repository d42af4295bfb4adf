package bundle

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmkit/olmkit/internal/hint"
)

// grants are rules by service account, as they are written.
type grants map[string][]json.RawMessage

func (g grants) add(account string, rules []json.RawMessage) {
	for _, rule := range rules {
		if !slices.ContainsFunc(g[account], func(other json.RawMessage) bool { return string(other) == string(rule) }) {
			g[account] = append(g[account], rule)
		}
	}
}

func (g grants) node() *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, account := range slices.Sorted(maps.Keys(g)) {
		rules := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, rule := range g[account] {
			rules.Content = append(rules.Content, nodeOfJSON(rule))
		}
		list.Content = append(list.Content, &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
			text("rules"), rules, text("serviceAccountName"), text(account),
		}})
	}
	return list
}

// binding is a RoleBinding or a ClusterRoleBinding; the latter has no namespace.
type binding struct {
	Input
	RoleRef  rbacv1.RoleRef   `json:"roleRef"`
	Subjects []rbacv1.Subject `json:"subjects"`
}

// operatorAccounts returns the names of the operator's service accounts, and the namespaces that they are in.
func (g *generator) operatorAccounts() (names, namespaces map[string]bool) {
	names, namespaces = map[string]bool{}, map[string]bool{}
	for _, d := range g.deployments {
		names[d.account()], namespaces[d.Namespace] = true, true
	}
	for _, account := range g.accounts {
		names[account.Name], namespaces[account.Namespace] = true, true
	}
	return names, namespaces
}

// permissions turns what the bindings give the operator's service accounts into the CSV's permissions (RoleBindings,
// also those of a ClusterRole) and clusterPermissions (ClusterRoleBindings). OLM makes accounts, roles and bindings from
// them, in the namespace it installs to; a ClusterRoleBinding in the bundle could not name that namespace. Roles that no
// such binding uses, such as editor and viewer roles for users, are shipped.
func (g *generator) permissions() {
	operator, namespaces := g.operatorAccounts()
	namespaced, clusterWide := grants{}, grants{}
	granted := map[string]bool{} // roles that became permissions
	bound := map[string]bool{}   // roles that a shipped binding needs
	for _, input := range g.bindings {
		b := binding{Input: input}
		if err := input.decode(&b); err != nil {
			g.fail(err)
			continue
		}
		mine, others := ofOperator(b.Subjects, operator, namespaces)
		if len(mine) > 0 && g.madeByOLM(b) {
			g.note("%s: left out, OLM binds %s itself for a deployment with webhooks", b.ID(), b.RoleRef.Name)
			continue
		}
		role := g.role(b)
		if len(others) > 0 || len(b.Subjects) == 0 {
			g.shipPlain(input)
			if role != nil {
				bound[role.ID()] = true
			}
		}
		if len(mine) == 0 {
			continue
		}
		if role == nil {
			g.shipForeign(b, len(others) > 0)
			continue
		}
		if elsewhere := b.Namespace != "" && !namespaces[b.Namespace] && !namespaces[""]; b.Kind == "RoleBinding" && len(g.deployments) > 0 && elsewhere {
			g.fail(hint.With(b.errorf([]any{"metadata", "namespace"}, "it grants rights in namespace %s, and a CSV can only grant them where the operator is installed", b.Namespace),
				"grant them with a ClusterRoleBinding, or leave it out with --skip-kind RoleBinding"))
			continue
		}
		rules, err := rulesOf(*role)
		if err != nil {
			g.fail(err)
			continue
		}
		granted[role.ID()] = true
		for _, s := range mine {
			if b.Kind == "ClusterRoleBinding" {
				clusterWide.add(s.Name, rules)
			} else {
				namespaced.add(s.Name, rules)
			}
		}
	}
	for _, role := range g.roles {
		if !granted[role.ID()] || bound[role.ID()] {
			g.shipPlain(role)
		}
	}
	if g.Reduce != nil {
		g.reduce(namespaced, clusterWide)
	}
	g.shipAccounts(namespaced, clusterWide)
	g.setPermissions(namespaced, clusterWide)
}

// ofOperator parts subjects into the operator's service accounts and others.
func ofOperator(subjects []rbacv1.Subject, accounts, namespaces map[string]bool) (mine, others []rbacv1.Subject) {
	for _, s := range subjects {
		if s.Kind == rbacv1.ServiceAccountKind && accounts[s.Name] && (s.Namespace == "" || namespaces[s.Namespace] || namespaces[""]) {
			mine = append(mine, s)
		} else {
			others = append(others, s)
		}
	}
	return mine, others
}

// shipAccounts ships the service accounts that OLM does not create: those without permissions.
func (g *generator) shipAccounts(namespaced, clusterWide grants) {
	for _, account := range g.accounts {
		if len(namespaced[account.Name])+len(clusterWide[account.Name]) == 0 {
			// OLM creates only the accounts that permissions name, so this one must come along.
			g.shipPlain(account)
			continue
		}
		if lost := g.accountExtras(account); lost != "" {
			g.note("%s: OLM creates the service accounts of permissions itself, without %s", account.ID(), lost)
		}
	}
}

// setPermissions sets the CSV's permissions.
func (g *generator) setPermissions(namespaced, clusterWide grants) {
	if len(g.deployments) == 0 && len(namespaced)+len(clusterWide) == 0 {
		return // the base's own permissions stay
	}
	for key, list := range map[string]grants{"permissions": namespaced, "clusterPermissions": clusterWide} {
		if len(list) == 0 {
			remove(g.csv, "spec", "install", "spec", key)
			continue
		}
		set(g.csv, list.node(), "spec", "install", "spec", key)
	}
}

// madeByOLM reports whether the binding is one of the two that OLM makes for every deployment with webhooks or API
// services (operator-lifecycle-manager v0.46.0, pkg/controller/install/certresources.go).
func (g *generator) madeByOLM(b binding) bool {
	if len(g.defined)+len(g.apis) == 0 {
		return false
	}
	return b.Kind == "ClusterRoleBinding" && b.RoleRef.Name == "system:auth-delegator" ||
		b.Kind == "RoleBinding" && b.Namespace == "kube-system" && b.RoleRef.Name == "extension-apiserver-authentication-reader"
}

// shipForeign ships a binding of a role that the cluster brings along, such as view. Its rules are the cluster's business,
// so the CSV can't state them; and OLM does not put the namespace that it installs to into the binding's subjects
// (operator-lifecycle-manager v0.46.0, pkg/controller/operators/catalog/step_ensurer.go), so it works in one only.
func (g *generator) shipForeign(b binding, shipped bool) {
	if !shipped {
		g.shipPlain(b.Input)
	}
	namespace := b.Subjects[0].Namespace
	if namespace == "" {
		g.fail(hint.With(b.errorf([]any{"subjects", 0}, "it binds %s %s, which is not among the manifests, to a service account without a namespace", b.RoleRef.Kind, b.RoleRef.Name),
			"add the role to the manifests, bind one of your own, or name the namespace that the operator must be installed to"))
		return
	}
	key := []string{"metadata", "annotations", "operatorframework.io/suggested-namespace"}
	if textAt(g.csv, key...) == "" {
		set(g.csv, text(namespace), key...)
	}
	g.note("%s: it binds %s %s, which is not among the manifests; shipped as it is, it works only where the operator is installed to %s", b.ID(), b.RoleRef.Kind, b.RoleRef.Name, namespace)
}

// role returns the role that the binding names, or nil.
func (g *generator) role(b binding) *Input {
	for i, role := range g.roles {
		if role.Kind == b.RoleRef.Kind && role.Name == b.RoleRef.Name && (role.Kind == "ClusterRole" || role.Namespace == b.Namespace) {
			return &g.roles[i]
		}
	}
	return nil
}

func rulesOf(role Input) ([]json.RawMessage, error) {
	var content struct {
		Rules           []json.RawMessage `json:"rules"`
		AggregationRule json.RawMessage   `json:"aggregationRule"`
	}
	if err := role.decode(&content); err != nil {
		return nil, err
	}
	if len(content.AggregationRule) > 0 && string(content.AggregationRule) != "null" {
		return nil, hint.With(role.errorf([]any{"aggregationRule"}, "the rules of an aggregated role are known to a cluster only, and can't be stated in the CSV"),
			"list the rules in the ClusterRole, and delete its aggregationRule")
	}
	return content.Rules, nil
}

// accountExtras names what of the service account OLM's own would not have.
func (g *generator) accountExtras(account Input) string {
	var content struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		ImagePullSecrets []json.RawMessage `json:"imagePullSecrets"`
		Secrets          []json.RawMessage `json:"secrets"`
	}
	if err := account.decode(&content); err != nil {
		g.fail(err)
	}
	switch {
	case len(content.ImagePullSecrets)+len(content.Secrets) > 0:
		return "its secrets"
	case len(content.Metadata.Annotations) > 0:
		return "its annotations"
	}
	return ""
}

// reduce has accounts get only what they need.
func (g *generator) reduce(namespaced, clusterWide grants) {
	if len(namespaced)+len(clusterWide) == 0 {
		g.fail(hint.With(errors.New("the manifests give the operator's service accounts no rights that could be reduced"),
			"pass the manifests with the operator's roles and bindings"))
	}
	accounts := slices.Concat(slices.Collect(maps.Keys(namespaced)), slices.Collect(maps.Keys(clusterWide)))
	slices.Sort(accounts)
	for _, account := range slices.Compact(accounts) {
		cluster, err := clusterWide.rules(account)
		local, failed := namespaced.rules(account)
		if err := cmp.Or(err, failed); err != nil {
			g.fail(fmt.Errorf("the rules of service account %s: %w", account, err))
			continue
		}
		cluster, local, notes := g.Reduce(account, cluster, local)
		g.notes = append(g.notes, notes...)
		clusterWide.set(account, cluster)
		namespaced.set(account, local)
	}
}

// rules decodes the rules of an account.
func (g grants) rules(account string) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for _, raw := range g[account] {
		var rule rbacv1.PolicyRule
		if err := json.Unmarshal(raw, &rule); err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// set gives an account other rules.
func (g grants) set(account string, rules []rbacv1.PolicyRule) {
	delete(g, account)
	for _, rule := range rules {
		raw, err := json.Marshal(rule)
		if err != nil {
			panic(err) // strings alone
		}
		g[account] = append(g[account], raw)
	}
}
