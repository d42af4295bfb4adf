package lifecycle

import authorizationv1 "k8s.io/api/authorization/v1"

// Review asks whether a ServiceAccount, with the groups that the API server puts it in, may do what a says.
func Review(namespace, account string, a authorizationv1.ResourceAttributes) *authorizationv1.SubjectAccessReview {
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + namespace + ":" + account,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: &a,
	}}
}
