package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/internal/manager"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

// The Deployment's spec is the one that every other release makes for the same spec, so that no upgrade restarts it.
func TestDeploymentIsEveryReleases(t *testing.T) {
	t.Parallel()
	m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "ns", UID: "uid"}, Spec: v1alpha1.MemcachedSpec{Size: 2}}
	got, err := yaml.Marshal(operand.Deployment(desired(m, manager.DefaultImage)).Spec)
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("../../internal/operand/testdata/small-deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want, have any
	if err := yaml.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(got, &have); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.(map[string]any)["spec"], have); diff != "" {
		t.Error(diff)
	}
}
