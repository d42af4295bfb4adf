package olmv0

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// WithoutRights returns the first of the namespaces that csv's operator serves, beside its own, in which it does not have the rights
// that its permissions give it; "" if there is none, or csv is not installed. It is read only from csv whose old version is gone.
//
// OLM copies Roles to these namespaces, and leaves that out while the ServiceAccount has the rights there. It has them from the old
// version's copies, which go with that, and OLM looks again only when the ClusterServiceVersion changes (ensureCSVsInNamespaces in
// pkg/controller/operators/olm/operatorgroup.go of operator-lifecycle-manager v0.46.0). Who may not look is told of none.
func (c *Client) WithoutRights(ctx context.Context, csv *v1alpha1.ClusterServiceVersion) (string, error) {
	permissions := csv.Spec.InstallStrategy.StrategySpec.Permissions
	if csv.Status.Phase != v1alpha1.CSVPhaseSucceeded || len(permissions) == 0 {
		return "", nil
	}
	for namespace := range strings.SplitSeq(csv.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey], ",") {
		if namespace == "" || namespace == csv.Namespace {
			continue
		}
		var copies rbacv1.RoleBindingList
		if err := c.List(ctx, &copies, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.CopiedLabelKey: csv.Namespace}); err != nil {
			return "", ignoreForbidden(fmt.Errorf("list RoleBindings in %s: %w", namespace, err))
		}
		own := slices.ContainsFunc(copies.Items, func(b rbacv1.RoleBinding) bool { return b.Labels[OwnerLabel] == csv.Name })
		if !own && len(copies.Items) > 0 {
			return namespace, nil // as long as the old version's are there, nobody can tell
		}
		for _, permission := range permissions {
			if allowed, err := c.allowed(ctx, csv.Namespace, permission, namespace); !allowed || err != nil {
				return namespace, err
			}
		}
	}
	return "", nil
}

// allowed reports whether a ServiceAccount may do in a namespace the first thing that a permission allows it there.
func (c *Client) allowed(ctx context.Context, from string, permission v1alpha1.StrategyDeploymentPermissions, namespace string) (bool, error) {
	for _, rule := range permission.Rules {
		if len(rule.Verbs) == 0 || len(rule.APIGroups) == 0 || len(rule.Resources) == 0 {
			continue
		}
		resource, sub, _ := strings.Cut(rule.Resources[0], "/")
		review := lifecycle.Review(from, permission.ServiceAccountName, authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: sub,
		})
		if len(rule.ResourceNames) > 0 {
			review.Spec.ResourceAttributes.Name = rule.ResourceNames[0]
		}
		if err := c.Create(ctx, review); err != nil {
			return true, ignoreForbidden(fmt.Errorf("ask for the rights of %s in %s: %w", permission.ServiceAccountName, namespace, err))
		}
		return review.Status.Allowed, nil
	}
	return true, nil
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
