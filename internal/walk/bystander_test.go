package walk

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

func shop() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "shop"},
		"spec": map[string]any{
			"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "shop"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "shop"}}, "spec": map[string]any{"containers": []any{
				map[string]any{"name": "shop", "image": "shop:1", "env": []any{map[string]any{"name": "COLOUR", "value": "red"}}},
			}}},
		},
	}}
}

// What webhooks do to pods of others has to go on, and they must not keep others from what was allowed.
func TestBystanders(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	for _, c := range []struct{ v1, v2, code, says string }{
		{injects, injects, "", ""},
		{"", injects, "", ""},
		{injects, "", code.DoesLess, "error U514 Pod of Deployment/shop: no admission webhook of v2 sets annotations.example.com/a, annotations.example.com/b in it when it is created; one of v1 did"},
		{injects, injectsLess, code.DoesLess, "warning U514 Pod of Deployment/shop: no admission webhook of v2 sets annotations.example.com/b in it"},
		{injectsLess, robsPods, code.Narrowed, "error U526 Pod of Deployment/shop: under v2 an admission webhook or a policy takes spec.containers.shop.env.COLOUR.name, spec.containers.shop.env.COLOUR.value out of it"},
		{"", bansPods, code.Narrowed, "error U526 Pod of Deployment/shop: under v2 an admission webhook or a policy refuses to create it"},
		{bansPods, "", code.Unguarded, "error U521 Pod of Deployment/shop: under v2 the API server creates it"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newDisposable()
			w.samples = []*unstructured.Unstructured{shop()}
			w.expect(t, p, plan, c.v1, c.v2, c.code, c.says)
		})
	}
}

// Pods are those of the user's workloads, and those that webhooks select; what is the operator's is none.
func TestWhichBystanders(t *testing.T) {
	rules := []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, Resources: []string{"pods"}}}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"inject": "yes"}, MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "db"}}, {Key: "app", Operator: metav1.LabelSelectorOpExists}, {Key: "skip", Operator: metav1.LabelSelectorOpDoesNotExist},
	}}
	r := &lifecycle.Release{CSV: &v1alpha1.ClusterServiceVersion{}}
	r.CSV.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "things.example.com", Kind: "Thing"}}
	r.CSV.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{
		{Type: v1alpha1.MutatingAdmissionWebhook, Rules: rules, ObjectSelector: selector}, {Type: v1alpha1.ValidatingAdmissionWebhook, Rules: rules}, {Type: v1alpha1.ConversionWebhook, Rules: rules},
	}
	thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}}}
	w := &walk{releases: map[string]*lifecycle.Release{"v1": r}, options: Options{Samples: []*unstructured.Unstructured{shop(), thing}}}
	all := w.bystanders()
	if diff := cmp.Diff([]string{"Deployment/shop", "Pod", "Pod app=true,inject=yes,tier=web", "Pod of Deployment/shop"}, slices.Sorted(maps.Keys(all))); diff != "" {
		t.Error(diff)
	}
	if got := all["Pod of Deployment/shop"].GetLabels()["app"]; got != "shop" {
		t.Errorf("the pod's label is %q", got)
	}
}
