package lifecycle

import (
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

func TestModes(t *testing.T) {
	r := &Release{CSV: &v1alpha1.ClusterServiceVersion{}}
	r.CSV.Spec.InstallModes = []v1alpha1.InstallMode{
		{Type: v1alpha1.InstallModeTypeMultiNamespace, Supported: false},
		{Type: v1alpha1.InstallModeTypeOwnNamespace, Supported: true},
		{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true},
	}
	if got := r.Modes(); !slices.Equal(got, []Mode{AllNamespaces, OwnNamespace}) {
		t.Errorf("got %v", got)
	}
}
