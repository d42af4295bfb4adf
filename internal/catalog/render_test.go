package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/bundle"
)

const csvText = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: example.v1.0.0
  annotations:
    olm.properties: '[{"type": "olm.maxOpenShiftVersion", "value": "4.20"}]'
spec:
  version: 1.0.0
  relatedImages:
  - {name: z, image: "registry.example.com/z@sha256:1"}
  customresourcedefinitions:
    required:
    - {name: others.example.com, version: v1, kind: Other}
  apiservicedefinitions:
    owned:
    - {group: api.example.com, version: v1, kind: Thing}
  install:
    strategy: deployment
    spec:
      deployments:
      - name: m
        spec:
          template:
            spec:
              containers: [{image: registry.example.com/m}]
              initContainers: [{image: registry.example.com/a}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: second}
data: {n: "1"}
`

func writeBundle(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const annotationsText = "annotations:\n  operators.operatorframework.io.bundle.package.v1: example\n"

func TestRender(t *testing.T) {
	dir := writeBundle(t, map[string]string{
		"manifests/csv.yaml":        csvText,
		"manifests/README.md":       "# nothing: [",
		"manifests/crd.json":        `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"examples.example.com"},"spec":{"group":"example.com","names":{"kind":"Example"},"versions":[{"name":"v1","x":9007199254740993},{"name":"v1alpha1"}]}}`,
		"metadata/annotations.yaml": annotationsText,
		"metadata/dependencies.yaml": `dependencies:
- type: olm.package
  value: {packageName: other, version: ">=1.0.0"}
- type: olm.gvk
  value: {group: g, version: v1, kind: K}
- type: olm.constraint
  value: {failureMessage: no, cel: {rule: "true"}}
`,
	})
	b, err := bundle.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Render(b, "")
	if err != nil {
		t.Fatal(err)
	}
	c := &Catalog{Documents: []*Document{d}}
	c.index()
	got := c.Packages[0].Bundles[0]
	var properties []string
	for _, p := range got.Properties {
		if p.Type != PropertyObject {
			properties = append(properties, p.Type+" "+string(p.Value))
		}
	}
	want := []string{
		`olm.constraint {"failureMessage":false,"cel":{"rule":"true"}}`,
		`olm.gvk {"group":"api.example.com","kind":"Thing","version":"v1"}`,
		`olm.gvk {"group":"example.com","kind":"Example","version":"v1"}`,
		`olm.gvk {"group":"example.com","kind":"Example","version":"v1alpha1"}`,
		`olm.gvk.required {"group":"example.com","kind":"Other","version":"v1"}`,
		`olm.gvk.required {"group":"g","kind":"K","version":"v1"}`,
		`olm.maxOpenShiftVersion "4.20"`,
		`olm.package {"packageName":"example","version":"1.0.0"}`,
		`olm.package.required {"packageName":"other","versionRange":">=1.0.0"}`,
	}
	if diff := cmp.Diff(want, properties); diff != "" {
		t.Error(diff)
	}
	images := []RelatedImage{{Image: "registry.example.com/a"}, {Image: "registry.example.com/m"}, {Name: "z", Image: "registry.example.com/z@sha256:1"}}
	if diff := cmp.Diff(images, got.RelatedImages); diff != "" {
		t.Error(diff)
	}
	objects, err := got.Objects()
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 3 || !strings.Contains(string(objects[0]), "9007199254740993") || !strings.Contains(string(objects[2]), "second") {
		t.Errorf("objects: %s", objects)
	}
	csv, err := got.CSV()
	if err != nil || csv.Name != "example.v1.0.0" {
		t.Errorf("CSV: %v, %v", csv, err)
	}
	crds, err := got.CRDs()
	if err != nil || len(crds) != 1 || crds[0].Name != "examples.example.com" {
		t.Errorf("CRDs: %v, %v", crds, err)
	}
}

func TestRenderErrors(t *testing.T) {
	for _, test := range []struct {
		name, csv, annotations, want string
	}{
		{"no CSV", "kind: X\nmetadata: {name: x}\n", annotationsText, "manifests/ holds no ClusterServiceVersion"},
		{"no package", csvText, "annotations: {}\n", "metadata/ names no package"},
		{"no version", strings.Replace(csvText, "  version: 1.0.0\n", "", 1), annotationsText, "has no version"},
		{"no name", strings.Replace(csvText, "name: example.v1.0.0", "x: y", 1), annotationsText, "has no name"},
		{"two CSVs", csvText + "---\n" + csvText, annotationsText, "two ClusterServiceVersions"},
		{"version is a number", strings.Replace(csvText, "version: 1.0.0", "version: 1", 1), annotationsText, "csv.yaml:8:3: spec.version is a number where a string belongs"},
		{"annotation is no list", strings.Replace(csvText, "'[{", "'{{", 1), annotationsText, "csv.yaml:6:5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, err := bundle.Read(writeBundle(t, map[string]string{"manifests/csv.yaml": test.csv, "metadata/annotations.yaml": test.annotations}))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Render(b, ""); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
