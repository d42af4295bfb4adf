package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Guarded reports whether a webhook or a policy that is about the group of resource is asked about its objects, and whether one that validates is.
// Policies that may not be read are none.
func (c *Cluster) Guarded(ctx context.Context, resource schema.GroupResource) (asked, validated bool, err error) {
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	var policies admissionregistrationv1.ValidatingAdmissionPolicyList
	if err := errors.Join(c.Client.List(ctx, &validating), c.Client.List(ctx, &mutating)); err != nil {
		return false, false, fmt.Errorf("list webhook configurations: %w", err)
	}
	if err := c.Client.List(ctx, &policies); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return false, false, fmt.Errorf("list ValidatingAdmissionPolicies: %w", err)
	}
	var validate, mutate []admissionregistrationv1.Rule
	for _, configuration := range validating.Items {
		for _, w := range configuration.Webhooks {
			validate = append(validate, rulesOf(w.Rules)...)
		}
	}
	for _, configuration := range mutating.Items {
		for _, w := range configuration.Webhooks {
			mutate = append(mutate, rulesOf(w.Rules)...)
		}
	}
	for _, p := range policies.Items {
		if p.Spec.MatchConstraints != nil {
			for _, r := range p.Spec.MatchConstraints.ResourceRules {
				validate = append(validate, r.Rule)
			}
		}
	}
	matches := func(r admissionregistrationv1.Rule) bool {
		return slices.Contains(r.APIGroups, resource.Group) && (slices.Contains(r.Resources, resource.Resource) || slices.Contains(r.Resources, "*"))
	}
	validated = slices.ContainsFunc(validate, matches)
	return validated || slices.ContainsFunc(mutate, matches), validated, nil
}

func rulesOf(rules []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.Rule {
	list := make([]admissionregistrationv1.Rule, 0, len(rules))
	for _, r := range rules {
		list = append(list, r.Rule)
	}
	return list
}
