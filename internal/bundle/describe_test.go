package bundle

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmkit/olmkit/internal/finding"
)

// TestDescribeMerge shows what wins where both Go sources and base speak of a kind: markers, then the base, then comments.
func TestDescribeMerge(t *testing.T) {
	one, two := 1, 2
	said := map[string]*Description{
		"v1": {
			At: finding.Location{File: "api/v1/coffee.go", Line: 3}, DisplayName: "Espresso", Text: "Coffee is a cup of coffee.",
			Resources: []Resource{{Kind: "Deployment", Version: "v1", Name: "cup"}, {Kind: "Service", Version: "v1"}},
			Spec: []Descriptor{
				{Path: "sugar.grams", Text: "How sweet."},
				{Path: "beans", DisplayName: "Beans", Text: "Which.", XDescriptors: []string{"urn:beans"}},
				{Path: "size", DisplayName: "Cup size", Text: "How much.", XDescriptors: []string{"urn:size"}, Order: &one},
			},
			Status: []Descriptor{{Path: "podNames[0].restartCount"}},
		},
	}
	base := `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: cafe-operator.v0.0.0
spec:
  customresourcedefinitions:
    owned:
    - name: teas.cafe.example.com # not ours any more
      version: v1
      kind: Tea
    - name: coffees.cafe.example.com
      version: v1
      kind: Coffee
      displayName: Cup
      description: Written by hand. # and kept
      resources:
      - {kind: Deployment, version: v1, name: cup}
      - {kind: Secret, version: v1}
      specDescriptors:
      - path: beans # the best
        description: Said by hand.
        x-descriptors: [urn:old]
      - path: milk
        displayName: Milk
`
	inputs := slices.DeleteFunc(load(t, "testdata/cafe/config/manifests"), func(i Input) bool { return i.Kind == KindCSV })
	found, err := Inputs("-", strings.NewReader(base))
	if err != nil {
		t.Fatal(err)
	}
	o := cafe()
	o.Describe = func(kind schema.GroupVersionKind) (*Description, error) { return said[kind.Version], nil }
	made, err := Generate(inputs, &found[0], o)
	if err != nil {
		t.Fatal(err)
	}
	csv := string(made.Files["manifests/cafe-operator.clusterserviceversion.yaml"])
	_, owned, _ := strings.Cut(csv, "    owned:\n")
	owned, _, _ = strings.Cut(owned, "\n    - name: coffees.cafe.example.com\n      version: v1beta1")
	owned, _, _ = strings.Cut(owned, "\n    - description: ")
	want := `    - name: teas.cafe.example.com # not ours any more
      version: v1
      kind: Tea
    - name: coffees.cafe.example.com
      version: v1
      kind: Coffee
      displayName: Espresso
      description: Written by hand. # and kept
      resources:
      - {kind: Deployment, version: v1, name: cup}
      - {kind: Secret, version: v1}
      - name: ""
        kind: Service
        version: v1
      specDescriptors:
      - path: size
        displayName: Cup size
        description: How much.
        x-descriptors:
        - urn:size
      - displayName: Beans
        path: beans # the best
        description: Said by hand.
        x-descriptors:
        - urn:beans
      - path: milk
        displayName: Milk
      - path: sugar.grams
        displayName: Grams
        description: How sweet.
      statusDescriptors:
      - path: podNames[0].restartCount
        displayName: Restart Count`
	if diff := cmp.Diff(want, owned); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, want := range []string{
		`api/v1/coffee.go:3: the marker's displayName "Espresso" takes the place of the base CSV's "Cup"`,
		"CustomResourceDefinition/coffees.cafe.example.com: the Go sources do not declare cafe.example.com/v1beta1 Coffee",
	} {
		if !slices.Contains(made.Notes, want) {
			t.Errorf("no note %q in %q", want, made.Notes)
		}
	}

	said["v1"].Order = &two
	said["v1beta1"] = &Description{Order: &one}
	if made, err = Generate(inputs, &found[0], o); err != nil {
		t.Fatal(err)
	}
	csv = string(made.Files["manifests/cafe-operator.clusterserviceversion.yaml"])
	if first, second, tea := strings.Index(csv, "version: v1beta1"), strings.Index(csv, "displayName: Espresso"), strings.Index(csv, "kind: Tea"); first > second || second > tea {
		t.Errorf("not in the order of the markers:\n%s", csv)
	}

	o.Describe = func(schema.GroupVersionKind) (*Description, error) { return nil, errors.New("api/v1/coffee.go:7: no") }
	if _, err = Generate(inputs, &found[0], o); err == nil || !strings.Contains(err.Error(), "api/v1/coffee.go:7: no") {
		t.Errorf("got %v", err)
	}
}
