package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/catalog"
)

// TestCheckNamed: images are known by every way in which a bundle or a sample names them, and by nothing else.
func TestCheckNamed(t *testing.T) {
	t.Parallel()
	property := func(object string) catalog.Property {
		value, err := json.Marshal(map[string][]byte{"data": []byte(object)})
		if err != nil {
			t.Fatal(err)
		}
		return catalog.Property{Type: catalog.PropertyObject, Value: value}
	}
	p := &catalog.Package{Name: "tea", Bundles: []*catalog.Bundle{
		{Image: "example.com/bundle:v1", RelatedImages: []catalog.RelatedImage{{Image: "example.com/tea:v1"}, {Image: "example.com/bundle:v1"}}},
		{Properties: []catalog.Property{property(`{"spec": {"containers": [{
			"image": "example.com/tea:v2", "args": ["--pot=example.com/pot:1,example.com/can:1"], "env": [{"name": "CUP", "value": "example.com/cup@sha256:1f"}]
		}]}, "metadata": {"annotations": {"alm-examples": "[{\"spec\": {\"image\": {\"repository\": \"example.com/leaf\", \"tag\": \"green\"}}}]", "version": "v3"}}}`)}},
	}}
	samples := []*unstructured.Unstructured{{Object: map[string]any{"spec": map[string]any{"image": "milk", "conf": "use example.com/sugar:2.\n"}}}}
	for _, ref := range []string{
		"example.com/tea:v1", "example.com/tea:v2", "example.com/pot:1", "example.com/can:1", "example.com/cup@sha256:1f", "example.com/leaf:green", "milk", "example.com/sugar:2",
	} {
		if err := checkNamed([]program{{ref: ref}}, p, samples); err != nil {
			t.Errorf("%s: %v", ref, err)
		}
	}
	for ref, nearest := range map[string]string{
		"example.com/tea:v":      "nearest: example.com/tea:v1, example.com/tea:v2, example.com/leaf:green",
		"example.com/tea:v3":     "nearest: example.com/tea:v1, example.com/tea:v2",
		"example.com/tea":        "nearest: example.com/tea:v1",
		"docker.io/library/milk": "no bundle of package tea names it, and no sample",
	} {
		err := checkNamed([]program{{ref: "milk"}, {ref: ref}}, p, samples)
		if !errors.As(err, &usageError{}) || !strings.Contains(err.Error(), nearest) || strings.Contains(err.Error(), "bundle:v1") {
			t.Errorf("%s: %v, want %s", ref, err, nearest)
		}
	}
	if err := checkNamed([]program{{ref: "a"}}, &catalog.Package{Name: "tea"}, nil); err == nil || !strings.Contains(err.Error(), "nearest: none") {
		t.Errorf("without any image: %v", err)
	}
}
