package olmv1

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Labels of what OLM v1 makes for a ClusterExtension.
const (
	ownerKindLabel = "olm.operatorframework.io/owner-kind"
	ownerNameLabel = "olm.operatorframework.io/owner-name"
)

// stateApplied is of a ClusterExtension all of whose objects are applied.
const stateApplied = "applied"

// Kinds are those through which OLM v1 installs.
func (c *Client) Kinds() []client.Object {
	return []client.Object{&ClusterCatalog{}, &ClusterExtension{}}
}

// Events says what is worth noting of them.
func (c *Client) Events(before, now any, gone bool) []lifecycle.Event {
	var e lifecycle.Event
	switch n := now.(type) {
	case *ClusterCatalog:
		e = catalogEvent(n)
		if b, ok := before.(*ClusterCatalog); ok && catalogEvent(b) == e {
			return nil
		}
	case *ClusterExtension:
		e = extensionEvent(n)
		if b, ok := before.(*ClusterExtension); ok && extensionEvent(b) == e {
			return nil
		}
	default:
		return nil
	}
	if gone {
		e.State, e.Reason = lifecycle.StateGone, ""
	}
	return []lifecycle.Event{e}
}

func catalogEvent(c *ClusterCatalog) lifecycle.Event {
	e := lifecycle.Event{Kind: KindCatalog, Name: c.Name, State: "unpacking", Reason: progressOf(c.Status.Conditions)}
	if c.Spec.Source.Image != nil {
		e.For = c.Spec.Source.Image.Ref
	}
	if serving(c) {
		e.State, e.Reason = lifecycle.StateReady, ""
	}
	return e
}

func extensionEvent(x *ClusterExtension) lifecycle.Event {
	e := lifecycle.Event{Kind: KindExtension, Name: x.Name, State: "requested"}
	if x.Spec.Source.Catalog != nil {
		e.For = x.Spec.Source.Catalog.Version
	}
	progressing := meta.FindStatusCondition(x.Status.Conditions, conditionProgressing)
	if progressing == nil || progressing.ObservedGeneration != x.Generation {
		return e
	}
	e.State, e.Reason = progressing.Reason, progressing.Message
	if x.Status.Install != nil && applied(x, x.Status.Install.Bundle.Name) {
		e.State, e.Reason, e.For = stateApplied, "", x.Status.Install.Bundle.Name
	}
	return e
}

// Milestones are those of a ClusterCatalog, of a ClusterExtension, and of the pods of the bundle's Deployments, which OLM v1 does
// not wait for.
func (c *Client) Milestones(_, to string) []lifecycle.Milestone {
	deployments := c.deployments(to)
	rolledOut := func(e lifecycle.Event) bool {
		return e.Kind == "Pod" && (e.State == lifecycle.StateReady || e.State == lifecycle.StateGone) &&
			slices.ContainsFunc(deployments, func(d string) bool { return strings.HasPrefix(e.Name, d+"-") })
	}
	return []lifecycle.Milestone{
		{Name: "catalog served", Is: func(e lifecycle.Event) bool { return e.Kind == KindCatalog && e.State == lifecycle.StateReady }},
		{Name: "CRDs written", Is: func(e lifecycle.Event) bool { return e.Kind == lifecycle.KindCRD }},
		{Name: "applied", Is: func(e lifecycle.Event) bool { return e.Kind == KindExtension && e.State == stateApplied && e.For == to }},
		{Name: "rolled out", Last: true, Is: rolledOut},
	}
}

// deployments are the names of those of the bundle called name.
func (c *Client) deployments(name string) []string {
	if c.Package == nil { // it is only asked which milestones there are
		return nil
	}
	b := c.Package.Bundle(name)
	if b == nil {
		return nil
	}
	csv, err := b.CSV()
	if err != nil {
		return nil
	}
	var names []string
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		names = append(names, d.Name)
	}
	return names
}

// Setbacks returns none: OLM v1 does not look at what it applied.
func (c *Client) Setbacks([]lifecycle.Event, string) (again int, reasons []string) { return 0, nil }

// Actor names OLM v1's two programs.
func (c *Client) Actor(program string) string {
	if program == programCatalogd || program == programController {
		return "OLM v1's " + program
	}
	return ""
}

// BundleOf names the one bundle of the package that runs the container's image; OLM v1 itself marks no containers.
func (c *Client) BundleOf(container *corev1.Container) string {
	c.read.Do(func() { c.byImage = bundlesByImage(c.Package) })
	return c.byImage[container.Image]
}

// bundlesByImage names the bundles of p by the images of their Deployments, "" where several run the same.
func bundlesByImage(p *catalog.Package) map[string]string {
	found := map[string]string{}
	for _, b := range p.Bundles {
		csv, err := b.CSV()
		if err != nil {
			continue
		}
		for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			for _, container := range d.Spec.Template.Spec.Containers {
				if other, known := found[container.Image]; known && other != b.Name {
					found[container.Image] = ""
				} else {
					found[container.Image] = b.Name
				}
			}
		}
	}
	return found
}

// Made reports whether OLM v1 made o for the package.
func (c *Client) Made(o metav1.Object, _ string) bool {
	return o.GetLabels()[ownerKindLabel] == KindExtension && o.GetLabels()[ownerNameLabel] == c.Package.Name
}

// Bookkeeping tells the labels and annotations in which OLM v1, Helm, which applies for it, and cert-manager keep account.
func (c *Client) Bookkeeping(key string) bool {
	for _, prefix := range []string{"olm.operatorframework.io/", "meta.helm.sh/", "cert-manager.io/", "operatorframework.io/", "operators.coreos.com/", "olm."} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
