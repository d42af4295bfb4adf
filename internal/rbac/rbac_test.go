package rbac

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/report"
)

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func named(r rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	r.ResourceNames = names
	return r
}

func csv(cluster, namespaced []rbacv1.PolicyRule) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: "thing.v1"}}
	c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "manager", Rules: cluster}, {ServiceAccountName: "other", Rules: []rbacv1.PolicyRule{rule("", "nodes", "get")}}}
	c.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "manager", Rules: namespaced}}
	return c
}

// event is a request as the audit log has it.
func event(verb, group, resource, sub, namespace, name string, code int32) auditv1.Event {
	return auditv1.Event{
		Verb: verb, ObjectRef: &auditv1.ObjectReference{APIGroup: group, Resource: resource, Subresource: sub, Namespace: namespace, Name: name},
		ResponseStatus: &metav1.Status{Code: code}, Annotations: map[string]string{decisionKey: "allow"},
	}
}

func callsOf(events ...auditv1.Event) []Call {
	var calls []Call
	for _, e := range events {
		for _, c := range Calls(e) {
			c.Local = c.Namespace == "operators"
			calls = append(calls, c)
		}
	}
	return calls
}

func told(list []report.Right) []string {
	var said []string
	for _, r := range list {
		said = append(said, r.Scope+" "+r.String())
	}
	return said
}

func TestMeasure(t *testing.T) {
	refusal := event("patch", "apps", "deployments", "", "a", "x", 403)
	refusal.Annotations[decisionKey] = "forbid"
	webhook := event("update", "apps", "deployments", "", "a", "x", 403) // by an admission webhook: RBAC allowed it
	url := auditv1.Event{Verb: "get", RequestURI: "/metrics?x=1", ResponseStatus: &metav1.Status{Code: 200}}
	tests := map[string]struct {
		cluster, namespaced        []rbacv1.PolicyRule
		events                     []auditv1.Event
		used, unused, kept, denied []string
	}{
		"used and unused": {
			cluster: []rbacv1.PolicyRule{rule("apps", "deployments", "get", "update", "delete")},
			events:  []auditv1.Event{event("get", "apps", "deployments", "", "a", "x", 404), webhook, refusal},
			used:    []string{"cluster get, update deployments.apps"}, unused: []string{"cluster delete deployments.apps"}, denied: []string{"cluster patch deployments.apps"},
		},
		"wildcards": {
			cluster: []rbacv1.PolicyRule{rule("*", "*", "*")},
			events:  []auditv1.Event{event("create", "", "pods", "", "a", "", 201), event("update", "example.com", "things", "status", "a", "x", 200)},
			used:    []string{"cluster create pods", "cluster update things.example.com/status"},
			unused:  []string{"cluster create, delete, deletecollection, get, list, patch, update, watch *.*"},
		},
		"an informer lists and watches": {
			cluster: []rbacv1.PolicyRule{rule("", "pods", "get", "list", "watch")},
			events:  []auditv1.Event{event("watch", "", "pods", "", "", "", 200)},
			used:    []string{"cluster list, watch pods"}, unused: []string{"cluster get pods"},
		},
		"an event that comes again": {
			cluster: []rbacv1.PolicyRule{rule("events.k8s.io", "events", "create", "patch"), rule("", "configmaps", "create", "patch")},
			events:  []auditv1.Event{event("create", "events.k8s.io", "events", "", "a", "", 201), event("create", "", "configmaps", "", "a", "", 201)},
			used:    []string{"cluster create configmaps", "cluster create, patch events.events.k8s.io"}, unused: []string{"cluster patch configmaps"},
		},
		"reviews of who calls": {
			cluster: []rbacv1.PolicyRule{rule("authentication.k8s.io", "tokenreviews", "create")},
			kept:    []string{"cluster create tokenreviews.authentication.k8s.io"},
		},
		"a patch that creates": {
			cluster: []rbacv1.PolicyRule{rule("", "services", "create", "patch")},
			events:  []auditv1.Event{event("patch", "", "services", "", "a", "x", 201)},
			used:    []string{"cluster create, patch services"},
		},
		"the namespace's rights before the cluster's": {
			cluster:    []rbacv1.PolicyRule{rule("", "secrets", "get")},
			namespaced: []rbacv1.PolicyRule{rule("", "secrets", "get")},
			events:     []auditv1.Event{event("get", "", "secrets", "", "operators", "x", 200)},
			used:       []string{"namespace get secrets"}, unused: []string{"cluster get secrets"},
		},
		"elsewhere only the cluster's": {
			cluster:    []rbacv1.PolicyRule{rule("", "secrets", "get")},
			namespaced: []rbacv1.PolicyRule{rule("", "secrets", "get")},
			events:     []auditv1.Event{event("get", "", "secrets", "", "a", "x", 200)},
			used:       []string{"cluster get secrets"}, unused: []string{"namespace get secrets"},
		},
		"names stay": {
			namespaced: []rbacv1.PolicyRule{named(rule("coordination.k8s.io", "leases", "get", "update"), "lock", "old")},
			events:     []auditv1.Event{event("get", "coordination.k8s.io", "leases", "", "operators", "lock", 200), event("update", "coordination.k8s.io", "leases", "", "operators", "lock", 200)},
			used:       []string{"namespace get, update leases.coordination.k8s.io (lock)"}, unused: []string{"namespace get, update leases.coordination.k8s.io (old)"},
		},
		"what others grant is not the CSV's": {
			events: []auditv1.Event{event("create", "authentication.k8s.io", "tokenreviews", "", "", "", 201)},
		},
		"what no audit log shows": {
			cluster: []rbacv1.PolicyRule{
				rule("example.com", "things", "get"), rule("example.com", "things/finalizers", "update"), rule("security.openshift.io", "securitycontextconstraints", "use"),
				rule("monitoring.coreos.com", "servicemonitors", "create"), rule("example.com", "unused/finalizers", "update"),
			},
			events: []auditv1.Event{event("get", "example.com", "things", "", "a", "x", 200)},
			used:   []string{"cluster get things.example.com"}, unused: []string{"cluster update unused.example.com/finalizers"},
			kept: []string{"cluster update things.example.com/finalizers", "cluster create servicemonitors.monitoring.coreos.com", "cluster use securitycontextconstraints.security.openshift.io"},
		},
		"who grants keeps all": {
			cluster: []rbacv1.PolicyRule{rule("rbac.authorization.k8s.io", "roles", "create"), rule("", "pods", "get")},
			events:  []auditv1.Event{event("create", "rbac.authorization.k8s.io", "roles", "", "a", "", 201)},
			used:    []string{"cluster create roles.rbac.authorization.k8s.io"}, kept: []string{"cluster get pods"},
		},
		"URLs that several rules allow": {
			cluster: []rbacv1.PolicyRule{
				{NonResourceURLs: []string{"*", "/met*", "/metrics", "/m*"}, Verbs: []string{"get"}}, {NonResourceURLs: []string{"/metrics", "*"}, Verbs: []string{"*"}},
			},
			events: []auditv1.Event{url},
			used:   []string{"cluster get /metrics"}, unused: []string{"cluster *, get *", "cluster get /m*", "cluster get /met*", "cluster * /metrics"},
		},
		"URLs": {
			cluster: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics", "/healthz"}, Verbs: []string{"get"}}},
			events:  []auditv1.Event{url},
			used:    []string{"cluster get /metrics"}, unused: []string{"cluster get /healthz"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := Measure(csv(test.cluster, test.namespaced), "manager", callsOf(test.events...), func(group, _ string) bool {
				return !slices.Contains([]string{"monitoring.coreos.com", "security.openshift.io"}, group)
			})
			got := [][]string{told(a.Used), told(a.Unused), told(a.Kept), told(a.Denied)}
			if diff := cmp.Diff([][]string{test.used, test.unused, test.kept, test.denied}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLeast(t *testing.T) {
	granted := []rbacv1.PolicyRule{rule("apps", "deployments", "*"), rule("apps", "statefulsets", "get"), {APIGroups: []string{""}, Resources: []string{"services", "configmaps"}, Verbs: []string{"get", "list", "watch", "create", "update"}}}
	lease := named(rule("coordination.k8s.io", "leases", "get", "update"), "lock")
	a := Measure(csv(granted, []rbacv1.PolicyRule{lease}), "manager", callsOf(
		event("get", "apps", "deployments", "", "a", "x", 200), event("create", "", "services", "", "a", "", 201), event("create", "", "configmaps", "", "a", "", 201),
		event("get", "coordination.k8s.io", "leases", "", "operators", "lock", 200),
	), func(string, string) bool { return true })
	// The next release asks for one right more, of which nothing is known yet.
	cluster, namespaced, dropped := Least(a, append(granted, rule("batch", "jobs", "create")), []rbacv1.PolicyRule{lease})
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "services"}, Verbs: []string{"create"}},
		rule("apps", "deployments", "get"), rule("batch", "jobs", "create"),
	}
	if diff := cmp.Diff(want, cluster); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]rbacv1.PolicyRule{named(rule("coordination.k8s.io", "leases", "get"), "lock")}, namespaced); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"cluster get, list, update, watch configmaps", "cluster get, list, update, watch services",
		"cluster create, delete, deletecollection, list, patch, update, watch deployments.apps", "cluster get statefulsets.apps", "namespace update leases.coordination.k8s.io (lock)",
	}, told(dropped)); diff != "" {
		t.Error(diff)
	}
	// What is left allows what was done, and nothing is left to drop.
	again := Measure(csv(cluster, namespaced), "manager", callsOf(event("get", "apps", "deployments", "", "a", "x", 200)), func(string, string) bool { return true })
	if len(again.Denied) > 0 || !slices.Equal(told(again.Used), []string{"cluster get deployments.apps"}) {
		t.Errorf("got %+v", again)
	}
}

// TestOfUpgrades: the first release creates what the next one finds.
func TestOfUpgrades(t *testing.T) {
	deployments := func(verbs ...string) []report.Right {
		return []report.Right{{Scope: report.ScopeCluster, Group: "apps", Resource: "deployments", Verbs: verbs}}
	}
	_, accounts := Of(&report.Report{Access: []report.Access{
		{Release: "a.v1", Account: "x", Used: deployments("create", "delete", "get")},
		{Release: "a.v2", Account: "x", Used: deployments("get"), Unused: deployments("create", "update")},
	}})
	if a := accounts["x"]; !slices.Equal(told(a.Used), []string{"cluster create, get deployments.apps"}) || !slices.Equal(told(a.Unused), []string{"cluster update deployments.apps"}) {
		t.Errorf("got %+v", a)
	}
}

func TestOfTheNewestRelease(t *testing.T) {
	r := &report.Report{Access: []report.Access{{Release: "a.v1", Account: "x"}, {Release: "a.v2", Account: "y"}, {Release: "a.v2", Account: "z"}}}
	if release, accounts := Of(r); release != "a.v2" || len(accounts) != 2 || accounts["y"].Account != "y" {
		t.Errorf("got %s, %v", release, accounts)
	}
	if release, accounts := Of(&report.Report{}); release != "" || len(accounts) != 0 {
		t.Errorf("got %s, %v", release, accounts)
	}
}
