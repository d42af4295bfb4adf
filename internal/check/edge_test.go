package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
)

// teaRelease are the manifests of a release of package tea; VERSION stands for its version.
const teaRelease = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: tea.vVERSION
  annotations:
    alm-examples: '[{"apiVersion": "example.com/v1", "kind": "Pot", "metadata": {"name": "sample"}, "spec": {"size": 1, "mode": "slow"}}]'
spec:
  version: VERSION
  minKubeVersion: 1.30.0
  installModes:
  - {type: AllNamespaces, supported: true}
  - {type: OwnNamespace, supported: true}
  customresourcedefinitions:
    owned:
    - {name: pots.example.com, kind: Pot, version: v1}
  webhookdefinitions:
  - {type: ValidatingAdmissionWebhook, generateName: check.example.com, failurePolicy: Ignore, matchPolicy: Exact}
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: tea
        rules:
        - {apiGroups: [example.com], resources: [pots], verbs: [get, list, watch, update]}
        - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]}
      deployments:
      - name: tea
        spec:
          selector: {matchLabels: {app: tea}}
          template: {metadata: {labels: {app: tea}}, spec: {containers: [{name: m, image: i}]}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pots.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Pot, listKind: PotList, plural: pots, singular: pot, shortNames: [p]}
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 5}}}}}}
  - name: v1beta1
    deprecated: true
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object}}
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, maximum: 10, default: 3}
              mode: {type: string, enum: [fast, slow]}
              tags: {type: array, items: {type: string}}
              labels: {type: object, additionalProperties: {type: string}}
          status:
            type: object
            properties: {ready: {type: boolean}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: tea}
value: 5
`

// releases makes a catalog of releases, of version 1.0.0, 2.0.0 and so on, each replacing the one before.
func releases(t *testing.T, texts ...string) *catalog.Catalog {
	t.Helper()
	return catalog.Parse("f", []byte(releasesText(t, texts...)))
}

func releasesText(t *testing.T, texts ...string) string {
	t.Helper()
	var out strings.Builder
	out.WriteString("{schema: olm.package, name: tea, defaultChannel: stable}\n")
	entries := ""
	for i, text := range texts {
		version := fmt.Sprintf("%d.0.0", i+1)
		entries += fmt.Sprintf("{name: tea.v%s", version)
		if i > 0 {
			entries += fmt.Sprintf(", replaces: tea.v%d.0.0", i)
		}
		entries += "}, "
		fmt.Fprintf(&out, "---\nschema: olm.bundle\npackage: tea\nname: tea.v%s\nimage: ''\nproperties:\n- {type: olm.package, value: {packageName: tea, version: %s}}\n", version, version)
		documents, err := document.Parse("manifests", []byte(strings.ReplaceAll(text, "VERSION", version)))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range documents {
			value, err := json.Marshal(map[string][]byte{"data": d.JSON})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "- {type: olm.bundle.object, value: %s}\n", value)
		}
	}
	fmt.Fprintf(&out, "---\nschema: olm.channel\npackage: tea\nname: stable\nentries: [%s]\n", entries)
	return out.String()
}

// crdText is the CRD among the manifests.
var crdText = "---" + strings.SplitN(teaRelease, "---", 3)[1]

// The changes from one release to the next that the checks must find.
var edgeExamples = []example{
	{"EDG001", "matchLabels: {app: tea}", "matchLabels: {app: tea, x: z}", "f:19:37", "tea.v2.0.0 changes the selector of Deployment tea from app=tea in tea.v1.0.0 to app=tea,x=z"},
	{"EDG002", "- name: tea\n", "- name: kettle\n", "", "tea.v2.0.0 drops Deployment tea, which tea.v1.0.0 has"},
	{"EDG003", "{type: OwnNamespace, supported: true}", "{type: OwnNamespace, supported: false}", "", "OwnNamespace"},
	{"EDG004", "verbs: [get, list, watch, update]", "verbs: [get, list, watch]", "", "update pots.example.com (cluster-wide)"},
	{"EDG005", "resources: [pots]", "resources: [pots, cups]", "", "get,list,update,watch cups.example.com"},
	{"EDG006", "generateName: check.example.com", "generateName: other.example.com", "", "ValidatingAdmissionWebhook check.example.com"},
	{"EDG007", "minKubeVersion: 1.30.0", "minKubeVersion: 1.31.0", "", "needs Kubernetes 1.31.0; tea.v1.0.0 needs 1.30.0"},

	{"CRD001", "  - name: v1\n", "  - name: v2\n", "", "tea.v2.0.0 removes version v1 of CRD pots.example.com, the storage version of tea.v1.0.0"},
	{"CRD003", "  - name: v1alpha1\n    served: true", "  - name: v1alpha1\n    served: false", "", "tea.v2.0.0 stops serving version v1alpha1 of CRD pots.example.com, which tea.v1.0.0 serves"},
	{"CRD004", "storage: false", "storage: STORAGE", "", "v1alpha1 lacks: spec.labels, spec.mode, spec.tags"},
	{"CRD005", "scope: Namespaced", "scope: Cluster", "", "spec.scope: Invalid value"},
	{"CRD005", "type: array, items: {type: string}", "type: array", "", "openAPIV3Schema.properties[spec].properties[tags].items: Required value"},
	{"CRD005", "{type: string, enum: [fast, slow]}", "{$ref: '#/spec'}", "", "properties[mode].$ref: Forbidden"},
	{"CRD006", "maximum: 10", "maximum: 9", "", "spec.size must be at most 9"},
	{"CRD006", "enum: [fast, slow]", "enum: [slow]", "", `spec.mode must not be "fast"`},
	{"CRD006", "{type: string, enum: [fast, slow]}", "{type: integer}", "", "spec.mode must be of type integer instead of string"},
	{"CRD006", "          status:\n", "            required: [tags]\n          status:\n", "", "spec requires the field tags"},
	{"CRD006", "items: {type: string}", "items: {type: string, pattern: a}, maxItems: 3, minItems: 1, uniqueItems: false", "", `spec.tags has maxItems 3, spec.tags has minItems 1, spec.tags[] must match "a"`},
	{"CRD006", "additionalProperties: {type: string}", "additionalProperties: {type: string, maxLength: 3}", "", "spec.labels.* has maxLength 3"},
	{"CRD019", "{type: string, enum: [fast, slow]}", "{type: string, enum: [fast, slow], x-kubernetes-validations: [{rule: self != 'x'}]}", "", `spec.mode must satisfy "self != 'x'"`},
	{"CRD007", "              tags: {type: array, items: {type: string}}\n", "", "", "removes fields from version v1 of CRD pots.example.com: spec.tags"},
	{"CRD007", "type: object, additionalProperties: {type: string}", "type: object, properties: {a: {type: string}}", "", "spec.labels (fields of any name)"},
	{"CRD008", "enum: [fast, slow]", "enum: [fast]", "", `the sample Pot sample of tea.v1.0.0 is invalid under the schema of tea.v2.0.0: spec.mode: Unsupported value: "slow"`},
	{"CRD009", crdText, "", "", "tea.v2.0.0 drops CRD pots.example.com"},
	{"CRD010", "default: 3", "default: 4", "", "spec.size from 3 to 4"},
	{"CRD011", "subresources: {status: {}, scale", "subresources: {scale", "", "removes the status subresource of version v1 of CRD pots.example.com"},
	{"CRD012", "  - name: v1beta1\n    deprecated: true\n    served: true", "  - name: v1beta1\n    deprecated: true\n    served: false", "", "tea.v2.0.0 stops serving version v1beta1 of CRD pots.example.com, which tea.v1.0.0 serves"},
	{"CRD013", "storage: false", "storage: STORAGE", "", "the storage version of CRD pots.example.com changes from v1 to v1alpha1 without conversion, and v1alpha1 is stricter: spec.size must be at most 5"},
	{"CRD014", "shortNames: [p]", "shortNames: [q]", "", "tea.v2.0.0 removes names of CRD pots.example.com: short name p"},
	{"CRD015", ", scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}", "", "", "tea.v2.0.0 removes the scale subresource of version v1 of CRD pots.example.com"},
	{"CRD015", "specReplicasPath: .spec.size", "specReplicasPath: .spec.pots", "", "tea.v2.0.0 changes the paths of the scale subresource of version v1 of CRD pots.example.com"},
	{"CRD016", "type: array, items: {type: string}", "type: array, items: {type: string}, x-kubernetes-list-type: set", "", "spec.tags (list type set, was atomic)"},
	{"CRD017", "    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]\n", "", "", "tea.v2.0.0 removes printer columns from version v1 of CRD pots.example.com: Size"},
	{"CRD018", "  - name: v1\n    served: true", "  - name: v2alpha1\n    served: true\n    storage: false\n    schema: {openAPIV3Schema: {type: object, required: [spec]}}\n  - name: v1\n    served: true", "", "tea.v2.0.0 starts to serve version v2alpha1 of CRD pots.example.com without conversion, and objects written in version v1 can be invalid in it: the object requires the field spec"},
	{"CRD022", "  - name: v1\n    served: true", "  - name: v1\n    served: false", "", "tea.v1.0.0 owns version v1 of CRD pots.example.com, which tea.v2.0.0 does not serve"},
	{"EDG008", "resources: [leases]", "resources: [secrets]", "", "tea.v2.0.0 drops permissions that tea.v1.0.0 had: get leases.coordination.k8s.io (cluster-wide)"},
	{"EDG009", "generateName: check.example.com", "generateName: check.example.com, rules: [{apiGroups: [example.com], apiVersions: [v1], resources: [pots], operations: [UPDATE]}]", "", "tea.v2.0.0 adds validating webhook check.example.com for updates of CRD pots.example.com, for which tea.v1.0.0 has none"},
	{"EDG010", "value: 5", "value: 6", "", "tea.v2.0.0 changes value of PriorityClass tea, which is immutable"},
	{"EDG011", "failurePolicy: Ignore", "failurePolicy: Fail", "", "tea.v2.0.0 changes the failurePolicy of ValidatingAdmissionWebhook check.example.com from Ignore to Fail"},
	{"EDG012", "matchPolicy: Exact", "matchPolicy: Equivalent", "", "tea.v2.0.0 makes ValidatingAdmissionWebhook check.example.com stricter: matchPolicy Equivalent instead of Exact"},
	{"CRD020", "{type: string, enum: [fast, slow]}", "{type: string, enum: [fast, slow], x-kubernetes-validations: [{rule: self == 'fast', message: slow is gone}]}", "", `the sample Pot sample of tea.v1.0.0 violates CEL rules of tea.v2.0.0: spec.mode: Invalid value: "slow": slow is gone`},
	{"CAT025", "name: tea.vVERSION", "name: tee.vVERSION", "f:19:37", "the ClusterServiceVersion of bundle tea.v2.0.0 has the name tee.v2.0.0"},
	{"CAT026", "  version: VERSION", "  version: 9.0.0", "", "bundle tea.v2.0.0 has version 2.0.0, but its ClusterServiceVersion has 9.0.0"},
	{"GRA022", "  version: VERSION\n", "  version: VERSION\n  replaces: tea.v0.9.0\n", "f:19:37", "tea.v2.0.0 replaces tea.v0.9.0 in its ClusterServiceVersion, but in no channel"},
	{"GRA022", "  version: VERSION\n", "  version: VERSION\n  skips: [tea.v0.9.0]\n", "", "tea.v2.0.0 skips tea.v0.9.0"},
	{"GRA022", "  name: tea.vVERSION\n  annotations:\n", "  name: tea.vVERSION\n  annotations:\n    olm.skipRange: <2.0.0\n", "", `tea.v2.0.0 has the skipRange "<2.0.0"`},
}

func TestEdgeExamples(t *testing.T) {
	for _, found := range errorsIn(releases(t, teaRelease, teaRelease)) {
		if family := Family(found); family == "CRD" || family == "EDG" {
			t.Errorf("the sane releases are found fault with: %s", found)
		}
	}
	holdExamples(t, releases(t, teaRelease, teaRelease), edgeExamples, func(e example) *catalog.Catalog {
		changed := strings.Replace(teaRelease, e.old, e.new, 1)
		if e.code == "CRD004" || e.code == "CRD013" {
			changed = strings.Replace(strings.Replace(changed, "storage: true", "storage: false", 1), "STORAGE", "true", 1)
		}
		if changed == teaRelease {
			t.Fatalf("%s: the example changes nothing", e.code)
		}
		return releases(t, teaRelease, changed)
	}, edgeChecks, admissionChecks, immutableChecks, versionChecks, sampleChecks, slices.DeleteFunc(slices.Clone(crdChecks), func(c Check) bool { return c.Code == "CRD002" })) // TestStoredEarlier's
}

// TestNotStricter: schemas that are written otherwise and accept what they accepted, beside those that do not.
func TestNotStricter(t *testing.T) {
	const mode, labels = "mode: {type: string, enum: [fast, slow]}", "labels: {type: object, additionalProperties: {type: string}}"
	root := "        type: object\n        properties:\n          spec:\n"
	for name, e := range map[string]struct{ field, before, after, want, back string }{
		"a pattern that accepts more": {mode, `mode: {type: string, pattern: "^([0-9]+(ms|s|m))+$"}`, `mode: {type: string, pattern: "^([0-9]+(ms|s|m|h))+$"}`, "", "CRD006"},
		"a length in the pattern":     {mode, `mode: {type: string, maxLength: 100, pattern: "^[a-z]+$"}`, `mode: {type: string, pattern: "^[a-z]{1,100}$"}`, "", "CRD006"},
		"a format without check":      {mode, "mode: {type: string}", "mode: {type: string, format: int64}", "", ""},
		"a format with a check":       {mode, "mode: {type: string}", "mode: {type: string, format: date-time}", "CRD006", ""},
		"what every object has":       {root, root[:len(root)-len("          spec:\n")] + "          apiVersion: {type: string}\n          kind: {type: string}\n          metadata: {type: object}\n          spec:\n", root, "", ""},
		"a mapping without values":    {labels, labels, "labels: {type: object}", "CRD007", ""},
		"a mapping of all values":     {labels, labels, "labels: {type: object, x-kubernetes-preserve-unknown-fields: true}", "", "CRD006"},
	} {
		t.Run(name, func(t *testing.T) {
			release := func(field string) string {
				text := strings.Replace(teaRelease, e.field, field, 1)
				if field != e.field && text == teaRelease {
					t.Fatalf("there is no %q", e.field)
				}
				return text
			}
			codes := func(before, after string) string {
				var list []string
				findings, _ := Catalog(releases(t, release(before), release(after)), Options{Only: []string{"CRD005", "CRD006", "CRD007"}})
				for _, f := range findings {
					list = append(list, f.Code)
				}
				return strings.Join(list, " ")
			}
			if got := codes(e.before, e.after); got != e.want {
				t.Errorf("there: %q, and it should be %q", got, e.want)
			}
			if got := codes(e.after, e.before); got != e.back {
				t.Errorf("back: %q, and it should be %q", got, e.back)
			}
		})
	}
}

// A sample that does not fit in several fields is one finding.
func TestSampleRefusedOnce(t *testing.T) {
	after := strings.NewReplacer("enum: [fast, slow]", "enum: [fast]", "maximum: 10", "maximum: 0").Replace(teaRelease)
	findings, _ := Catalog(releases(t, teaRelease, after), Options{Only: []string{"CRD008"}})
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "spec.mode: Unsupported value") || !strings.Contains(findings[0].Message, "spec.size: Invalid value") {
		t.Errorf("%v", findings)
	}
}

// What an upgrade adds to the subresources takes nothing from anybody; what it removes does.
func TestSubresourcesAdded(t *testing.T) {
	const subresources = "    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}\n"
	for name, e := range map[string]struct{ before, after string }{
		"all":        {"", subresources},
		"the status": {strings.Replace(subresources, "status: {}, ", "", 1), subresources},
		"a selector": {subresources, strings.Replace(subresources, ".status.size}", ".status.size, labelSelectorPath: .status.tea}", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := strings.Replace(teaRelease, subresources, e.before, 1), strings.Replace(teaRelease, subresources, e.after, 1)
			if findings, _ := Catalog(releases(t, before, after), Options{Only: []string{"CRD011", "CRD015"}}); len(findings) > 0 {
				t.Errorf("added: %v", findings)
			}
			if findings, _ := Catalog(releases(t, after, before), Options{Only: []string{"CRD011", "CRD015"}}); len(findings) == 0 {
				t.Error("nothing is found where it is removed")
			}
		})
	}
}

// A conversion webhook that is dropped is no matter of what is stored from then on.
func TestConversionWebhookGone(t *testing.T) {
	before := strings.Replace(teaRelease, "{type: ValidatingAdmissionWebhook, ", "{type: ConversionWebhook, conversionCRDs: [pots.example.com], ", 1)
	after := strings.Replace(teaRelease, "  webhookdefinitions:\n  - {type: ValidatingAdmissionWebhook, generateName: check.example.com}\n", "", 1)
	findings, _ := Catalog(releases(t, before, after), Options{Only: []string{"EDG006"}})
	if len(findings) != 1 || !strings.Contains(findings[0].Cause, "changes only the apiVersion") || !strings.Contains(findings[0].Fix, "keep the webhook for pots.example.com") {
		t.Errorf("%+v", findings)
	}
}

// TestStoredEarlier: a version that one release stored is removed two releases later.
func TestStoredEarlier(t *testing.T) {
	first := strings.Replace(strings.Replace(teaRelease, "storage: true", "storage: false", 1), "storage: false", "storage: true", 1)
	begin, end := strings.Index(teaRelease, "  - name: v1alpha1"), strings.Index(teaRelease, "  - name: v1beta1\n")
	gone := teaRelease[:begin] + teaRelease[end:]
	findings, _ := Catalog(releases(t, first, teaRelease, gone), Options{Only: []string{"CRD"}})
	for _, f := range findings {
		if f.Code == "CRD002" && f.Subject.From == "tea.v2.0.0" && strings.Contains(f.Message, "tea.v3.0.0 removes version v1alpha1 of CRD pots.example.com, in which tea.v1.0.0 stored objects") {
			return
		}
	}
	t.Errorf("not found: %v", findings)
}

// TestVersionsAtOnce: what an upgrade changes alike in several versions of a CRD is one finding, and what it changes otherwise is
// another.
func TestVersionsAtOnce(t *testing.T) {
	t.Parallel()
	equal := strings.Replace(teaRelease, "maximum: 5", "maximum: 10", 1)
	for _, test := range []struct {
		name, from, to string
		want           []string
	}{
		{"alike", equal, strings.ReplaceAll(equal, "maximum: 10", "maximum: 9"), []string{"for versions v1alpha1, v1 of CRD pots.example.com: spec.size must be at most 9"}},
		{"otherwise", teaRelease, strings.NewReplacer("maximum: 5", "maximum: 4", "maximum: 10", "maximum: 9").Replace(teaRelease), []string{
			"for version v1 of CRD pots.example.com: spec.size must be at most 9", "for version v1alpha1 of CRD pots.example.com: spec.size must be at most 4",
		}},
	} {
		findings, _ := Catalog(releases(t, test.from, test.to), Options{Only: []string{"CRD006"}})
		var got []string
		for _, f := range findings {
			_, said, _ := strings.Cut(f.Message, "tea.v1.0.0 ")
			got = append(got, said)
		}
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, not %q", test.name, got, test.want)
		}
	}
}
