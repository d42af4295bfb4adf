package observe

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Who is asked about deletions alone, or about everything there is, is not the operator's guard; a policy without a binding is nobody's.
func TestGuards(t *testing.T) {
	rules := func(group, resource string, operation admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{operation}, Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, Resources: []string{resource}},
		}}
	}
	validating := func(group, resource string, operation admissionregistrationv1.OperationType) client.Object {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{Rules: rules(group, resource, operation)}}}
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Rules: rules("example.com", "pots", "CREATE")}}}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rules("example.com", "*", "*")[0]}}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "p"}}
	for name, c := range map[string]struct {
		there            []client.Object
		asked, validated bool
	}{
		"nobody":            {nil, false, false},
		"validating":        {[]client.Object{validating("example.com", "pots", "UPDATE")}, true, true},
		"all resources":     {[]client.Object{validating("example.com", "*/*", "CREATE")}, true, true},
		"another kind":      {[]client.Object{validating("example.com", "pans", "CREATE")}, false, false},
		"all groups":        {[]client.Object{validating("*", "*", "*")}, false, false},
		"deletions":         {[]client.Object{validating("example.com", "pots", "DELETE")}, false, false},
		"mutating":          {[]client.Object{mutating}, true, false},
		"a policy":          {[]client.Object{policy, binding}, true, true},
		"an unbound policy": {[]client.Object{policy}, false, false},
	} {
		cluster := &Cluster{Client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(c.there...).Build()}
		guards, err := cluster.Guards(t.Context())
		pots := schema.GroupResource{Group: "example.com", Resource: "pots"}
		asked, validated := guards.AreAsked(pots), guards.Validate(pots)
		if err != nil || asked != c.asked || validated != c.validated {
			t.Errorf("%s: %t, %t, %v", name, asked, validated, err)
		}
	}
}
