package check

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/olmkit/olmkit/internal/finding"
)

// oldCRD says of the sound bundle's kind what a CRD of v1beta1 could: once for all versions, at the top.
const oldCRD = `apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: coffees.cafe.example.com}
spec:
  group: cafe.example.com
  names: {kind: Coffee, plural: coffees}
  version: v1
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v1beta1, served: true, storage: false}
  preserveUnknownFields: false
  conversion:
    strategy: Webhook
    conversionReviewVersions: [v1]
    webhookClientConfig: {service: {namespace: cafe-system, name: cafe, path: /convert}}
  subresources: {status: {}}
  additionalPrinterColumns: [{name: Cups, type: integer, JSONPath: .spec.cups}]
  validation:
    openAPIV3Schema:
      type: object
      properties:
        spec:
          type: object
          properties:
            answer: {type: string, enum: ["yes", "no"]}
            cups: {type: number}
`

// TestOldCRD: the checks read a CRD of v1beta1 like one of v1, and CSV026 alone says that the API is gone.
func TestOldCRD(t *testing.T) {
	for _, test := range []struct {
		name, old, new string
		want           []string // codes of warnings and errors
	}{
		{"sound", "", "", []string{"CSV026"}},
		{"no list of versions", "  version: v1\n  versions:\n  - {name: v1, served: true, storage: true}\n  - {name: v1beta1, served: true, storage: false}\n",
			"  version: v1\n", []string{"CSV009", "CSV015", "CSV026"}}, // v1beta1 is not there
		{"a sample that violates the schema", `["yes", "no"]`, `["no"]`, []string{"CSV015", "CSV026"}},
		{"a version that is not served", "{name: v1beta1, served: true", "{name: v1beta1, served: false", []string{"CSV009", "CSV015", "CSV026"}},
		{"unknown fields are kept", "  preserveUnknownFields: false\n", "", []string{"CSV026", "WHK005"}},
		{"a misspelt field", "subresources:", "subresource:", []string{"CSV026", "SCH005"}},
		{"a schema that v1 would not take", "cups: {type: number}", "cups: {}", []string{"CSV026"}},
		{"another name", "name: coffees.cafe", "name: teas.cafe", []string{"CSV009", "CSV010", "CSV026", "WHK006"}},
		{"no CRD at all", "spec:\n", "spec: 3\nother:\n", []string{"CSV009", "CSV026"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := soundFiles(t)
			files[soundCRD] = &fstest.MapFile{Data: []byte(strings.Replace(oldCRD, test.old, test.new, 1))}
			var codes []string
			findings := judge(t, files)
			for _, f := range findings {
				if f.Severity.AtLeast(finding.Warning) {
					codes = append(codes, f.Code)
				}
			}
			slices.Sort(codes)
			if codes = slices.Compact(codes); !slices.Equal(codes, test.want) {
				t.Errorf("%v, and it should be %v:\n%s", codes, test.want, render(findings))
			}
		})
	}
}

// oldPot is the CRD of teaRelease as one of v1beta1, which keeps unknown fields.
const oldPot = `---
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: pots.example.com}
spec:
  group: example.com
  names: {kind: Pot, plural: pots, shortNames: [p]}
  version: v1
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v1beta1, served: true, storage: false}
  - {name: v1alpha1, served: true, storage: false}
  subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
  additionalPrinterColumns: [{name: Size, type: integer, JSONPath: .spec.size}]
  validation:
    openAPIV3Schema:
      type: object
      properties:
        spec:
          type: object
          properties:
            size: {type: integer, maximum: 10}
            mode: {type: string, enum: [fast, slow]}
            tags: {type: array, items: {type: string}}
            labels: {type: object, additionalProperties: {type: string}}
            note: {}
        status:
          type: object
          properties: {ready: {type: boolean}}
`

// TestOldCRDUpgrades: the checks see what upgrades from and to CRDs of v1beta1 change.
func TestOldCRDUpgrades(t *testing.T) {
	csv := strings.SplitN(teaRelease, "---", 2)[0]
	old, current := csv+oldPot, strings.Replace(teaRelease, "{type: integer, maximum: 10, default: 3}", "{type: integer, maximum: 10}", 1)
	change := func(text, old, new string) string {
		changed := strings.Replace(text, old, new, 1)
		if changed == text {
			t.Fatalf("nothing is changed by %q", new)
		}
		return changed
	}
	for _, test := range []struct {
		name, before, after string
		want                []string
	}{
		{"the same again", old, old, nil},
		{"the API version alone, back", current, change(change(old, "  subresources: {status: {}, scale", "  subresources: {scale"), "maximum: 10", "maximum: 5"),
			[]string{"CRD006 version v1 of CRD pots.example.com: spec.size must be at most 5", "CRD011 removes the status subresource of version v1 of CRD pots.example.com"}},
		{"stored version removed", old, change(change(current, "  - name: v1\n", "  - name: v2\n"), "tags:", "note: {type: string}\n              tags:"),
			[]string{"CRD001 tea.v2.0.0 removes version v1 of CRD pots.example.com"}},
		{"tightened, with unknown fields", old, change(old, "maximum: 10", "maximum: 9"), []string{"CRD006 versions v1, v1beta1, v1alpha1 of CRD pots.example.com: spec.size must be at most 9"}},
		{"a field removed that is kept as unknown", old, change(old, "            note: {}\n", ""), nil},
		{"a field removed", old, current, []string{"CRD007 removes fields from version v1 of CRD pots.example.com: spec.note"}},
		{"another scope", old, change(old, "  group:", "  scope: Cluster\n  group:"), []string{"CRD005 spec.scope: Invalid value"}},
		{"no schema as v1 has them", old, change(old, "type: array, items: {type: string}", "type: array"), nil},
		{"a short name gone", old, change(old, ", shortNames: [p]", ""), []string{"CRD014 pots.example.com: short name p"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			findings, _ := Catalog(releases(t, test.before, test.after), Options{Only: []string{"CRD"}})
			for _, want := range test.want {
				code, message, _ := strings.Cut(want, " ")
				if !slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Code == code && strings.Contains(f.Message, message) }) {
					t.Errorf("no %s among:\n%s", want, render(findings))
				}
			}
			if len(test.want) == 0 && len(findings) > 0 {
				t.Errorf("nothing is wrong, and found is:\n%s", render(findings))
			}
		})
	}
}
