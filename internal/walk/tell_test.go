package walk

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// A sidecar that was simulated leaves what the operator does verified; a pod in which nothing ran does not.
func TestSimulatedSidecar(t *testing.T) {
	r := &lifecycle.Release{Name: "v1", CSV: &v1alpha1.ClusterServiceVersion{}}
	r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = make([]v1alpha1.StrategyDeploymentSpec, 1)
	r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers = []corev1.Container{{Image: "manager"}, {Image: "proxy"}}
	for name, c := range map[string]struct{ simulated, idle, notes []string }{
		"all runs":    {nil, nil, nil},
		"the sidecar": {[]string{"proxy"}, nil, []string{"containers of proxy were simulated beside those of the operator that ran"}},
		"everything":  {[]string{"manager", "proxy"}, []string{"manager", "proxy"}, nil},
	} {
		w := &walk{Cluster: &observe.Cluster{Simulated: c.simulated}, releases: map[string]*lifecycle.Release{"v1": r}}
		for range 2 {
			if diff := cmp.Diff(c.idle, w.idleOf(nil, r, r)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if !slices.Equal(w.notes, c.notes) {
			t.Errorf("%s: %q", name, w.notes)
		}
		w.pkg = &catalog.Package{}
		found := w.about([]finding.Finding{code.Finding(code.Uninstall, "Pod/n/p", "it stays")}, finding.Subject{From: "v1"})
		if unverified := found[0].Cause != ""; unverified != (len(c.idle) > 0) {
			t.Errorf("%s: cause %q", name, found[0].Cause)
		}
	}
}
