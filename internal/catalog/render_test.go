package catalog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/pkg/image"
	"github.com/operator-framework/operator-registry/pkg/registry"
	"github.com/sirupsen/logrus"

	"github.com/olmkit/olmkit/internal/bundle"
)

// TestRenderLikeOpm holds Render against opm's own code on every published bundle.
func TestRenderLikeOpm(t *testing.T) {
	root := os.Getenv("OLMKIT_DATA")
	if root == "" {
		t.Skip("OLMKIT_DATA names no folder of published bundles")
	}
	logrus.SetLevel(logrus.PanicLevel)
	dirs, err := filepath.Glob(filepath.Join(root, "*", "*", "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		dir := filepath.Dir(d)
		theirs, err := registry.NewImageInput(image.SimpleReference(""), dir)
		if err != nil {
			t.Logf("%s: opm says %v", dir, err)
			continue
		}
		_, wanted, err := registry.ObjectsAndPropertiesFromBundle(theirs.Bundle)
		if err != nil {
			t.Fatal(err)
		}
		read, err := bundle.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := Render(read, "")
		if err != nil {
			t.Fatal(err)
		}
		c := &Catalog{Documents: []*Document{rendered}}
		c.index()
		ours := c.Packages[0].Bundles[0]
		if ours.Name != theirs.Bundle.Name || ours.Package != theirs.Bundle.Package {
			t.Errorf("%s: %s of %s, opm says %s of %s", dir, ours.Name, ours.Package, theirs.Bundle.Name, theirs.Bundle.Package)
		}
		var want, got []string
		for _, p := range wanted {
			if p.Type != PropertyObject {
				want = append(want, p.Type+" "+string(p.Value))
			}
		}
		for _, p := range ours.Properties {
			if p.Type != PropertyObject {
				got = append(got, p.Type+" "+string(p.Value))
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", dir, diff)
		}
		objects, err := ours.Objects()
		if err != nil {
			t.Fatal(err)
		}
		known := map[string]any{}
		for _, raw := range objects {
			var v map[string]any
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			metadata, _ := v["metadata"].(map[string]any)
			known[fmt.Sprint(v["kind"], metadata["name"])] = v
		}
		for _, o := range theirs.Bundle.Objects {
			raw, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(v, known[o.GetKind()+o.GetName()]) {
				t.Errorf("%s: opm renders %s %s otherwise: %s", dir, o.GetKind(), o.GetName(), cmp.Diff(v, known[o.GetKind()+o.GetName()]))
			}
		}
		if len(objects) != len(theirs.Bundle.Objects) {
			t.Logf("%s: %d manifests, opm renders %d", dir, len(objects), len(theirs.Bundle.Objects))
		}
	}
	t.Logf("%d bundles", len(dirs))
}

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
