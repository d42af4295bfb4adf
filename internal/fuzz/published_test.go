package fuzz

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmkit/olmkit/internal/bundle"
)

// publishedDefinitions calls do with each CustomResourceDefinition of the first and last release, by file name, of each package below
// the folder that OLMKIT_DATA names, and with the samples of the release.
func publishedDefinitions(t *testing.T, do func(d *apiextensionsv1.CustomResourceDefinition, samples []map[string]any)) {
	root := os.Getenv("OLMKIT_DATA")
	if root == "" {
		t.Skip("OLMKIT_DATA names no folder of published bundles")
	}
	packages, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range packages {
		releases, err := filepath.Glob(filepath.Join(dir, "*", "manifests"))
		if err != nil || len(releases) == 0 {
			continue
		}
		for _, release := range []string{releases[0], releases[len(releases)-1]} {
			b, err := bundle.Read(filepath.Dir(release))
			if err != nil {
				t.Fatal(err)
			}
			var csv struct {
				Metadata struct{ Annotations map[string]string }
			}
			if err := json.Unmarshal(b.CSV().JSON, &csv); err != nil {
				t.Fatal(err)
			}
			var samples []map[string]any
			_ = unmarshal([]byte(csv.Metadata.Annotations["alm-examples"]), &samples)
			for _, m := range b.Manifests {
				var d apiextensionsv1.CustomResourceDefinition
				if m.Kind == "CustomResourceDefinition" && json.Unmarshal(m.JSON, &d) == nil && len(d.Spec.Versions) > 0 {
					do(&d, samples)
				}
			}
		}
	}
}

// TestPublishedSchemas: of every published schema all seeds make objects that the API server's validation accepts, also from JSON.
func TestPublishedSchemas(t *testing.T) {
	const seeds = 20
	schemas, made, valid := 0, 0, 0
	publishedDefinitions(t, func(d *apiextensionsv1.CustomResourceDefinition, samples []map[string]any) {
		for _, v := range d.Spec.Versions {
			if v.Schema == nil {
				continue
			}
			var own []map[string]any
			for _, sample := range samples {
				if sample["kind"] == d.Spec.Names.Kind && sample["apiVersion"] == d.Spec.Group+"/"+v.Name {
					own = append(own, sample)
				}
			}
			s, err := NewSchema(d, v.Name, own...)
			if err != nil {
				t.Fatal(err)
			}
			schemas++
			for seed := range uint64(seeds) {
				made++
				object := s.Object(seed)
				if object == nil {
					continue
				}
				if problems := s.Problems(reread(t, object)); len(problems) > 0 {
					t.Errorf("%s %s, seed %d: %v", d.Name, v.Name, seed, problems)
				}
				valid++
			}
		}
	})
	t.Logf("%d schemas, %d of %d seeds", schemas, valid, made)
	if schemas < 100 || valid < made*99/100 {
		t.Errorf("of %d schemas %d of %d seeds make a valid object", schemas, valid, made)
	}
}
