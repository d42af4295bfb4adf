package cli

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/rbac"
)

// reducer returns what takes from service accounts the rights that, by a report, the newest release in it never used.
func (s *session) reducer(ctx context.Context, file string) (func(string, []rbacv1.PolicyRule, []rbacv1.PolicyRule) ([]rbacv1.PolicyRule, []rbacv1.PolicyRule, []string), error) {
	r, err := s.readReport(ctx, file)
	if err != nil {
		return nil, err
	}
	release, accounts := rbac.Of(r)
	if release == "" {
		return nil, hint.With(usagef("--rbac-from %s: the report does not say which rights were used", file),
			"make it with 'olmkit upgrade test --image REF=PROGRAM --report json=FILE', on the embedded cluster or kind: the operator has to run, and the cluster has to keep an audit log")
	}
	return func(account string, cluster, namespaced []rbacv1.PolicyRule) ([]rbacv1.PolicyRule, []rbacv1.PolicyRule, []string) {
		measured, known := accounts[account]
		if !known {
			return cluster, namespaced, []string{fmt.Sprintf("ServiceAccount %s keeps all of its rights: %s has no such account", account, release)}
		}
		leastCluster, leastNamespaced, dropped := rbac.Least(measured, cluster, namespaced)
		var notes []string
		for _, d := range dropped {
			notes = append(notes, fmt.Sprintf("ServiceAccount %s: left out of the rights in the %s, as no release up to %s used it: %s", account, d.Scope, release, d))
		}
		for _, k := range measured.Kept {
			notes = append(notes, fmt.Sprintf("ServiceAccount %s: kept in the %s, as nothing can be told of its use: %s", account, k.Scope, k))
		}
		return leastCluster, leastNamespaced, notes
	}, nil
}
