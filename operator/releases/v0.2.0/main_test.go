package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/operator/api/v1beta1"
	"github.com/olmkit/olmkit/operator/internal/manager"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

// The Deployment's spec is the one that every other release makes for the same spec, so that no upgrade restarts it.
func TestDeploymentIsEveryReleases(t *testing.T) {
	t.Parallel()
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "ns", UID: "uid"}, Spec: v1beta1.MemcachedSpec{Size: 2, ContainerPort: 11211}}
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

func TestAdmission(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]struct {
		image   string
		valid   bool
		warning bool
	}{
		"":                       {"", true, false},
		"memcached:1.6":          {"memcached:1.6", true, false},
		" docker://r:5000/m:1 ":  {"r:5000/m:1", true, false},
		"memcached":              {"memcached", true, true},
		"Not An Image":           {"Not An Image", false, true},
		"memcached@sha256:short": {"memcached@sha256:short", false, false},
	} {
		m := &v1beta1.Memcached{Spec: v1beta1.MemcachedSpec{Image: image}}
		if err := (defaulter{}).Default(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		warnings, err := validator{}.ValidateCreate(t.Context(), m)
		if m.Spec.Image != want.image || (err == nil) != want.valid || (len(warnings) > 0) != want.warning {
			t.Errorf("%q: %q, %v, %v", image, m.Spec.Image, warnings, err)
		}
	}
}
