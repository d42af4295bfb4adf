package olmv0

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Kinds of OLM's events.
const (
	kindCatalog = v1alpha1.CatalogSourceKind
	kindPlan    = v1alpha1.InstallPlanKind
	kindCSV     = v1alpha1.ClusterServiceVersionKind
)

// Kinds are those through which OLM installs.
func (c *Client) Kinds() []client.Object {
	return []client.Object{&v1alpha1.CatalogSource{}, &v1alpha1.Subscription{}, &v1alpha1.InstallPlan{}, &v1alpha1.ClusterServiceVersion{}}
}

// Events says what is worth noting of them.
func (c *Client) Events(before, now any, gone bool) []lifecycle.Event {
	var e lifecycle.Event
	switch n := now.(type) {
	case *v1alpha1.CatalogSource:
		e = lifecycle.Event{Kind: kindCatalog, Name: n.Name, State: "connecting"}
		if s := n.Status.GRPCConnectionState; s != nil {
			e.For = s.Address
			e.Reason = s.LastObservedState
		}
		if Connected(n) {
			e.State = lifecycle.StateReady
		}
		if b, ok := before.(*v1alpha1.CatalogSource); ok && Connected(b) == Connected(n) && b.Spec.Address == n.Spec.Address {
			return nil
		}
	case *v1alpha1.InstallPlan:
		e = lifecycle.Event{Kind: kindPlan, Name: n.Name, State: string(n.Status.Phase), For: strings.Join(n.Spec.ClusterServiceVersionNames, ",")}
		if b, ok := before.(*v1alpha1.InstallPlan); ok && b.Status.Phase == n.Status.Phase {
			return nil
		}
	case *v1alpha1.ClusterServiceVersion:
		if n.IsCopied() {
			return nil
		}
		e = lifecycle.Event{Kind: kindCSV, Name: n.Name, State: string(n.Status.Phase), Reason: string(n.Status.Reason) + ": " + n.Status.Message}
		if b, ok := before.(*v1alpha1.ClusterServiceVersion); ok && b.Status.Phase == n.Status.Phase && b.Status.Reason == n.Status.Reason {
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

// Milestones are those of an InstallPlan and of a ClusterServiceVersion. A watch that is interrupted sees only the last of the
// phases that passed meanwhile: it stands for those that lead to it.
func (c *Client) Milestones(from, to string) []lifecycle.Milestone {
	csv := func(name string, phases ...v1alpha1.ClusterServiceVersionPhase) func(lifecycle.Event) bool {
		return func(e lifecycle.Event) bool {
			return e.Kind == kindCSV && e.Name == name && slices.Contains(phases, v1alpha1.ClusterServiceVersionPhase(e.State))
		}
	}
	plan := func(e lifecycle.Event) bool { return e.Kind == kindPlan && e.For == to }
	list := []lifecycle.Milestone{
		{Name: "catalog noticed", Is: func(e lifecycle.Event) bool { return e.Kind == kindCatalog && e.State == lifecycle.StateReady }},
		{Name: "install plan created", Is: plan},
		{Name: "CSV created", Is: func(e lifecycle.Event) bool {
			return e.Kind == kindCSV && e.Name == to && e.State != lifecycle.StateGone
		}},
		{Name: "CRDs written", Is: func(e lifecycle.Event) bool { return e.Kind == lifecycle.KindCRD }},
		{Name: "install plan complete", Is: func(e lifecycle.Event) bool { return plan(e) && e.State == string(v1alpha1.InstallPlanPhaseComplete) }},
		{Name: "requirements met", Is: csv(to, v1alpha1.CSVPhaseInstallReady, v1alpha1.CSVPhaseInstalling, v1alpha1.CSVPhaseSucceeded)},
		{Name: "installing", Is: csv(to, v1alpha1.CSVPhaseInstalling, v1alpha1.CSVPhaseSucceeded)},
		{Name: "succeeded", Is: csv(to, v1alpha1.CSVPhaseSucceeded), Last: true},
	}
	if from != "" {
		list = append(list, lifecycle.Milestone{Name: "old CSV gone", Is: csv(from, lifecycle.StateGone)})
	}
	return list
}

// Setbacks lists the reasons for which OLM took the ClusterServiceVersion of bundle back from what it had installed.
func (c *Client) Setbacks(timeline []lifecycle.Event, bundle string) (again int, reasons []string) {
	for _, e := range timeline {
		if e.Kind != kindCSV || e.Name != bundle {
			continue
		}
		if e.State == string(v1alpha1.CSVPhaseInstalling) {
			again++
		}
		back := strings.HasPrefix(e.Reason, string(v1alpha1.CSVReasonNeedsReinstall)) || strings.HasPrefix(e.Reason, string(v1alpha1.CSVReasonNeedsCertRotation)) ||
			strings.HasPrefix(e.Reason, string(v1alpha1.CSVReasonComponentUnhealthy))
		if back && !slices.Contains(reasons, e.Reason) {
			reasons = append(reasons, e.Reason)
		}
	}
	return again, reasons
}

// Actor names OLM's two operators, which share an account.
func (c *Client) Actor(program string) string {
	switch program {
	case "catalog":
		return "OLM's catalog operator"
	case "olm":
		return "OLM's olm-operator"
	}
	return ""
}

// ObjectOf names the ClusterServiceVersion of bundle.
func (c *Client) ObjectOf(bundle string) string { return kindCSV + "/" + bundle }

// Decides reports whether object is a ClusterServiceVersion or an InstallPlan.
func (c *Client) Decides(object string) bool {
	return strings.HasPrefix(object, kindCSV+"/") || strings.HasPrefix(object, kindPlan+"/")
}

// conditionVariable tells each container that OLM deploys of which ClusterServiceVersion it is: pkg/controller/install/deployment.go
// of operator-lifecycle-manager v0.46.0.
const conditionVariable = "OPERATOR_CONDITION_NAME"

// BundleOf names the ClusterServiceVersion for which OLM runs the container.
func (c *Client) BundleOf(container *corev1.Container) string {
	for _, v := range container.Env {
		if v.Name == conditionVariable {
			return v.Value
		}
	}
	return ""
}

// Made reports whether OLM made o for bundle.
func (c *Client) Made(o metav1.Object, bundle string) bool {
	return o.GetLabels()[OwnerLabel] == bundle || slices.ContainsFunc(o.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return owner.Kind == kindCSV && owner.Name == bundle
	})
}

// Bookkeeping tells the labels and annotations in which OLM keeps account of its own.
func (c *Client) Bookkeeping(key string) bool {
	return strings.HasPrefix(key, "olm.") || strings.HasPrefix(key, "operatorframework.io/") || strings.HasPrefix(key, "operators.coreos.com/") || key == "olmcahash" || key == WokenLabel
}
