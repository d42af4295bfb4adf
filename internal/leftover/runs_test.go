package leftover

import (
	"slices"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/olmkit/olmkit/internal/cluster"
)

const runOfTea = cluster.RunLabel + "=tea"

// ran is what 'bundle run' of the package tea makes.
func ran() []client.Object {
	return []client.Object{
		named(&corev1.Namespace{}, "tea", 1, runOfTea),
		named(&v1alpha1.CatalogSource{}, "tea/olmkit-run", 2, runOfTea),
		named(&operatorsv1.OperatorGroup{}, "tea/tea", 2, runOfTea),
		named(&v1alpha1.Subscription{}, "tea/tea", 2, runOfTea),
		named(&v1alpha1.ClusterServiceVersion{}, "tea/tea.v1", 3),
		definition("teas.example.com", 4, "operators.coreos.com/tea.tea="),
	}
}

// TestRunsKeepTheUsersObjects: a definition with objects stays, also where these are in the run's own namespace, which then
// stays, too; and what a walk left is not touched.
func TestRunsKeepTheUsersObjects(t *testing.T) {
	for name, test := range map[string]struct {
		add  []client.Object
		kept []string
	}{
		"no objects":               {},
		"an object elsewhere":      {[]client.Object{tea("default/mine")}, []string{"CustomResourceDefinition/teas.example.com"}},
		"one in the run's own":     {[]client.Object{tea("tea/mine")}, []string{"CustomResourceDefinition/teas.example.com", "Namespace/tea"}},
		"what a walk left besides": {[]client.Object{named(&corev1.Namespace{}, "olmkit-samples", 1, ours)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newCleaner(t, interceptor.Funcs{}, append(ran(), test.add...)...)
			c = c.OfRuns()
			removal, err := c.Remove(t.Context(), "tea")
			if err != nil {
				t.Fatal(err)
			}
			var kept []string
			for _, k := range removal.Kept {
				kept = append(kept, k.String())
				if k.Fix == "" {
					t.Errorf("%s has no fix", k)
				}
			}
			if !slices.Equal(kept, test.kept) {
				t.Errorf("kept %q", kept)
			}
			if slices.ContainsFunc(removal.Removed, func(o Object) bool { return o.Name == "olmkit-samples" }) {
				t.Error("it removed what a walk left")
			}
		})
	}
}

// TestRunsShareNoNamespace: with somebody's Subscription beside nothing is removed.
func TestRunsShareNoNamespace(t *testing.T) {
	c, _ := newCleaner(t, interceptor.Funcs{}, append(ran(), named(&v1alpha1.Subscription{}, "tea/cup", 6))...)
	removal, err := c.OfRuns().Remove(t.Context(), "tea")
	if err == nil || !strings.Contains(err.Error(), "Subscription/tea/cup, which olmkit did not make") || len(removal.Removed) > 0 {
		t.Errorf("%v: removed %v", err, removal.Removed)
	}
}
