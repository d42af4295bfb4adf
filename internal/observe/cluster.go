// Package observe sees what happens on a cluster while a package is upgraded: it watches the objects of the lifecycle manager and
// the operator, reads the audit log, logs and operands, and reads and writes custom resources as users would. It says what it
// saw, and does not judge.
package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Cluster is a cluster on which a package is walked, and what of the package stands on it.
type Cluster struct {
	Provider cluster.Cluster // what runs the cluster
	Manager  lifecycle.Manager
	Client   client.WithWatch
	Dynamic  dynamic.Interface
	Watcher  *Watcher

	Place     lifecycle.Place // where the package is installed
	Objects   []*Object       // that were made of its kinds
	Others    []*Object       // that were made, too, and are not looked at; what is named after them is not named after Objects
	CRDs      []string        // that its releases brought, sorted
	Simulated []string        // images of its releases whose pods were simulated

	Made map[string]Operand // the operands before the upgrade that is under way, or was the last
}

// Brings notes that r's CRDs come to the cluster.
func (c *Cluster) Brings(r *lifecycle.Release) {
	for _, d := range r.CRDs {
		c.CRDs = append(c.CRDs, d.Name)
	}
	slices.Sort(c.CRDs)
	c.CRDs = slices.Compact(c.CRDs)
}

// SamplesNamespace is where samples go that name no namespace.
const SamplesNamespace = "olmkit-samples"

// ObjectNamespaces are where a sample goes that names the namespace wanted, or none: one each into all that the operator serves,
// or into the one wanted if it serves every namespace.
func (c *Cluster) ObjectNamespaces(wanted string) []string {
	switch {
	case len(c.Place.Targets) > 0:
		return c.Place.Targets
	case c.Place.Mode != lifecycle.AllNamespaces:
		return []string{c.Place.Namespace}
	}
	return []string{cmp.Or(wanted, SamplesNamespace)}
}

// SimulatedOf returns those of r's images that could not be had.
func (c *Cluster) SimulatedOf(ctx context.Context, releases ...*lifecycle.Release) ([]string, error) {
	all, err := c.Provider.Simulated(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask which images were simulated: %w", err)
	}
	var ours []string
	for _, r := range releases {
		for _, image := range r.Images() {
			if slices.Contains(all, image) {
				ours = append(ours, image)
			}
		}
	}
	slices.Sort(ours)
	return slices.Compact(ours), nil
}

// FinalizersOf says which finalizers o has, where they can be read.
func (c *Cluster) FinalizersOf(ctx context.Context, o *Object) string {
	now, err := c.current(ctx, o)
	if err != nil || len(now.GetFinalizers()) == 0 {
		return ""
	}
	return " (" + strings.Join(now.GetFinalizers(), ", ") + ")"
}

// Milestones finds those of the hop between the bundles called from ("" for none) and to.
func (c *Cluster) Milestones(timeline []lifecycle.Event, published time.Time, from, to string) []Milestone {
	return Milestones(c.Manager.Milestones(from, to), timeline, published)
}

// RolledOut reports whether r's Deployments have the pods that they want, and no others.
func (c *Cluster) RolledOut(ctx context.Context, r *lifecycle.Release) (bool, error) {
	for _, name := range r.Deployments() {
		var d appsv1.Deployment
		if err := c.Watcher.Get(ctx, client.ObjectKey{Namespace: c.Place.Namespace, Name: name}, &d); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		wanted := int32(1)
		if d.Spec.Replicas != nil {
			wanted = *d.Spec.Replicas
		}
		s := d.Status
		if s.ObservedGeneration != d.Generation || s.Replicas != wanted || s.UpdatedReplicas != wanted || s.AvailableReplicas != wanted {
			return false, nil
		}
	}
	return true, nil
}

// IsInstalled reports whether r runs, alone.
func (c *Cluster) IsInstalled(ctx context.Context, r *lifecycle.Release, state lifecycle.State) (bool, error) {
	if state.Stage != lifecycle.Installed {
		return false, nil
	}
	if rolledOut, err := c.RolledOut(ctx, r); err != nil || !rolledOut {
		return false, err
	}
	for _, owned := range r.CRDs {
		var d apiextensionsv1.CustomResourceDefinition
		if err := c.Watcher.Get(ctx, client.ObjectKey{Name: owned.Name}, &d); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if !apihelpers.IsCRDConditionTrue(&d, apiextensionsv1.Established) {
			return false, nil
		}
	}
	return true, nil
}

// listPage is how many objects are listed at once.
const listPage = 500

// ListAll reads all objects of o's kind in a version, by namespace and name.
func (c *Cluster) ListAll(ctx context.Context, o *Object, version string) (map[string]*unstructured.Unstructured, error) {
	all := map[string]*unstructured.Unstructured{}
	token := ""
	for {
		var list *unstructured.UnstructuredList
		err := Retry(ctx, Refused, func() (err error) {
			list, err = c.Dynamic.Resource(o.Resource.WithVersion(version)).List(ctx, metav1.ListOptions{Limit: listPage, Continue: token})
			return err
		})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			item := &list.Items[i]
			item.SetManagedFields(nil)
			all[item.GetNamespace()+"/"+item.GetName()] = item
		}
		if token = list.GetContinue(); token == "" {
			return all, nil
		}
	}
}

// AwaitSuccess waits, though no longer than limit, until what observer tries works: an outage counts as over with a success.
// What only runs out of time by then is tried once more with more time: a machine that has much to do is slow, too.
func (c *Cluster) AwaitSuccess(ctx context.Context, observer *Probing, limit time.Duration) error {
	late := func(a Attempt) bool { return OutOfTime(a.Err) }
	err := c.Watcher.AtMost(ctx, limit, func() (bool, error) { return len(observer.failing(c.IsServed)) == 0, nil })
	if err != nil || !slices.ContainsFunc(observer.failing(c.IsServed), late) {
		return err
	}
	observer.lenient.Store(true)
	return c.Watcher.AtMost(ctx, ProbeLimit+webhookTimeout, func() (bool, error) {
		return !slices.ContainsFunc(observer.failing(c.IsServed), late), nil
	})
}

// IsServed tells whether the cluster serves version of crd now.
func (c *Cluster) IsServed(crd, version string) bool {
	d := c.Watcher.Definitions()[crd]
	return d != nil && slices.Contains(d.Served, version)
}

// Well reports whether o's status tells of its newest generation and, where it tells health, good.
func (c *Cluster) Well(ctx context.Context, o *Object) (bool, error) {
	why, err := c.UnwellAs(ctx, o, o)
	return why == "", err
}

// UnwellAs says why o is not Well, or tells less of its health than another one of its kind, like, or "". It has had time to do so.
func (c *Cluster) UnwellAs(ctx context.Context, o, like *Object) (string, error) {
	now, err := c.current(ctx, o)
	if err != nil {
		return err.Error(), ctx.Err()
	}
	if why := cmp.Or(StaleBy(now), unwell(now)); why != "" || o == like {
		return why, nil
	}
	model, err := c.current(ctx, like)
	if err != nil {
		return "", ctx.Err()
	}
	if why := worse(model, now); why != "" {
		return "beside " + like.String() + " " + why, nil
	}
	if UpToDate(model) && !UpToDate(now) {
		return "status.observedGeneration is not there, and " + like.String() + " has it", nil
	}
	return "", nil
}

// Stale says how o's status stays behind its generation, or "".
func (c *Cluster) Stale(ctx context.Context, o *Object) (string, error) {
	if c.Watcher.Definitions()[o.CRD] == nil {
		return "", nil
	}
	now, err := c.current(ctx, o)
	if err != nil {
		return err.Error(), ctx.Err()
	}
	return StaleBy(now), nil
}

// StaleBy says how the status of an object, as it is now, stays behind its generation, or "".
func StaleBy(now *unstructured.Unstructured) string {
	observed, has, _ := unstructured.NestedInt64(now.Object, "status", "observedGeneration")
	if has && observed < now.GetGeneration() {
		return fmt.Sprintf("status.observedGeneration is %d, the generation %d", observed, now.GetGeneration())
	}
	return ""
}

// UpToDate reports whether the status of an object, as it is now, tells of its generation, and of the newest.
func UpToDate(now *unstructured.Unstructured) bool {
	_, has, _ := unstructured.NestedInt64(now.Object, "status", "observedGeneration")
	return has && StaleBy(now) == ""
}

// Worse says what o's status told of its health before the hop and does not tell any more, or "".
func (c *Cluster) Worse(ctx context.Context, o *Object) (string, error) {
	before := o.Views[o.Version]
	if before == nil || !c.IsServed(o.CRD, o.Version) {
		return "", nil
	}
	now, err := o.At(c.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return "", ctx.Err()
	}
	return worse(before, now), nil
}

// AssertedNamespaces are the namespaces that an assertion means by namespace: the operator's own, or else those in which
// the walk makes a sample of that namespace.
func (c *Cluster) AssertedNamespaces(namespace string) []string {
	if namespace == c.Place.Namespace {
		return []string{namespace}
	}
	return c.ObjectNamespaces(namespace)
}
