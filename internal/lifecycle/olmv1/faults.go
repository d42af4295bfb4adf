package olmv1

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Faults are those of OLM v1's own programs.
func (c *Client) Faults() []lifecycle.Fault {
	return []lifecycle.Fault{
		{Name: "kill-operator-controller", Phase: lifecycle.BeforeHop, Shared: true,
			Doc: "the pods of OLM v1's operator-controller are deleted without a grace period"},
		{Name: "kill-catalogd", Phase: lifecycle.BeforeHop, Shared: true,
			Doc: "the pods of OLM v1's catalogd are deleted without a grace period, and with them the catalogs that they unpacked"},
	}
}

// phases are those of a hop under OLM v1 that are the nearest to others' phases.
var phases = map[string]string{"installing": "applied", "succeeded": "rolled-out", "catalog-noticed": lifecycle.BeforeHop}

// FaultPhase knows no catalog without a release, since a ClusterExtension pins what it wants, and no two releases at once.
func (c *Client) FaultPhase(name, usual string) string {
	if name == "catalog-changed" || name == "two-hops" {
		return ""
	}
	return cmp.Or(phases[usual], usual)
}

// Inject kills one of the programs.
func (c *Client) Inject(ctx context.Context, name string, _ lifecycle.Hop) (held func(context.Context) (bool, error), err error) {
	program := strings.TrimPrefix(name, "kill-")
	return nil, lifecycle.KillProgram(ctx, c.WithWatch, program, client.InNamespace(Namespace), client.MatchingLabels{"app.kubernetes.io/name": program})
}

// Certificates lists the Secrets with the certificates of the webhooks in the place.
func (c *Client) Certificates(ctx context.Context, p lifecycle.Place) ([]corev1.Secret, error) {
	var secrets corev1.SecretList
	if err := c.List(ctx, &secrets, client.InNamespace(p.Namespace)); err != nil {
		return nil, fmt.Errorf("list Secrets in %s: %w", p.Namespace, err)
	}
	return slices.DeleteFunc(secrets.Items, func(s corev1.Secret) bool {
		return s.Type != corev1.SecretTypeTLS || !strings.HasSuffix(s.Name, "-service-cert")
	}), nil
}

// AuthorityKey is cert-manager's name for it.
func (c *Client) AuthorityKey() string { return "ca.crt" }
