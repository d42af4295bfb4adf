package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/diff"
)

// compared returns the text of what changes between two releases, each with some of teaRelease replaced.
func compared(t *testing.T, old, next string) (diff.Release, string) {
	t.Helper()
	p := releases(t, old, next).Find("tea")
	r, err := CompareBundles(p.Bundles[0], p.Bundles[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return r, b.String()
}

// Each line is told of the change, and the other of the change back.
func TestCompareBundles(t *testing.T) {
	for name, test := range map[string]struct{ old, new, there, back string }{
		"Kubernetes":          {"minKubeVersion: 1.30.0", "minKubeVersion: 1.31.0", "! ~ oldest Kubernetes: 1.30.0 → 1.31.0", "  ~ oldest Kubernetes: 1.31.0 → 1.30.0"},
		"install mode":        {"{type: OwnNamespace, supported: true}", "{type: OwnNamespace, supported: false}", "! - install mode OwnNamespace", "  + install mode OwnNamespace"},
		"permission":          {"verbs: [get, list, watch, update]", "verbs: [get, list, watch]", "  - update pots.example.com (cluster-wide)", "  + update pots.example.com (cluster-wide)"},
		"permission on names": {"resources: [leases], verbs: [get]", "resources: [leases], resourceNames: [tea], verbs: [get]", "  ~ get leases.coordination.k8s.io (cluster-wide): all → only tea", "  + get leases.coordination.k8s.io (cluster-wide)"},
		"permission on a URL": {"- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]}", "- {nonResourceURLs: [/metrics], verbs: [get]}", "  + get /metrics (cluster-wide)", "  - get /metrics (cluster-wide)"},
		"CRD":                 {crdText, "", "! - CRD of Pot", "  + v1alpha1, v1beta1, v1: CRD of Pot"},
		"scope":               {"scope: Namespaced", "scope: Cluster", "! ~ scope: Namespaced → Cluster", "! ~ scope: Cluster → Namespaced"},
		"version":             {"  - name: v1alpha1\n    served: true", "  - name: v1alpha1\n    served: false", "! ~ version v1alpha1: served → not served", "  ~ version v1alpha1: not served → served"},
		"deprecation":         {"  - name: v1alpha1\n    served: true", "  - name: v1alpha1\n    deprecated: true\n    served: true", "  ~ version v1alpha1: served → deprecated", "  ~ version v1alpha1: deprecated → served"},
		"field":               {"tags: {type: array, items: {type: string}}", "sizes: {type: integer, description: The sizes. All of them.}", "  + v1: field spec.sizes (integer): The sizes.", "! - v1: field spec.sizes"},
		"status":              {"ready: {type: boolean}", "ready: {type: boolean, enum: [true]}", "  ~ v1: what the status can hold", "  ~ v1: what the status can hold"},
		"bound":               {"maximum: 10", "maximum: 2000000", "  ~ v1: spec.size need no longer be at most 10", "! ~ v1: spec.size must be at most 10"},
		"enum":                {"enum: [fast, slow]", "enum: [slow]", `! ~ v1: spec.mode must not be "fast"`, `  ~ v1: spec.mode may be "fast"`},
		"required":            {"          status:\n", "            required: [tags]\n          status:\n", "! ~ v1: spec requires the field tags", "  ~ v1: spec no longer requires the field tags"},
		"rule":                {"type: string, enum: [fast, slow]", "type: string, enum: [fast, slow], x-kubernetes-validations: [{rule: self != 'x'}]", `! ~ v1: spec.mode must satisfy "self != 'x'"`, `  ~ v1: spec.mode need no longer satisfy "self != 'x'"`},
		"type":                {"type: string, enum: [fast, slow]", "type: integer", "! ~ v1: spec.mode must be of type integer instead of string", "! ~ v1: spec.mode must be of type string instead of integer"},
		"default":             {"default: 3", "default: 4", "  ~ v1: default of spec.size: 3 → 4", "  ~ v1: default of spec.size: 4 → 3"},
		"no default":          {", default: 3", "", "  ~ v1: default of spec.size: 3 → none", "  ~ v1: default of spec.size: none → 3"},
		"merging":             {"items: {type: string}", "items: {type: string}, x-kubernetes-list-type: set", "  ~ v1: merging of spec.tags (list type set, was atomic)", "(list type atomic, was set)"},
		"short name":          {"shortNames: [p]", "shortNames: [q]", "! - short name p", "  + short name p"},
		"column":              {"{name: Size, ", "{name: Volume, ", "  - v1: printer column Size", "  + v1: printer column Size"},
		"status subresource":  {"subresources: {status: {}, scale", "subresources: {scale", "! - v1: subresource status", "  + v1: subresource status"},
		"webhook":             {"generateName: check.example.com", "generateName: other.example.com", "    other.example.com\n  + ValidatingAdmissionWebhook (failurePolicy: Ignore; matchPolicy: Exact", "    other.example.com\n  - ValidatingAdmissionWebhook"},
		"webhook's policy":    {"failurePolicy: Ignore", "failurePolicy: Fail", "! ~ failurePolicy: Ignore → Fail", "  ~ failurePolicy: Fail → Ignore"},
		"image":               {"image: i}", "image: example.com/j:1}", "  ~ image m: i → example.com/j:1", "  ~ image m: example.com/j:1 → i"},
		"Deployment":          {"- name: tea\n", "- name: kettle\n", "  - Deployment tea", "  + Deployment tea"},
		"selector":            {"matchLabels: {app: tea}", "matchLabels: {app: tea, x: z}", "! ~ selector of Deployment tea, which the API server lets nobody change: app=tea → app=tea,x=z", "! ~ selector of Deployment tea, which the API server lets nobody change: app=tea,x=z → app=tea"},
		"object":              {crdText, crdText + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: leaves}\n", "  + ConfigMap leaves", "  - ConfigMap leaves"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(teaRelease, test.old, test.new, 1)
			if changed == teaRelease {
				t.Fatalf("there is no %q", test.old)
			}
			if _, text := compared(t, teaRelease, changed); !strings.Contains(text, test.there) {
				t.Errorf("got\n%s\nwant a line %q", text, test.there)
			}
			if _, text := compared(t, changed, teaRelease); !strings.Contains(text, test.back) {
				t.Errorf("the change back is told as\n%s\nwant a line %q", text, test.back)
			}
		})
	}
	if r, text := compared(t, teaRelease, teaRelease); len(r.Changes) > 0 || text != "" {
		t.Errorf("equal releases differ: %s", text)
	}
}

// What a check finds of an upgrade, the comparison tells; what its severity is not that of a note, it tells as breaking,
// permissions aside: who lost one that is not used lost nothing.
func TestCompareTellsWhatChecksFind(t *testing.T) {
	other := []string{"CRD004", "CRD005", "CRD013", "EDG001", "EDG009"} // of several versions, of what no user sees
	for _, e := range edgeExamples {
		if family := Family(e.code); family != "CRD" && family != "EDG" || slices.Contains(other, e.code) {
			continue
		}
		r, text := compared(t, teaRelease, strings.Replace(teaRelease, e.old, e.new, 1))
		if len(r.Changes) == 0 {
			t.Errorf("%s: %s: no change is told", e.code, e.new)
		}
		at := slices.IndexFunc(All(), func(c Check) bool { return c.Code == e.code })
		if All()[at].Severity != "info" && e.code != "EDG004" && e.code != "CRD018" && !strings.Contains(text, "! ") {
			t.Errorf("%s: %s: none of the changes breaks anything:\n%s", e.code, e.new, text)
		}
	}
}

// Users of a channel get what differs between its heads; a channel that is new begins where its users can come from.
func TestCompareCatalogs(t *testing.T) {
	stricter := strings.Replace(teaRelease, "maximum: 10", "maximum: 9", 1)
	before, after := releases(t, teaRelease), releases(t, teaRelease, teaRelease, stricter)
	all := CompareCatalogs(before, after)
	if len(all.Releases) != 1 || all.Releases[0].From != "tea.v1.0.0" || all.Releases[0].To != "tea.v3.0.0" || all.Releases[0].Channel != "stable" || len(all.Releases[0].Changes) != 1 {
		t.Errorf("got %+v", all.Releases)
	}
	p := after.Find("tea")
	p.Channels[0].Name = "fast"
	if all = CompareCatalogs(before, after); len(all.Releases) != 1 || all.Releases[0].From != "tea.v1.0.0" || all.Releases[0].Channel != "fast" {
		t.Errorf("a new channel: got %+v", all.Releases)
	}
	all = CompareCatalogs(before, releases(t, stricter))
	if len(all.Releases) != 1 || all.Releases[0].To != "tea.v1.0.0" || all.Releases[0].Channel != "" {
		t.Errorf("the same name: got %+v", all.Releases)
	}
	p.Bundles[2].Properties = p.Bundles[2].Properties[:1]
	if all = CompareCatalogs(before, after); len(all.Releases) != 0 || len(all.Unread) != 1 || !strings.Contains(all.Unread[0], "tea.v3.0.0 (") {
		t.Errorf("without manifests: got %+v, %q", all.Releases, all.Unread)
	}
}

// TestCompareDeprecated: a bundle's deprecation stands in the catalog.
func TestCompareDeprecated(t *testing.T) {
	text := releasesText(t, teaRelease, teaRelease)
	const deprecation = "---\nschema: olm.deprecations\npackage: tea\nentries: [{reference: {schema: olm.bundle, name: tea.v2.0.0}, message: \"use coffee\\n\"}]\n"
	for added, want := range map[string]string{"": "", deprecation: "  + deprecation (use coffee)\n"} {
		c := catalog.Parse("f", []byte(text+added))
		bundles := c.Find("tea").Bundles
		r, err := CompareBundles(bundles[0], bundles[1], c)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(b.String(), want) || want == "" && b.String() != "" {
			t.Errorf("got %q, and it should end with %q", b.String(), want)
		}
	}
}
