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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Guards are the rules by which webhooks and policies are asked about requests.
type Guards struct {
	validating, mutating []admissionregistrationv1.RuleWithOperations
}

// Validate reports whether a webhook that validates, or a policy, that is about the group of resource is asked when its objects are created or
// changed.
func (g Guards) Validate(resource schema.GroupResource) bool {
	return slices.ContainsFunc(g.validating, about(resource))
}

// AreAsked is Validate for webhooks of any kind.
func (g Guards) AreAsked(resource schema.GroupResource) bool {
	return g.Validate(resource) || slices.ContainsFunc(g.mutating, about(resource))
}

// Guards reads what admission asks. Policies that may not be read are none.
func (c *Cluster) Guards(ctx context.Context) (Guards, error) {
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	if err := errors.Join(c.Client.List(ctx, &validating), c.Client.List(ctx, &mutating)); err != nil {
		return Guards{}, fmt.Errorf("list webhook configurations: %w", err)
	}
	policies, err := c.boundPolicies(ctx)
	if err != nil {
		return Guards{}, err
	}
	var g Guards
	for _, configuration := range validating.Items {
		for _, w := range configuration.Webhooks {
			g.validating = append(g.validating, w.Rules...)
		}
	}
	for _, p := range policies {
		for _, r := range p.Spec.MatchConstraints.ResourceRules {
			g.validating = append(g.validating, r.RuleWithOperations)
		}
	}
	for _, configuration := range mutating.Items {
		for _, w := range configuration.Webhooks {
			g.mutating = append(g.mutating, w.Rules...)
		}
	}
	return g, nil
}

// boundPolicies are the ValidatingAdmissionPolicies that a binding puts in force.
func (c *Cluster) boundPolicies(ctx context.Context) ([]admissionregistrationv1.ValidatingAdmissionPolicy, error) {
	var policies admissionregistrationv1.ValidatingAdmissionPolicyList
	var bindings admissionregistrationv1.ValidatingAdmissionPolicyBindingList
	for _, list := range []client.ObjectList{&policies, &bindings} {
		err := c.Client.List(ctx, list)
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("list ValidatingAdmissionPolicies: %w", err)
		}
	}
	return slices.DeleteFunc(policies.Items, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool {
		names := func(b admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == p.Name
		}
		return p.Spec.MatchConstraints == nil || !slices.ContainsFunc(bindings.Items, names)
	}), nil
}

// about reports whether a rule names the group of resource and is about its objects when they are created or changed.
func about(resource schema.GroupResource) func(admissionregistrationv1.RuleWithOperations) bool {
	return func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(r.APIGroups, resource.Group) &&
			slices.ContainsFunc(r.Resources, func(name string) bool { return slices.Contains([]string{resource.Resource, "*", "*/*"}, name) }) &&
			slices.ContainsFunc(r.Operations, func(o admissionregistrationv1.OperationType) bool {
				return slices.Contains([]admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.OperationAll}, o)
			})
	}
}
