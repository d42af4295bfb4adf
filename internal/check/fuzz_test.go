package check

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
)

// FuzzBundle: no bundle makes a check panic.
func FuzzBundle(f *testing.F) {
	csv, err := os.ReadFile("../bundle/testdata/cafe/bundle/manifests/cafe-operator.clusterserviceversion.yaml")
	if err != nil {
		f.Fatal(err)
	}
	crd, err := os.ReadFile("../bundle/testdata/cafe/bundle/manifests/cafe.example.com_coffees.yaml")
	if err != nil {
		f.Fatal(err)
	}
	annotations, err := os.ReadFile("../bundle/testdata/cafe/bundle/metadata/annotations.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(csv, crd, annotations)
	f.Add([]byte("kind: ClusterServiceVersion\nspec: {install: {spec: {deployments: [{}]}}, webhookdefinitions: [{type: ConversionWebhook, conversionCRDs: [a]}]}"), []byte("kind: CustomResourceDefinition\nspec: {versions: [{}]}"), []byte("annotations: {}"))
	sound := rendered(csv, crd, annotations)
	if sound == nil {
		f.Fatal("the sound bundle cannot be read")
	}
	f.Fuzz(func(t *testing.T, csv, crd, annotations []byte) {
		b, err := bundle.ReadFS(fstest.MapFS{
			"manifests/csv.yaml": {Data: csv}, "manifests/crd.yaml": {Data: crd}, "metadata/annotations.yaml": {Data: annotations},
		}, "bundle")
		if err != nil {
			return
		}
		for _, found := range Bundle(b, nil) {
			if found.Code == "" || found.Severity == "" {
				t.Errorf("a finding without code or severity: %+v", found)
			}
		}
		one := rendered(csv, crd, annotations)
		if one == nil {
			return
		}
		if r, err := CompareBundles(one, rendered(csv, crd, annotations), nil); err == nil && len(r.Changes) > 0 {
			t.Errorf("a bundle differs from itself: %+v", r.Changes)
		}
		_, _ = CompareBundles(sound, one, nil)
		_, _ = CompareBundles(one, sound, nil)
	})
}

// rendered returns the bundle as one of a catalog, or nil where it is none.
func rendered(csv, crd, annotations []byte) *catalog.Bundle {
	b, err := bundle.ReadFS(fstest.MapFS{
		"manifests/csv.yaml": {Data: csv}, "manifests/crd.yaml": {Data: crd}, "metadata/annotations.yaml": {Data: annotations},
	}, "bundle")
	if err != nil {
		return nil
	}
	document, err := catalog.Render(b, "")
	if err != nil {
		return nil
	}
	c := catalog.Parse("bundle", document.JSON)
	if len(c.Packages) != 1 || len(c.Packages[0].Bundles) != 1 {
		return nil
	}
	return c.Packages[0].Bundles[0]
}
