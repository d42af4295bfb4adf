package check

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
)

// olmFindings returns the messages of the OLM family on a catalog, by code.
func olmFindings(t *testing.T, text string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	findings, _ := Catalog(catalog.Parse("f", []byte(text)), Options{Only: []string{"OLM"}})
	for _, f := range findings {
		found[f.Code] = append(found[f.Code], f.Message)
	}
	return found
}

func TestOLMv1(t *testing.T) {
	released := func(old, new string) string {
		after := strings.Replace(teaRelease, old, new, 1)
		if after == teaRelease && old != new {
			t.Fatalf("%q changes nothing", old)
		}
		return releasesText(t, teaRelease, after)
	}
	inCatalog := func(old, new string) string {
		text := releasesText(t, teaRelease, teaRelease)
		if !strings.Contains(text, old) {
			t.Fatalf("the catalog has no %q", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	converting := func(old, new string) string {
		before := strings.Replace(teaRelease, "  webhookdefinitions:\n", "  webhookdefinitions:\n  - {type: ConversionWebhook, generateName: convert.example.com, conversionCRDs: [pots.example.com]}\n", 1)
		return releasesText(t, before, strings.Replace(before, old, new, 1))
	}
	// In both releases v1 requires fields that v1alpha1 does not require.
	apart := func(old, new string) string {
		before := strings.Replace(teaRelease, "          spec:\n            type: object\n", "          spec:\n            type: object\n            required: [size, lid]\n", 1)
		after := strings.Replace(before, "              tags:", "              cups: {type: integer}\n              tags:", 1)
		return releasesText(t, before, strings.Replace(after, old, new, 1))
	}
	const (
		version  = "value: {packageName: tea, version: 2.0.0}}\n"
		required = "- {type: olm.package.required, value: {packageName: cup, versionRange: '>1'}}\n"
		older    = "value: {packageName: tea, version: 1.0.0}}\n"
		webhook  = "{type: ValidatingAdmissionWebhook, generateName: check.example.com,"
	)
	for name, c := range map[string]struct{ text, code, want string }{
		"sound":                               {inCatalog("name: stable", "name: stable"), "", ""},
		"a dependency of the head":            {inCatalog(version, version+required), "OLM001", "bundle tea.v2.0.0 has dependencies: olm.package.required"},
		"a dependency of an older release":    {inCatalog(older, older+required), "", ""},
		"a property that is no dependency":    {inCatalog(version, version+"- {type: olm.gvk, value: {group: a.b, version: v1, kind: C}}\n"), "", ""},
		"an owned APIService":                 {released("  customresourcedefinitions:", "  apiservicedefinitions: {owned: [{name: cups, group: a.b, version: v1, kind: Cup}]}\n  customresourcedefinitions:"), "OLM002", "owns the APIService cups"},
		"a required APIService, as such":      {released("  customresourcedefinitions:", "  apiservicedefinitions: {required: [{name: cups, group: a.b, version: v1, kind: Cup}]}\n  customresourcedefinitions:"), "", ""},
		"no AllNamespaces":                    {released("{type: AllNamespaces, supported: true}", "{type: AllNamespaces, supported: false}"), "OLM003", "does not support AllNamespaces"},
		"AllNamespaces alone":                 {released("  - {type: OwnNamespace, supported: true}\n", ""), "", ""},
		"a channel in capitals":               {strings.ReplaceAll(inCatalog("name: stable", "name: Stable"), "defaultChannel: stable", "defaultChannel: Stable"), "OLM004", "channel Stable: "},
		"a channel with a version":            {strings.ReplaceAll(inCatalog("name: stable", "name: stable-1.2"), "defaultChannel: stable", "defaultChannel: stable-1.2"), "", ""},
		"a lower maximum":                     {released("maximum: 10", "maximum: 9"), "OLM005", "version v1 of CRD pots.example.com of tea.v2.0.0 after that of tea.v1.0.0: spec.size: maximum decreased: 10 -> 9"},
		"a higher maximum":                    {released("maximum: 10", "maximum: 11"), "", ""},
		"a description":                       {released("{type: string, enum: [fast, slow]}", "{type: string, enum: [fast, slow], description: how}"), "", ""},
		"one more value":                      {released("enum: [fast, slow]", "enum: [fast, slow, never]"), "", ""},
		"one value less":                      {released("enum: [fast, slow]", "enum: [slow]"), "OLM005", "spec.mode: allowed enum values removed: \"fast\""},
		"another default, which v0 takes":     {released("default: 3", "default: 4"), "OLM005", `spec.size: default value changed: "3" -> "4"`},
		"a new field":                         {released("              tags:", "              cups: {type: integer}\n              tags:"), "", ""},
		"a new rule":                          {released("{type: string, enum: [fast, slow]}", "{type: string, enum: [fast, slow], x-kubernetes-validations: [{rule: self != 'x'}]}"), "OLM005", "spec.mode: changes of x-kubernetes-validations"},
		"a field less":                        {released("              mode: {type: string, enum: [fast, slow]}\n", ""), "OLM005", "spec.mode: removed field"},
		"a field that must be given":          {released("          spec:\n            type: object\n", "          spec:\n            type: object\n            required: [size]\n"), "OLM005", "spec: new required fields"},
		"another scope":                       {released("scope: Namespaced", "scope: Cluster"), "OLM005", "refuses CRD pots.example.com of tea.v2.0.0 after that of tea.v1.0.0: scope changed"},
		"a format, which crdify cannot judge": {released("{type: string, enum: [fast, slow]}", "{type: string, enum: [fast, slow], format: date}"), "OLM005", "spec.mode: changes of format"},
		"versions that drift apart":           {released("{size: {type: integer, maximum: 5}}", "{size: {type: integer, maximum: 11}}"), "OLM005", "version v1 beside v1alpha1 of CRD pots.example.com of tea.v2.0.0 after that of tea.v1.0.0: spec.size: maximum decreased: 11 -> 10"},
		"a field of one version alone":        {released("{size: {type: integer, maximum: 5}}", "{size: {type: integer, maximum: 5}, lid: {type: object, properties: {knob: {type: string}}}}"), "OLM005", "version v1 beside v1alpha1 of CRD pots.example.com of tea.v2.0.0 after that of tea.v1.0.0: spec.lid: removed field"},
		"versions that were apart before":     {apart("", ""), "", ""},
		"one more thing that is apart":        {apart("required: [size, lid]", "required: [size, lid, cup]"), "OLM005", "version v1 beside v1alpha1 of CRD pots.example.com"},
		"versions that a webhook converts":    {converting("{size: {type: integer, maximum: 5}}", "{size: {type: integer, maximum: 11}}"), "", ""},
		"a CRD less":                          {released(crdText, ""), "OLM008", "OLM v1 deletes CustomResourceDefinition/pots.example.com, with all of its objects, when it upgrades from tea.v1.0.0 to tea.v2.0.0"},
		"a webhook for ClusterExtensions":     {released(webhook, webhook+" rules: [{operations: [CREATE], apiGroups: [olm.operatorframework.io], apiVersions: [v1], resources: [clusterextensions]}],"), "OLM009", "webhook check.example.com has a rule for API group olm.operatorframework.io"},
		"a webhook for configurations":        {released(webhook, webhook+" rules: [{operations: [CREATE], apiGroups: [admissionregistration.k8s.io], apiVersions: [v1], resources: [MutatingWebhookConfigurations]}],"), "OLM009", "has a rule for MutatingWebhookConfigurations"},
		"a webhook that neither takes":        {released(webhook, webhook+" rules: [{operations: [CREATE], apiGroups: [admissionregistration.k8s.io], apiVersions: [v1], resources: [MutatingWebhookConfiguration]}],"), "", ""},
		"two conversions":                     {converting("  webhookdefinitions:\n", "  webhookdefinitions:\n  - {type: ConversionWebhook, generateName: again.example.com, conversionCRDs: [pots.example.com]}\n"), "OLM009", "conversion webhooks again.example.com and convert.example.com convert the same CRD pots.example.com"},
		"a conversion with a wrong name":      {converting("generateName: convert.example.com", "generateName: Convert"), "OLM009", "the name of conversion webhook Convert: "},
		"a webhook that OLM v1 has installed": {released(webhook, webhook+" sideEffects: None,"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := olmFindings(t, c.text)
			switch {
			case c.code == "" && len(found) > 0:
				t.Errorf("a false alarm: %v", found)
			case c.code != "" && (len(found) != 1 || !strings.Contains(strings.Join(found[c.code], "\n"), c.want)):
				t.Errorf("want %s %q: %v", c.code, c.want, found)
			}
		})
	}
}

// A bundle in no catalog is looked at as well.
func TestOLMv1Bundle(t *testing.T) {
	for name, c := range map[string]struct {
		change change
		want   string
	}{
		"dependencies.yaml": {add("metadata/dependencies.yaml", "dependencies: [{type: olm.package, value: {packageName: cup, version: '>1.0.0'}}]\n"), "OLM001"},
		"a required CRD":    {inCSV("    owned:\n", "    required: [{name: cups.example.com, kind: Cup, version: v1}]\n    owned:\n"), "OLM001"},
		"a description":     {inCSV("  maturity: alpha\n", "  maturity: beta\n"), ""},
	} {
		files := soundFiles(t)
		c.change.apply(t, files)
		got := ""
		for _, f := range judge(t, files) {
			if Family(f.Code) == FamilyOLM {
				got += f.Code
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
