package olmv1

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// refusalGrace is how long OLM v1 must repeat a refusal until it counts. It goes on trying for ever, at ever longer intervals, also
// where what it refuses never changes.
const refusalGrace = 10 * time.Second

// State says how far the installation of r came. OLM v1 is done when it has applied the bundle's objects; whether they run is told
// by the Deployments.
func (c *Client) State(ctx context.Context, p lifecycle.Place, r *lifecycle.Release, seen lifecycle.View) (lifecycle.State, error) {
	var o ClusterExtension
	if err := seen.Get(ctx, client.ObjectKey{Name: p.Package}, &o); err != nil {
		return lifecycle.State{}, client.IgnoreNotFound(err)
	}
	if !applied(&o, r.Name) {
		return lifecycle.State{Stall: refusal(&o)}, nil
	}
	for _, name := range r.Deployments() {
		var d appsv1.Deployment
		if err := seen.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: name}, &d); err != nil {
			return lifecycle.State{Stage: lifecycle.Installing}, client.IgnoreNotFound(err)
		}
		if d.Status.ObservedGeneration != d.Generation || d.Status.UnavailableReplicas > 0 || d.Status.UpdatedReplicas < d.Status.Replicas {
			return lifecycle.State{Stage: lifecycle.Installing}, nil
		}
	}
	return lifecycle.State{Stage: lifecycle.Installed}, nil
}

// applied reports whether o has all objects of the bundle called name, and the controller has seen the newest of what is wanted.
func applied(o *ClusterExtension, name string) bool {
	progressing := meta.FindStatusCondition(o.Status.Conditions, conditionProgressing)
	return o.Status.Install != nil && o.Status.Install.Bundle.Name == name &&
		progressing != nil && progressing.ObservedGeneration == o.Generation && progressing.Reason == reasonSucceeded
}

// refusal is what OLM v1 says against the newest of what is wanted of o, or nil.
func refusal(o *ClusterExtension) *lifecycle.Stall {
	progressing := meta.FindStatusCondition(o.Status.Conditions, conditionProgressing)
	if progressing == nil || progressing.ObservedGeneration != o.Generation || progressing.Reason == reasonSucceeded {
		return nil
	}
	stall := &lifecycle.Stall{Reason: RefusalReason(progressing.Message), Said: progressing.Message, Grace: refusalGrace}
	if progressing.Status == metav1.ConditionFalse { // it does not try again
		stall.Grace = 0
	}
	return stall
}

// RefusalReason tells refusals apart. The texts are those of operator-controller v1.10.0: internal/operator-controller/resolve/catalog.go
// and validation.go, controllers/clusterextension_controller.go, rukpak/preflights/crdupgradesafety, and crdify's validation of stored versions.
func RefusalReason(said string) lifecycle.Reason {
	switch {
	case strings.Contains(said, "stored version") && strings.Contains(said, "removed"):
		return lifecycle.StoredVersionRefused
	case strings.Contains(said, "validating upgrade for CRD"):
		return lifecycle.UnsafeDefinition
	case strings.HasPrefix(said, "error for resolved bundle"):
		return lifecycle.NotApplied
	case strings.HasPrefix(said, "validating bundle"):
		return lifecycle.Unmet
	}
	return lifecycle.NotChosen
}

// Explain says why the bundle called name does not get installed: by the pods of its Deployments if it is applied, else in the
// words of the ClusterExtension, or of the ClusterCatalog that it waits for.
func (c *Client) Explain(ctx context.Context, p lifecycle.Place, name string, since time.Time) (lifecycle.Explanation, error) {
	var o ClusterExtension
	if err := c.Get(ctx, client.ObjectKey{Name: p.Package}, &o); client.IgnoreNotFound(err) != nil {
		return lifecycle.Explanation{}, fmt.Errorf("read ClusterExtension %s: %w", p.Package, err)
	}
	var source ClusterCatalog
	if err := c.Get(ctx, client.ObjectKey{Name: p.Catalog}, &source); client.IgnoreNotFound(err) != nil {
		return lifecycle.Explanation{}, fmt.Errorf("read ClusterCatalog %s: %w", p.Catalog, err)
	}
	var events corev1.EventList
	if err := c.List(ctx, &events, client.InNamespace(p.Namespace)); err != nil {
		return lifecycle.Explanation{}, fmt.Errorf("list events in %s: %w", p.Namespace, err)
	}
	e := lifecycle.Explanation{Phase: "ClusterExtension", Object: KindExtension + "/" + p.Package, Why: progressOf(o.Status.Conditions)}
	switch {
	case applied(&o, name):
		e.Phase = "rolling out"
		if t, found, err := c.trouble(ctx, p, name); err != nil {
			return e, err
		} else if found {
			e.Object, e.Why, e.Container = t.Object, t.Why, t.Container
		}
	case !serving(&source):
		e = lifecycle.Explanation{Phase: "reading the catalog", Object: KindCatalog + "/" + p.Catalog, Why: progressOf(source.Status.Conditions)}
	}
	e.Event = lifecycle.NewestWarning(events.Items, e, name, since)
	return e, nil
}

// trouble says what is wrong with a Deployment of the bundle called name, or its pods.
func (c *Client) trouble(ctx context.Context, p lifecycle.Place, name string) (lifecycle.Explanation, bool, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(p.Namespace)); err != nil {
		return lifecycle.Explanation{}, false, fmt.Errorf("list pods in %s: %w", p.Namespace, err)
	}
	b := c.Package.Bundle(name)
	if b == nil {
		return lifecycle.Explanation{}, false, nil
	}
	csv, err := b.CSV()
	if err != nil {
		return lifecycle.Explanation{}, false, err
	}
	for _, wanted := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		var d appsv1.Deployment
		if err := c.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: wanted.Name}, &d); err != nil {
			return lifecycle.Explanation{Object: "Deployment/" + p.Namespace + "/" + wanted.Name, Why: err.Error()}, true, client.IgnoreNotFound(err)
		}
		for _, look := range []func(*appsv1.Deployment, []corev1.Pod) (lifecycle.Explanation, bool){lifecycle.DeploymentTrouble, lifecycle.Restarted} {
			if t, found := look(&d, pods.Items); found {
				return t, true, nil
			}
		}
	}
	return lifecycle.Explanation{}, false, nil
}

// progressOf quotes the condition Progressing.
func progressOf(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, conditionProgressing)
	if c == nil {
		return "no condition " + conditionProgressing
	}
	return c.Reason + ": " + c.Message
}

// Warnings returns none: OLM v1 writes no events.
func (c *Client) Warnings(context.Context, lifecycle.Place, time.Time) ([]lifecycle.Warning, error) {
	return nil, nil
}

// Leftovers returns none: what a bundle no longer has, an upgrade deletes.
func (c *Client) Leftovers(context.Context, lifecycle.Place) ([]string, error) { return nil, nil }

// ObjectOf names the ClusterExtension.
func (c *Client) ObjectOf(string) string { return KindExtension + "/" + c.Package.Name }

// Decides reports whether object is a ClusterExtension.
func (c *Client) Decides(object string) bool { return strings.HasPrefix(object, KindExtension+"/") }
