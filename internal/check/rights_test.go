package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/finding"
)

// rightsRelease is a release of tea with modes, cluster permissions and permissions.
func rightsRelease(modes string, clusterWide, namespaced []string) string {
	before, rest, _ := strings.Cut(teaRelease, "      clusterPermissions:\n")
	_, after, _ := strings.Cut(rest, "      deployments:\n")
	permissions := func(field string, rules []string) string {
		text := fmt.Sprintf("      %s:\n      - serviceAccountName: tea\n        rules: [", field)
		return text + strings.Join(rules, ", ") + "]\n"
	}
	text := before + permissions("clusterPermissions", clusterWide) + permissions("permissions", namespaced) + "      deployments:\n" + after
	modesBefore, rest, _ := strings.Cut(text, "  - {type: AllNamespaces")
	_, modesAfter, _ := strings.Cut(rest, "  customresourcedefinitions:\n")
	for _, m := range strings.Fields(modes) {
		modesBefore += fmt.Sprintf("  - {type: %s, supported: true}\n", m)
	}
	return modesBefore + "  customresourcedefinitions:\n" + modesAfter
}

// pots is a rule for the kind that tea owns.
func pots(resources, verbs string) string {
	return fmt.Sprintf("{apiGroups: [example.com], resources: [%s], verbs: [%s]}", resources, verbs)
}

// TestRightsLost: what an upgrade takes of rights on the kind that it owns, as a warning and as a note.
func TestRightsLost(t *testing.T) {
	const everything = "{apiGroups: ['*'], resources: ['*'], verbs: ['*']}"
	const all = "create, delete, deletecollection, get, list, patch, update, watch"
	const global, both = "AllNamespaces", "AllNamespaces OwnNamespace"
	for _, e := range []struct {
		name                           string
		modes                          string
		cluster, namespace, nowC, nowN []string
		warning, note                  string
	}{
		{"a verb", both, []string{pots("pots", "get, update")}, nil, []string{pots("pots", "get")}, nil, "update pots.example.com (cluster-wide)", ""},
		{"a wildcard that is spelled out", both, []string{pots("pots", "'*'")}, nil, []string{pots("pots", all)}, nil, "", ""},
		{"a wildcard of everything that is spelled out", both, []string{pots("'*'", "'*'")}, nil,
			[]string{pots("pots, pots/status, pots/finalizers", all)}, nil, "", ""},
		{"a verb out of a wildcard", both, []string{everything}, nil, []string{pots("pots, pots/status, pots/finalizers", "get, list, watch, patch, update, create")}, nil,
			"delete,deletecollection pots.example.com (cluster-wide)", "*.* (cluster-wide)"},
		{"a list that becomes a wildcard", both, []string{pots("pots, pots/status", all)}, nil, []string{everything}, nil, "", ""},
		{"all subresources of a name", both, []string{pots("pots/status", "update")}, nil, []string{pots("'*/status'", "update")}, nil, "", ""},
		{"permissions of a global operator", global, []string{pots("pots", all)}, nil, nil, []string{pots("pots", all)}, "", ""},
		{"permissions of an operator that can be global", both, []string{pots("pots", "get")}, nil, nil, []string{pots("pots", "get")},
			"", "get pots.example.com (cluster-wide)"},
		{"permissions of one that cannot", "OwnNamespace", []string{pots("pots", "get")}, nil, nil, []string{pots("pots", "get")},
			"get pots.example.com (cluster-wide)", ""},
		{"a right in namespaces that is had everywhere", both, nil, []string{pots("pots", "get")}, []string{pots("pots", "get")}, nil, "", ""},
		{"deletecollection alone", both, []string{pots("pots", all)}, nil, []string{pots("pots", "create, delete, get, list, patch, update, watch")}, nil,
			"", "deletecollection pots.example.com (cluster-wide)"},
		{"the status", both, []string{pots("pots/status", "get, update")}, nil, []string{pots("pots", "get")}, nil,
			"update pots.example.com/status (cluster-wide)", "get pots.example.com/status (cluster-wide)"},
		{"finalizers", both, []string{pots("pots/finalizers", "get, update")}, nil, []string{pots("pots", "get")}, nil,
			"update pots.example.com/finalizers (cluster-wide)", "get pots.example.com/finalizers (cluster-wide)"},
		{"a subresource that nobody calls", both, []string{pots("pots/scale", "get, update")}, nil, []string{pots("pots", "get")}, nil,
			"", "get,update pots.example.com/scale (cluster-wide)"},
	} {
		t.Run(e.name, func(t *testing.T) {
			c := releases(t, rightsRelease(e.modes, e.cluster, e.namespace), rightsRelease(e.modes, e.nowC, e.nowN))
			findings, _ := Catalog(c, Options{Only: []string{"EDG004", "EDG008"}})
			for code, want := range map[string]string{"EDG004": e.warning, "EDG008": e.note} {
				if got := messageOf(findings, code); got == "" != (want == "") || !strings.HasSuffix(got, want) {
					t.Errorf("%s says %q, not %q", code, got, want)
				}
			}
		})
	}
}

// What OLM made cluster-wide before is not gained by asking for it so; where it did not, it is.
func TestRightsGained(t *testing.T) {
	rule := []string{pots("pots", "get")}
	for modes, want := range map[string]bool{"AllNamespaces": false, "AllNamespaces OwnNamespace": true} {
		findings, _ := Catalog(releases(t, rightsRelease(modes, nil, rule), rightsRelease(modes, rule, nil)), Options{Only: []string{"EDG005"}})
		if (len(findings) > 0) != want {
			t.Errorf("%s: %v", modes, findings)
		}
	}
}

// messageOf returns that of the finding with code, or "".
func messageOf(findings []finding.Finding, code string) string {
	for _, f := range findings {
		if f.Code == code {
			return f.Message
		}
	}
	return ""
}
