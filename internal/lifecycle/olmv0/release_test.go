package olmv0

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/cluster"
)

// Another release brings its own definitions, and its operators run its own image.
func TestOtherRelease(t *testing.T) {
	of := crds.CatalogSource()
	of.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	of.Spec.Names.ShortNames = []string{"older"}
	data, err := yaml.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	definitions, objects, err := Release{Version: "v0.38.0", CRDs: append([]byte("---\n"), data...)}.parts()
	if err != nil {
		t.Fatal(err)
	}
	if len(definitions) != 1 || definitions[0].Name != of.Name || !equality.Semantic.DeepEqual(definitions[0].Spec, of.Spec) {
		t.Errorf("%d definitions, or it is another one", len(definitions))
	}
	images := map[string]int{}
	for _, o := range objects {
		data, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		for word := range strings.FieldsSeq(string(data)) {
			if _, image, ok := strings.Cut(word, cluster.OLMRepository+":"); ok {
				images[image]++
			}
		}
	}
	if len(images) != 1 || images["v0.38.0"] != 3 {
		t.Errorf("the operators run %v", images)
	}
	if _, _, err := (Release{Version: "v0.38.0"}).parts(); err == nil || !strings.Contains(err.Error(), "CustomResourceDefinitions of OLM v0.38.0: there are none") {
		t.Errorf("without definitions: %v", err)
	}
}
