package check

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/olmkit/olmkit/internal/bundle"
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
	})
}
