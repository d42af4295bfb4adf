package report

import (
	"bytes"
	"strings"
	"testing"
)

func TestAccessIsTold(t *testing.T) {
	r := &Report{Kind: KindUpgrade, Result: Passed, Cluster: &Cluster{}, Verbose: true, Access: []Access{{
		Package: "thing", Release: "thing.v1", Account: "manager",
		Used:   []Right{{Scope: ScopeCluster, Group: "apps", Resource: "deployments", Verbs: []string{"get", "list"}}},
		Unused: []Right{{Scope: ScopeCluster, Resource: "secrets", Verbs: []string{"get"}}, {Scope: ScopeNamespace, Group: "coordination.k8s.io", Resource: "leases", Names: []string{"a", "b"}, Verbs: []string{"update"}}},
		Kept:   []Right{{Scope: ScopeCluster, Group: "example.com", Resource: "things/finalizers", Verbs: []string{"update"}}},
		Denied: []Right{{Scope: ScopeCluster, Group: "apps", Resource: "deployments/status", Verbs: []string{"patch"}}},
	}}}
	for _, format := range []string{"text", "markdown", "html"} {
		var b bytes.Buffer
		if err := Write(&b, format, r, false); err != nil {
			t.Fatal(err)
		}
		said := strings.Join(strings.Fields(b.String()), " ")
		for _, part := range []string{
			"thing.v1: ServiceAccount manager used 2 of its 6 rights, and was denied 1 that it asked for", "denied (cluster): patch deployments.apps/status",
			"never used (cluster): get secrets", "never used (namespace): update leases.coordination.k8s.io (a, b)",
		} {
			if !strings.Contains(said, part) {
				t.Errorf("%s does not say %q:\n%s", format, part, said)
			}
		}
	}
	r.Verbose = false
	var b bytes.Buffer
	if err := Write(&b, "text", r, false); err != nil {
		t.Fatal(err)
	}
	if said := b.String(); strings.Contains(said, "get secrets") || !strings.Contains(said, "--rbac-from REPORT") {
		t.Errorf("got:\n%s", said)
	}
}
