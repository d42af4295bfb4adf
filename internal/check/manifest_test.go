package check

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// bundles writes the releases as bundle directories with a template for them, and returns the folder.
func bundles(t *testing.T, texts ...string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	template := "schema: olmkit.template\npackage: tea\nbundles: ['*']\nchannels:\n  stable:\n"
	for i, text := range texts {
		version := string(rune('1'+i)) + ".0.0"
		csv, crd, _ := strings.Cut(strings.ReplaceAll(text, "VERSION", version), "---\n")
		write(version+"/manifests/csv.yaml", csv)
		write(version+"/manifests/crd.yaml", crd)
		write(version+"/metadata/annotations.yaml", "annotations: {operators.operatorframework.io.bundle.package.v1: tea}\n")
		template += "  - " + version + "\n"
	}
	write("template.yaml", template)
	return dir
}

// A finding in a manifest stands in the file of the bundle's directory, where that is at hand and holds the same; else it
// brings the lines of the field along.
func TestManifestPlaces(t *testing.T) {
	t.Parallel()
	dir := bundles(t, withMaximum(10), withMaximum(9), withMaximum(8))
	template, err := catalog.Build(t.Context(), filepath.Join(dir, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	place := func(c *catalog.Catalog, options Options) finding.Location {
		t.Helper()
		options.Only = []string{"CRD006"}
		findings, _ := Catalog(c, options)
		if len(findings) != 2 || findings[1].Location == nil {
			t.Fatalf("%d findings", len(findings))
		}
		for _, f := range findings {
			if f.Subject.To == "tea.v3.0.0" {
				return *f.Location
			}
		}
		t.Fatal("none is of tea.v3.0.0")
		return finding.Location{}
	}
	inFile := finding.Location{File: filepath.ToSlash(filepath.Join(dir, "3.0.0", "manifests", "crd.yaml")), Line: 30, Column: 15}
	if at := place(template, Options{}); at != inFile {
		t.Errorf("of bundle directories: %+v, not %+v", at, inFile)
	}
	text := releasesText(t, withMaximum(10), withMaximum(9), withMaximum(8))
	if at := place(catalog.Parse("f", []byte(text)), Options{Template: template}); at != inFile {
		t.Errorf("of a catalog with its template: %+v, not %+v", at, inFile)
	}
	encoded := finding.Location{
		File: "f", Line: 30, Column: 37, Object: "CustomResourceDefinition/pots.example.com",
		Path:    "spec.versions[2].schema.openAPIV3Schema.properties.spec.properties.size",
		Excerpt: "size:\n  type: integer\n  maximum: 8\n  default: 3",
	}
	if at := place(catalog.Parse("f", []byte(text)), Options{}); at != encoded {
		t.Errorf("of a catalog alone: %+v, not %+v", at, encoded)
	}
	other := releasesText(t, withMaximum(10), withMaximum(9), withMaximum(7))
	encoded.Excerpt = strings.Replace(encoded.Excerpt, "8", "7", 1)
	if at := place(catalog.Parse("f", []byte(other)), Options{Template: template}); at != encoded {
		t.Errorf("of a catalog with something else than its template: %+v, not %+v", at, encoded)
	}
	if err := os.RemoveAll(filepath.Join(dir, "3.0.0")); err != nil {
		t.Fatal(err)
	}
	if again, err := catalog.Build(t.Context(), filepath.Join(bundles(t, withMaximum(10), withMaximum(9), withMaximum(8)), "template.yaml")); err != nil {
		t.Fatal(err)
	} else if err := os.RemoveAll(filepath.Dir(filepath.Dir(again.Packages[0].Bundles[2].At.File))); err != nil {
		t.Fatal(err)
	} else if at := place(again, Options{}); at.Object == "" {
		t.Errorf("of a directory that is gone: %+v", at)
	}
}

// Each finding on an upgrade names a field of the manifest that it is about.
func TestEdgePaths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ code, old, new, path string }{
		{"EDG001", "selector: {matchLabels: {app: tea}}", "selector: {matchLabels: {app: tee}}", "spec.install.spec.deployments[0].spec.selector"},
		{"EDG002", "- name: tea\n        spec:", "- name: tee\n        spec:", "spec.install.spec.deployments"},
		{"EDG003", "{type: OwnNamespace, supported: true}", "{type: OwnNamespace, supported: false}", "spec.installModes"},
		{"EDG004", "verbs: [get, list, watch, update]", "verbs: [get, list, watch]", "spec.install.spec.clusterPermissions"},
		{"EDG006", "generateName: check.example.com", "generateName: other.example.com", "spec.webhookdefinitions"},
		{"EDG007", "minKubeVersion: 1.30.0", "minKubeVersion: 1.31.0", "spec.minKubeVersion"},
		{"CRD003", "name: v1alpha1\n    served: true", "name: v1alpha1\n    served: false", "spec.versions[0]"},
		{"CRD006", "maximum: 10", "maximum: 9", "spec.versions[2].schema.openAPIV3Schema.properties.spec.properties.size"},
		{"CRD006", "type: array, items: {type: string}", "type: array, items: {type: string, maxLength: 1}", "spec.versions[2].schema.openAPIV3Schema.properties.spec.properties.tags.items"},
		{"CRD006", "additionalProperties: {type: string}", "additionalProperties: {type: string, maxLength: 1}", "spec.versions[2].schema.openAPIV3Schema.properties.spec.properties.labels.additionalProperties"},
		{"CRD007", "              mode: {type: string, enum: [fast, slow]}\n", "", "spec.versions[2].schema.openAPIV3Schema.properties.spec.properties.mode"},
		{"CRD010", "default: 3", "default: 4", "spec.versions[2].schema.openAPIV3Schema.properties.spec.properties.size"},
		{"CRD011", "{status: {}, scale:", "{scale:", "spec.versions[2].subresources"},
		{"CRD014", "shortNames: [p]", "shortNames: []", "spec.names"},
		{"CRD015", ".spec.size, statusReplicasPath", ".spec.mode, statusReplicasPath", "spec.versions[2].subresources"},
		{"CRD017", "{name: Size,", "{name: Volume,", "spec.versions[2].additionalPrinterColumns"},
	} {
		findings, _ := Catalog(releases(t, teaRelease, strings.Replace(teaRelease, test.old, test.new, 1)), Options{Only: []string{test.code}})
		if len(findings) == 0 || findings[0].Location == nil || findings[0].Location.Path != test.path || findings[0].Location.Excerpt == "" {
			t.Errorf("%s by %q: %+v, not %s", test.code, test.new, findings, test.path)
		}
	}
}

func TestInSchema(t *testing.T) {
	t.Parallel()
	for field, want := range map[string][]any{
		"spec.size":          {"properties", "spec", "properties", "size"},
		"spec.pots[].size":   {"properties", "spec", "properties", "pots", "items", "properties", "size"},
		"spec.grid[][]":      {"properties", "spec", "properties", "grid", "items", "items"},
		"spec.labels.*":      {"properties", "spec", "properties", "labels", "additionalProperties"},
		"spec.labels.*[].at": {"properties", "spec", "properties", "labels", "additionalProperties", "items", "properties", "at"},
	} {
		if got := inSchema(field); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, not %v", field, got, want)
		}
	}
}
