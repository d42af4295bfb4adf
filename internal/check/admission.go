package check

import (
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"

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
		run:        perEdge(newlyJudged),
	},
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
