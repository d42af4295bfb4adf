package olmv0

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

func version(namespace, name string, labels map[string]string) *v1alpha1.ClusterServiceVersion {
	return &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
}

// An operator that serves all namespaces has a copy of its ClusterServiceVersion in each: it is no part of a package that is
// uninstalled there, and no reason not to install one.
func TestCopiedVersionsAreLeftAlone(t *testing.T) {
	copied := version("n", "everywhere.v1", map[string]string{v1alpha1.CopiedLabelKey: "theirs"})
	c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(copied, version("n", "tea.v1", nil)).Build()}
	there, err := c.Present(t.Context(), "cup", nil, "n")
	if err != nil || !slices.Equal(there, []string{"ClusterServiceVersion/n/tea.v1"}) {
		t.Errorf("%v: there are %q", err, there)
	}
	if err := c.DeleteSubscription(t.Context(), "n", "tea", time.Second); err != nil {
		t.Error(err)
	}
	var left v1alpha1.ClusterServiceVersionList
	if err := c.List(t.Context(), &left); err != nil || len(left.Items) != 1 || left.Items[0].Name != copied.Name {
		t.Errorf("%v: left %+v", err, left.Items)
	}
	if there, err := c.Present(t.Context(), "cup", nil, "n"); err != nil || len(there) > 0 {
		t.Errorf("%v: there are %q", err, there)
	}
}

// What a walk makes carries its label, and says what it brings.
func TestWhatAWalkMakesIsLabelled(t *testing.T) {
	place := lifecycle.Place{Package: "tea", Catalog: "olmkit", Namespace: "n", Mode: lifecycle.OwnNamespace}
	c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).Build(), Walk: "w1", Brings: []string{"ClusterRole/a", "PriorityClass/b"}}
	for _, err := range []error{
		c.Prepare(t.Context(), place), c.Publish(t.Context(), place, cluster.CatalogAddress{Address: "a:1"}), c.Request(t.Context(), place, "tea.v1"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	kinds := map[string]bool{}
	for kind := range Scheme().AllKnownTypes() {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if !Scheme().Recognizes(list.GroupVersionKind()) || c.List(t.Context(), &list) != nil {
			continue
		}
		for _, o := range list.Items {
			kinds[kind.Kind] = true
			if o.Labels[cluster.WalkLabel] != "w1" || o.Labels[cluster.ManagedByLabel] != cluster.ManagedBy {
				t.Errorf("%s %s has the labels %v", kind.Kind, o.Name, o.Labels)
			}
			if brings := o.Annotations[BringsAnnotation]; (kind.Kind == "Namespace" || kind.Kind == "CatalogSource") && brings != "ClusterRole/a,PriorityClass/b" {
				t.Errorf("%s %s says that the walk brings %q", kind.Kind, o.Name, brings)
			}
		}
	}
	if len(kinds) != 4 {
		t.Errorf("it made %v", kinds)
	}
	if made, err := c.Installed(t.Context(), ""); err != nil || len(made) > 0 {
		t.Errorf("%v: OLM is there: %v", err, made)
	}
	definitions, _, err := Release{}.parts()
	if err != nil {
		t.Fatal(err)
	}
	var done Installation
	if err := c.createMissing(t.Context(), definitions[0], &done); err != nil {
		t.Fatal(err)
	}
	for walk, want := range map[string]int{"": 1, "w1": 1, "w2": 0} {
		if made, err := c.Installed(t.Context(), walk); err != nil || len(made) != want || want > 0 && !slices.ContainsFunc(made, func(o client.Object) bool { return o.GetName() == definitions[0].Name }) {
			t.Errorf("%v: walk %q installed %v", err, walk, made)
		}
	}
}

// Nothing holds an upgrade up by an OperatorCondition that is not there; one that is gone needs no change back.
func TestSetUpgradeableWithoutCondition(t *testing.T) {
	c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).Build()}
	if err := c.SetUpgradeable(t.Context(), "n", "tea.v1", false); err == nil || !strings.Contains(err.Error(), "say whether tea.v1 may be upgraded") {
		t.Error(err)
	}
	if err := c.SetUpgradeable(t.Context(), "n", "tea.v1", true); err != nil {
		t.Error(err)
	}
}
