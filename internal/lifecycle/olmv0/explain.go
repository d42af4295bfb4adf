package olmv0

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Explain looks for the reason why the bundle called name does not get installed, from the
// catalog down to the operator's process, and returns what is nearest to the process. Events from before since are
// ignored.
func (c *Client) Explain(ctx context.Context, s lifecycle.Place, name string, since time.Time) (lifecycle.Explanation, error) {
	var source v1alpha1.CatalogSource
	if err := c.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Catalog}, &source); err != nil {
		return lifecycle.Explanation{}, fmt.Errorf("read CatalogSource %s: %w", s.Catalog, err)
	}
	var subscription v1alpha1.Subscription
	if err := c.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Package}, &subscription); err != nil {
		return lifecycle.Explanation{}, fmt.Errorf("read Subscription %s/%s: %w", s.Namespace, s.Package, err)
	}
	var plans v1alpha1.InstallPlanList
	if err := c.List(ctx, &plans, client.InNamespace(s.Namespace)); err != nil {
		return lifecycle.Explanation{}, fmt.Errorf("list InstallPlans in %s: %w", s.Namespace, err)
	}
	var csv v1alpha1.ClusterServiceVersion
	err := c.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, &csv)
	if client.IgnoreNotFound(err) != nil {
		return lifecycle.Explanation{}, fmt.Errorf("read ClusterServiceVersion %s: %w", name, err)
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(s.Namespace)); err != nil {
		return lifecycle.Explanation{}, fmt.Errorf("list pods in %s: %w", s.Namespace, err)
	}
	var deployments appsv1.DeploymentList
	if err := c.List(ctx, &deployments, client.InNamespace(s.Namespace)); err != nil {
		return lifecycle.Explanation{}, fmt.Errorf("list deployments in %s: %w", s.Namespace, err)
	}
	var events corev1.EventList
	if err := c.List(ctx, &events, client.InNamespace(s.Namespace)); err != nil {
		return lifecycle.Explanation{}, fmt.Errorf("list events in %s: %w", s.Namespace, err)
	}
	var e lifecycle.Explanation
	if err == nil {
		e = ExplainVersion(&csv, deployments.Items, pods.Items)
	} else if plan := PlanFor(plans.Items, name); plan != nil {
		e = ExplainPlan(plan)
	} else {
		e = explainResolution(&source, &subscription, name)
	}
	if plan := PlanFor(plans.Items, name); plan != nil {
		// A CSV that waits for its requirements waits for what the plan cannot do.
		waits := csv.Status.Phase == v1alpha1.CSVPhaseNone || csv.Status.Phase == v1alpha1.CSVPhasePending
		waits = waits && lastFailure(&csv) == nil
		if plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed || waits && plan.Status.Message != "" {
			e = ExplainPlan(plan)
		}
	}
	e.Event = lifecycle.NewestWarning(events.Items, e, name, since)
	if e.Container == "" {
		e.Decider = c.decider(ctx, e.Object)
	}
	return e, nil
}

// decider names the container of OLM that decides about object: olm-operator about ClusterServiceVersions, catalog-operator about
// what leads to one. It is "" where that does not run, or may not be seen.
func (c *Client) decider(ctx context.Context, object string) string {
	program := "catalog-operator"
	if strings.HasPrefix(object, kindCSV+"/") {
		program = "olm-operator"
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.MatchingLabels{"app": program}); err != nil || len(pods.Items) == 0 {
		return ""
	}
	return pods.Items[0].Namespace + "/" + pods.Items[0].Name + "/" + program
}

// PlanFor returns the newest of plans that installs the bundle called name, or nil.
func PlanFor(plans []v1alpha1.InstallPlan, name string) *v1alpha1.InstallPlan {
	var newest *v1alpha1.InstallPlan
	for i := range plans {
		p := &plans[i]
		if slices.Contains(p.Spec.ClusterServiceVersionNames, name) &&
			(newest == nil || p.Spec.Generation > newest.Spec.Generation) {
			newest = p
		}
	}
	return newest
}

func explainResolution(source *v1alpha1.CatalogSource, subscription *v1alpha1.Subscription, name string) lifecycle.Explanation {
	if !Connected(source) {
		return lifecycle.Explanation{
			Phase:  "reading the catalog",
			Object: "CatalogSource/" + source.Namespace + "/" + source.Name,
			Why:    connectionOf(source),
		}
	}
	e := lifecycle.Explanation{Phase: "choosing the upgrade", Object: "Subscription/" + subscription.Namespace + "/" + subscription.Name}
	for _, c := range subscription.Status.Conditions {
		bad := c.Type == v1alpha1.SubscriptionResolutionFailed || c.Type == v1alpha1.SubscriptionBundleUnpackFailed ||
			c.Type == v1alpha1.SubscriptionCatalogSourcesUnhealthy || c.Type == v1alpha1.SubscriptionInstallPlanFailed
		if bad && c.Status == corev1.ConditionTrue {
			e.Why = strings.TrimSpace(string(c.Type) + " " + c.Reason + ": " + c.Message)
			return e
		}
	}
	e.Why = fmt.Sprintf("state %s at %s, which has no upgrade to %s that OLM takes", orNone(string(subscription.Status.State)),
		orNone(subscription.Status.CurrentCSV), name)
	return e
}

// connectionOf says how OLM's connection to source is.
func connectionOf(source *v1alpha1.CatalogSource) string {
	state := "never tried to connect"
	if s := source.Status.GRPCConnectionState; s != nil {
		state = fmt.Sprintf("connection %s to %s", s.LastObservedState, s.Address)
	}
	return strings.TrimSpace(state + " " + source.Status.Message)
}

// unwritten says why OLM may not have written the status of an InstallPlan, which has the manifests of a bundle that has no image.
const unwritten = "OLM has not written its status; it cannot if the bundle's manifests are inline in the catalog and have more than 1 MiB: name the bundle's image in the catalog"

// ExplainPlan returns what plan's status says of why it is not complete.
func ExplainPlan(plan *v1alpha1.InstallPlan) lifecycle.Explanation {
	e := lifecycle.Explanation{
		Phase:  "InstallPlan " + string(plan.Status.Phase),
		Object: "InstallPlan/" + plan.Namespace + "/" + plan.Name,
	}
	for _, c := range plan.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Message != "" {
			e.Why = strings.TrimPrefix(string(c.Reason)+": "+c.Message, ": ")
		}
	}
	if e.Why == "" {
		e.Why = plan.Status.Message
	}
	if e.Why == "" {
		var waiting []string
		for _, s := range plan.Status.Plan {
			if s.Status != v1alpha1.StepStatusCreated && s.Status != v1alpha1.StepStatusPresent {
				waiting = append(waiting, fmt.Sprintf("%s %s is %s", s.Resource.Kind, s.Resource.Name, s.Status))
			}
		}
		e.Why = strings.Join(waiting, ", ")
	}
	if plan.Status.Phase == v1alpha1.InstallPlanPhaseNone && e.Why == "" {
		e.Phase, e.Why = "InstallPlan", unwritten
	}
	return e
}

// lastFailure returns the last time that the installation of csv failed, or nil. OLM then starts it again, by way of the
// phases Pending and InstallReady.
func lastFailure(csv *v1alpha1.ClusterServiceVersion) *v1alpha1.ClusterServiceVersionCondition {
	for i := len(csv.Status.Conditions) - 1; i >= 0; i-- {
		if c := &csv.Status.Conditions[i]; c.Phase == v1alpha1.CSVPhaseFailed {
			return c
		}
	}
	return nil
}

// ExplainVersion returns what csv, the deployments that it wants, or their pods say of why it does not run.
func ExplainVersion(csv *v1alpha1.ClusterServiceVersion, deployments []appsv1.Deployment, pods []corev1.Pod) lifecycle.Explanation {
	phase, reason, message := csv.Status.Phase, csv.Status.Reason, csv.Status.Message
	again := phase == v1alpha1.CSVPhasePending || phase == v1alpha1.CSVPhaseInstallReady
	if failed := lastFailure(csv); failed != nil && again {
		phase, reason, message = failed.Phase, failed.Reason, failed.Message
	}
	e := lifecycle.Explanation{
		Phase:  "CSV " + string(phase),
		Object: "ClusterServiceVersion/" + csv.Namespace + "/" + csv.Name,
		Why:    strings.TrimSpace(string(reason) + ": " + message),
	}
	if csv.Status.Reason == v1alpha1.CSVReasonRequirementsNotMet {
		if missing := MissingRequirements(csv); len(missing) > 0 {
			e.Why += ": " + strings.Join(missing, ", ")
			return e
		}
	}
	for _, wanted := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		i := slices.IndexFunc(deployments, func(d appsv1.Deployment) bool { return d.Name == wanted.Name })
		if i < 0 {
			continue
		}
		if t, ok := lifecycle.DeploymentTrouble(&deployments[i], pods); ok {
			t.Phase = e.Phase
			return t
		}
	}
	return e
}

// manyRequirements is how many requirements, and how many dependents of one, are quoted.
const manyRequirements = 5

// MissingRequirements quotes what csv's status says of the requirements that are not met: each by its kind and name, its
// status and its message, with those of its dependents.
func MissingRequirements(csv *v1alpha1.ClusterServiceVersion) []string {
	var missing []string
	for _, r := range csv.Status.RequirementStatus {
		if Met(r) {
			continue
		}
		var dependents []string
		for _, d := range r.Dependents {
			if d.Status != v1alpha1.DependentStatusReasonSatisfied {
				dependents = append(dependents, fmt.Sprintf("%s is %s: %s", d.Kind, d.Status, d.Message))
			}
		}
		what := fmt.Sprintf("%s %s is %s", r.Kind, r.Name, r.Status)
		if r.Message != "" {
			what += ": " + r.Message
		}
		if len(dependents) > 0 {
			what += " (" + strings.Join(firstOf(dependents, manyRequirements), "; ") + ")"
		}
		missing = append(missing, what)
	}
	slices.Sort(missing)
	return firstOf(missing, manyRequirements)
}

// Met reports whether OLM found what r asks for.
func Met(r v1alpha1.RequirementStatus) bool {
	return r.Status == v1alpha1.RequirementStatusReasonPresent || r.Status == "DeploymentFound"
}

// firstOf returns the first n of list, and how many more there are.
func firstOf(list []string, n int) []string {
	if len(list) <= n {
		return list
	}
	return append(slices.Clone(list[:n]), fmt.Sprintf("and %d more", len(list)-n))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
