package olmv1

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// definitions are those of the kinds by which users speak to OLM v1.
var definitions = []string{"clustercatalogs.olm.operatorframework.io", "clusterextensions.olm.operatorframework.io"}

// operators are the Deployments that OLM v1 consists of.
var operators = []string{"catalogd-controller-manager", "operator-controller-controller-manager"}

// Status looks at OLM v1's definitions, Deployments and catalogs. Without any of the definitions, OLM v1 is not installed.
func (c *Client) Status(ctx context.Context) (lifecycle.Status, error) {
	s := lifecycle.Status{Parts: []lifecycle.Part{}}
	for _, name := range definitions {
		p, err := lifecycle.DefinitionPart(ctx, c, name)
		if err != nil {
			return s, err
		}
		s.Installed = s.Installed || p.Why != lifecycle.Missing
		s.Parts = append(s.Parts, p)
	}
	if !s.Installed {
		return lifecycle.Status{Parts: []lifecycle.Part{}}, nil
	}
	s.Namespace = Namespace
	s.Version, _ = c.Version(ctx) // without it operator-controller is missing, which is told
	if err := c.addOperators(ctx, &s); err != nil {
		return s, err
	}
	var catalogs ClusterCatalogList
	if err := c.List(ctx, &catalogs); ignoreMissing(err) != nil {
		return s, fmt.Errorf("list ClusterCatalogs: %w", err)
	}
	for i := range catalogs.Items {
		s.Parts = append(s.Parts, lifecycle.Part{Object: describe(&catalogs.Items[i]), Why: catalogs.Items[i].Trouble()})
	}
	slices.SortFunc(s.Parts, func(a, b lifecycle.Part) int { return strings.Compare(a.Object, b.Object) })
	return s, nil
}

// addOperators adds how OLM v1's Deployments are. Distributions run them in namespaces of their own.
func (c *Client) addOperators(ctx context.Context, s *lifecycle.Status) error {
	var deployments appsv1.DeploymentList
	if err := c.List(ctx, &deployments); err != nil {
		return fmt.Errorf("look for OLM v1: %w", err)
	}
	for _, name := range operators {
		at := slices.IndexFunc(deployments.Items, func(d appsv1.Deployment) bool { return d.Name == name })
		if at < 0 {
			s.Parts = append(s.Parts, lifecycle.Part{Object: "Deployment/" + Namespace + "/" + name, Why: lifecycle.Missing})
			continue
		}
		d := &deployments.Items[at]
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.InNamespace(d.Namespace)); err != nil {
			return fmt.Errorf("list pods in %s: %w", d.Namespace, err)
		}
		s.Namespace = d.Namespace
		s.Parts = append(s.Parts, lifecycle.Part{Object: describe(d), Why: lifecycle.ProgramTrouble(d, pods.Items)})
	}
	return nil
}

// SwitchedOff reports whether somebody has made c unavailable.
func (c *ClusterCatalog) SwitchedOff() bool {
	s := meta.FindStatusCondition(c.Status.Conditions, conditionServing)
	return s != nil && s.Status != metav1.ConditionTrue && s.Reason == reasonSwitchedOff
}

// Serves reports whether catalogd serves some content of c, which need not be the newest.
func (c *ClusterCatalog) Serves() bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, conditionServing)
}

// Trouble says why catalogd does not serve what c names now, or "". A catalog that is switched off has none.
func (c *ClusterCatalog) Trouble() string {
	progressing := meta.FindStatusCondition(c.Status.Conditions, conditionProgressing)
	switch {
	case c.SwitchedOff():
		return ""
	case !c.Serves():
		return "catalogd does not serve it: " + progressOf(c.Status.Conditions)
	case progressing != nil && progressing.Reason != reasonSucceeded:
		return "catalogd serves what it read before, and cannot read it again: " + progressOf(c.Status.Conditions)
	}
	return ""
}

// Selects reports whether e chooses from c. An invalid selector chooses nothing.
func (e *ClusterExtension) Selects(c *ClusterCatalog) bool {
	if e.Spec.Source.Catalog == nil || e.Spec.Source.Catalog.Selector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(e.Spec.Source.Catalog.Selector)
	return err == nil && selector.Matches(labels.Set(c.Labels))
}

// Refused is what OLM v1 says against the newest of what is wanted of e, or "".
func (e *ClusterExtension) Refused() string {
	progressing := meta.FindStatusCondition(e.Status.Conditions, conditionProgressing)
	stall := refusal(e)
	if stall == nil || progressing.Reason == reasonRollingOut {
		return ""
	}
	// Where it cannot even tell what is installed, it says there why.
	if installed := meta.FindStatusCondition(e.Status.Conditions, conditionInstalled); installed != nil && installed.Status == metav1.ConditionUnknown {
		return cmp.Or(installed.Message, stall.Said)
	}
	return stall.Said
}

// Settled reports whether OLM v1 has applied all that is wanted of e.
func (e *ClusterExtension) Settled() bool {
	return e.Status.Install != nil && applied(e, e.Status.Install.Bundle.Name)
}

// Deprecation is what the catalog says against e, or "".
func (e *ClusterExtension) Deprecation() string {
	if c := meta.FindStatusCondition(e.Status.Conditions, conditionDeprecated); c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	return ""
}

// MadeFor is the label selector of what OLM v1 makes for the ClusterExtension called name.
func MadeFor(name string) client.MatchingLabels {
	return client.MatchingLabels{ownerKindLabel: KindExtension, ownerNameLabel: name}
}
