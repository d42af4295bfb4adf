package olmv1

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// healthy are OLM v1's parts as Install leaves them, with a catalog.
func healthy(t *testing.T) []client.Object {
	t.Helper()
	objects, err := parts(true)
	if err != nil {
		t.Fatal(err)
	}
	served := &ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "tea"}}
	served.Status.Conditions = []metav1.Condition{
		{Type: conditionServing, Status: metav1.ConditionTrue, Reason: "Available"}, {Type: conditionProgressing, Status: metav1.ConditionTrue, Reason: reasonSucceeded},
	}
	all := []client.Object{served}
	for _, o := range objects {
		switch o.GetKind() {
		case lifecycle.KindCRD:
			d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: o.GetName()}}
			d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
			all = append(all, d)
		case "Deployment":
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}}
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"control-plane": d.Name}}
			d.Status.AvailableReplicas = 1
			all = append(all, d)
		}
	}
	return all
}

// TestStatus: each part that is broken is named with the reason, and no other.
func TestStatus(t *testing.T) {
	set := func(name string, change func(client.Object)) func([]client.Object) []client.Object {
		return func(all []client.Object) []client.Object {
			for _, o := range all {
				if o.GetName() == name {
					change(o)
				}
			}
			return all
		}
	}
	without := func(name string) func([]client.Object) []client.Object {
		return func(all []client.Object) []client.Object {
			return slices.DeleteFunc(all, func(o client.Object) bool { return o.GetName() == name })
		}
	}
	for name, test := range map[string]struct {
		change func([]client.Object) []client.Object
		want   []string
	}{
		"well":                   {func(all []client.Object) []client.Object { return all }, nil},
		"a CRD is missing":       {without("clusterextensions.olm.operatorframework.io"), []string{"CustomResourceDefinition/clusterextensions.olm.operatorframework.io: it is missing"}},
		"a program is missing":   {without("catalogd-controller-manager"), []string{"Deployment/olmv1-system/catalogd-controller-manager: it is missing"}},
		"a program is elsewhere": {set("catalogd-controller-manager", func(o client.Object) { o.SetNamespace("openshift-catalogd") }), nil},
		"a program does not run": {set("operator-controller-controller-manager", func(o client.Object) { o.(*appsv1.Deployment).Status.AvailableReplicas = 0 }),
			[]string{"Deployment/olmv1-system/operator-controller-controller-manager: no pod of it is available"}},
		"a catalog is not served": {set("tea", func(o client.Object) {
			c := o.(*ClusterCatalog)
			c.Status.Conditions[0].Status, c.Status.Conditions[1].Reason, c.Status.Conditions[1].Message = metav1.ConditionFalse, "Retrying", "no such image"
		}), []string{"ClusterCatalog/tea: catalogd does not serve it: Retrying: no such image"}},
		"a catalog is switched off": {set("tea", func(o client.Object) {
			c := o.(*ClusterCatalog)
			c.Status.Conditions[0].Status, c.Status.Conditions[0].Reason = metav1.ConditionFalse, reasonSwitchedOff
		}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(test.change(healthy(t))...).Build()}
			s, err := c.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range s.Unwell() {
				got = append(got, p.Object+": "+p.Why)
			}
			if !s.Installed || s.Namespace != Namespace || !slices.Equal(got, test.want) {
				t.Errorf("installed %t in %s, not well: %q", s.Installed, s.Namespace, got)
			}
		})
	}
	c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).Build()}
	if s, err := c.Status(t.Context()); err != nil || s.Installed || len(s.Parts) > 0 {
		t.Errorf("nothing is installed: %+v, %v", s, err)
	}
}
