package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/internal/finding"
)

// admissionChecks look at webhooks that an upgrade brings.
var admissionChecks = []Check{
	{
		Code: "EDG009", Severity: finding.Info,
		Title:      "an upgrade adds a validating webhook for existing objects",
		Cause:      "existing objects were never validated by it: an object that it rejects can no longer be updated, not even to remove a finalizer",
		Fix:        "reject in an update only what the update changes; 'olmkit upgrade test' writes objects of the previous release during the upgrade",
		References: []string{"https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-rules"},
		edge:       newlyJudged,
	},
	{
		Code: "EDG011", Severity: finding.Warning,
		Title: "an upgrade changes the failurePolicy of a webhook from Ignore to Fail",
		Cause: "while no pod of the operator serves the webhook, the API server now rejects the requests that it let pass before; that is so while the upgrade replaces the pods, " +
			"and as long as the operator cannot start",
		Fix:        "keep Ignore, or run several replicas with a readiness probe that includes the webhook server, and exclude the operator's own namespace",
		References: []string{"https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#failure-policy"},
		edge:       failurePolicyRaised,
	},
	{
		Code: "EDG012", Severity: finding.Info,
		Title:      "an upgrade sends more requests to a webhook, or gives it less time",
		Cause:      "requests that passed without the webhook now depend on it, or fail when the webhook answers slowly",
		Fix:        "check that the webhook accepts these requests and answers in time",
		References: []string{"https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#webhook-configuration"},
		edge:       webhookWidened,
	},
}

// perWebhook calls look for each admission webhook that both ends of u have, with its path in the later one.
func perWebhook(u upgrade, look func(before, after v1alpha1.WebhookDescription, path []any)) {
	for _, before := range u.from.csv.Spec.WebhookDefinitions {
		if i := u.to.successor(before); i >= 0 && before.Type != v1alpha1.ConversionWebhook {
			look(before, u.to.csv.Spec.WebhookDefinitions[i], webhookPath(i))
		}
	}
}

// failurePolicy returns that of a webhook, with the default of admissionregistration.k8s.io/v1.
func failurePolicy(w v1alpha1.WebhookDescription) admissionv1.FailurePolicyType {
	return ptr.Deref(w.FailurePolicy, admissionv1.Fail)
}

func failurePolicyRaised(_ *subject, u upgrade, found func(hit)) {
	perWebhook(u, func(before, after v1alpha1.WebhookDescription, path []any) {
		if failurePolicy(before) == admissionv1.Ignore && failurePolicy(after) == admissionv1.Fail {
			found(hit{path: path, message: fmt.Sprintf("%s changes the failurePolicy of %s %s from Ignore to Fail", u.To, after.Type, after.GenerateName)})
		}
	})
}

// webhookWidened leaves namespaceSelectors alone: OLM makes them of the OperatorGroup, and a bundle has none.
func webhookWidened(_ *subject, u upgrade, found func(hit)) {
	const equivalent, seconds = admissionv1.Equivalent, int32(10) // the defaults of admissionregistration.k8s.io/v1
	perWebhook(u, func(before, after v1alpha1.WebhookDescription, path []any) {
		var how []string
		if ptr.Deref(before.MatchPolicy, equivalent) == admissionv1.Exact && ptr.Deref(after.MatchPolicy, equivalent) == equivalent {
			how = append(how, "matchPolicy Equivalent instead of Exact")
		}
		if dropped := droppedRequirements(before.ObjectSelector, after.ObjectSelector); len(dropped) > 0 {
			how = append(how, "no longer in objectSelector: "+strings.Join(dropped, ", "))
		}
		if old, next := ptr.Deref(before.TimeoutSeconds, seconds), ptr.Deref(after.TimeoutSeconds, seconds); next < old && failurePolicy(after) == admissionv1.Fail {
			how = append(how, fmt.Sprintf("timeoutSeconds %d instead of %d", next, old))
		}
		if len(how) > 0 {
			found(hit{path: path, message: fmt.Sprintf("%s makes %s %s stricter: %s", u.To, after.Type, after.GenerateName, strings.Join(how, "; "))})
		}
	})
}

// droppedRequirements returns the requirements of before that after does not make: objects that fail one of them, and that
// after selects, are new to the webhook.
func droppedRequirements(before, after *metav1.LabelSelector) []string {
	had, kept := requirements(before), requirements(after)
	var dropped []string
	for _, r := range had {
		if !slices.ContainsFunc(kept, func(k labels.Requirement) bool { return implies(k, r) }) {
			dropped = append(dropped, r.String())
		}
	}
	return dropped
}

// requirements returns those of a selector; none selects everything.
func requirements(s *metav1.LabelSelector) labels.Requirements {
	if s == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil
	}
	list, _ := selector.Requirements()
	return list
}

// implies reports whether labels that fit a also fit b.
func implies(a, b labels.Requirement) bool {
	if a.Key() != b.Key() {
		return false
	}
	oneOf := func(o selection.Operator) bool {
		return o == selection.In || o == selection.Equals || o == selection.DoubleEquals
	}
	switch {
	case a.Equal(b):
		return true
	case oneOf(a.Operator()) && b.Operator() == selection.Exists:
		return true
	case oneOf(a.Operator()) && oneOf(b.Operator()):
		return b.Values().IsSuperset(a.Values())
	case oneOf(a.Operator()) && b.Operator() == selection.NotIn:
		return !a.Values().HasAny(b.Values().UnsortedList()...)
	case a.Operator() == selection.NotIn && b.Operator() == selection.NotIn:
		return a.Values().IsSuperset(b.Values())
	case a.Operator() == selection.DoesNotExist && b.Operator() == selection.NotIn:
		return true
	}
	return false
}

// newlyJudged looks for CRDs of both releases, since of others users have no objects.
func newlyJudged(_ *subject, u upgrade, found func(hit)) {
	for _, c := range u.to.crds {
		if u.from.crd(c.Name) == nil {
			continue
		}
		if _, before := u.from.validates(c, admissionv1.Create, admissionv1.Update); before {
			continue
		}
		if by, after := u.to.validates(c, admissionv1.Update); after {
			found(hit{
				Subject: finding.Subject{Object: "CustomResourceDefinition/" + c.Name},
				message: fmt.Sprintf("%s adds validating webhook %s for updates of CRD %s, for which %s has none", u.To, by, c.Name, u.From),
			})
		}
	}
}

// validates returns the name of a validating webhook that is asked about objects of c at one of operations.
func (r *release) validates(c *crd, operations ...admissionv1.OperationType) (string, bool) {
	asked := func(rule admissionv1.RuleWithOperations) bool {
		return isAbout(rule, c.Spec) &&
			slices.ContainsFunc(rule.Operations, func(o admissionv1.OperationType) bool {
				return o == admissionv1.OperationAll || slices.Contains(operations, o)
			})
	}
	for _, w := range r.csv.Spec.WebhookDefinitions {
		if w.Type == v1alpha1.ValidatingAdmissionWebhook && slices.ContainsFunc(w.Rules, asked) {
			return w.GenerateName, true
		}
	}
	return "", false
}
