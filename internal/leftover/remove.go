package leftover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

// Limits of a removal.
const (
	// goneLimit bounds how long objects of one stage may take to go.
	goneLimit = 2 * time.Minute
	// finalizerLimit bounds how long operators have to remove their finalizers from custom resources.
	finalizerLimit = 30 * time.Second
	// remakeLimit is how long an OLM that stays has to make definitions once more.
	remakeLimit = 2 * time.Second
	// rounds bounds how often it is looked again for what OLM made while the rest was removed.
	rounds = 3
)

// Kept is an object that stays.
type Kept struct {
	Object
	Why string
	Fix string // what the user can do
}

// Removal is what became of what walks left.
type Removal struct {
	Removed []Object
	Kept    []Kept
	Unread  []string // kinds of which it is not known whether something is left
}

// Remove removes what walk left, all walks if that is "". It goes on with the rest where an object does not go. An error means
// that not all was tried.
func (c *Cleaner) Remove(ctx context.Context, walk string) (Removal, error) {
	seen := Found{}
	// OLM may make something for a namespace until that is gone, and nothing else tells then whose it is.
	homes := map[string]*home{}
	r := removal{Cleaner: c, walk: walk, reasons: map[key]Kept{}, limit: goneLimit, finalizers: finalizerLimit}
	for range rounds {
		left, err := c.find(ctx, walk, homes)
		if err != nil {
			return Removal{}, err
		}
		for _, o := range left.Objects {
			seen.add(o)
		}
		if err := c.alone(ctx, left); err != nil {
			return Removal{}, err
		}
		if r.found = left; len(r.todo()) == 0 {
			break
		}
		if err := r.stages(ctx); err != nil {
			return Removal{}, err
		}
	}
	left, err := c.find(ctx, walk, homes)
	if err != nil {
		return Removal{}, err
	}
	for _, o := range left.Objects {
		seen.add(o)
	}
	result := Removal{Unread: left.Unread}
	for _, o := range seen.Objects {
		k, kept := r.reasons[o.key]
		switch {
		case slices.ContainsFunc(left.Objects, func(l Object) bool { return l.key == o.key }):
			if !kept {
				k = stays(o, "it is still there after being deleted")
			}
		case !kept || !r.exists(ctx, o):
			result.Removed = append(result.Removed, o)
			continue
		}
		k.Object = o
		result.Kept = append(result.Kept, k)
	}
	return result, ctx.Err()
}

// alone returns an error if somebody subscribes in a namespace of a run: what OLM made there can't be told apart.
func (c *Cleaner) alone(ctx context.Context, found Found) error {
	for name, h := range found.homes {
		if !c.ofRuns() {
			return nil
		}
		others, err := c.olm.Subscribed(ctx, name, h.walk)
		if err != nil {
			return err
		}
		if len(others) > 0 {
			return hint.With(fmt.Errorf("namespace %s of package %s has %s, which olmkit did not make", name, h.walk, strings.Join(others, ", ")),
				"delete these, with their ClusterServiceVersions, or install them elsewhere, and run this again")
		}
	}
	return nil
}

// exists reports whether o is there. With the rest of the walk gone nothing tells any more that it was the walk's, so Find does
// not.
func (r *removal) exists(ctx context.Context, o Object) bool {
	now := o.metadata.DeepCopy()
	err := r.olm.Get(ctx, o.key.ObjectKey, now)
	return !absent(err) && (err != nil || now.UID == o.metadata.UID)
}

// stays says that o stays and how to look at it.
func stays(o Object, why string) Kept {
	at := ""
	if o.Namespace != "" {
		at = " --namespace " + o.Namespace
	}
	resource := strings.ToLower(o.key.Kind)
	if o.key.Group != "" {
		resource += "." + o.key.Group
	}
	return Kept{Object: o, Why: why, Fix: fmt.Sprintf("see what holds it with 'kubectl get %s %s%s -o yaml', and delete it", resource, o.Name, at)}
}

// removal is one under way.
type removal struct {
	*Cleaner
	walk       string
	found      Found
	reasons    map[key]Kept // what was found to stay
	limit      time.Duration
	finalizers time.Duration
}

// todo are the objects that were not found to stay.
func (r *removal) todo() []Object {
	return slices.DeleteFunc(slices.Clone(r.found.Objects), func(o Object) bool {
		_, kept := r.reasons[o.key]
		return kept
	})
}

// pick are those of todo that ours wants.
func (r *removal) pick(ours func(Object) bool) []Object {
	return slices.DeleteFunc(r.todo(), func(o Object) bool { return !ours(o) })
}

// ofKinds wants what is of one of kinds, and no part of OLM.
func ofKinds(kinds ...schema.GroupVersionKind) func(Object) bool {
	return func(o Object) bool {
		return !o.ofOLM && slices.ContainsFunc(kinds, func(k schema.GroupVersionKind) bool { return k.GroupKind() == o.key.GroupKind })
	}
}

// stages removes what was found in an order in which each stage has what it needs: an operator its rights and OLM to serve
// finalizers, OLM its own kinds to take back what it made.
func (r *removal) stages(ctx context.Context) error {
	policies := ofKinds(
		admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
		admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"))
	for _, stage := range []func() error{
		// A fault's policy forbids the operator to remove its finalizers.
		func() error { return r.delete(ctx, policies, r.limit) },
		func() error { return r.deleteCustomResources(ctx) },
		func() error { return r.removeExtensions(ctx) },
		func() error { return r.delete(ctx, ofKinds(subscriptionKind), r.limit) },
		func() error { return r.awaitPlans(ctx) },
		func() error { return r.delete(ctx, ofKinds(planKind, versionKind), r.limit) },
		func() error { return r.removeDefinitions(ctx) },
		// OLM makes roles for an OperatorGroup as long as that is there.
		func() error { return r.delete(ctx, ofKinds(groupKind, sourceKind), r.limit) },
		func() error {
			last := ofKinds(namespaceKind, operatorKind, definitionKind)
			return r.delete(ctx, func(o Object) bool { return !o.ofOLM && !last(o) }, r.limit)
		},
		func() error { return r.delete(ctx, ofKinds(namespaceKind), r.limit) },
		// OLM makes an Operator again as long as one of its parts is there.
		func() error { return r.delete(ctx, ofKinds(operatorKind), r.limit) },
		func() error { return r.removeOLM(ctx) },
		func() error { return r.removeRemade(ctx) },
	} {
		if err := stage(); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes the objects that ours wants and waits until they are gone, but no longer than limit. What cannot be deleted
// is noted.
func (r *removal) delete(ctx context.Context, ours func(Object) bool, limit time.Duration) error {
	left := r.pick(ours)
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		left = slices.DeleteFunc(left, func(o Object) bool {
			now := o.metadata.DeepCopy()
			switch err := r.olm.Get(ctx, o.key.ObjectKey, now); {
			case absent(err):
				return true
			case err != nil, now.UID != o.metadata.UID, now.DeletionTimestamp != nil:
				// Of the same name it may be another's by now; the next round looks again whose it is.
				return err == nil && now.UID != o.metadata.UID
			}
			err := r.olm.Delete(ctx, now, client.Preconditions{UID: &now.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
			switch {
			case err == nil:
				delete(r.reasons, o.key)
			case ctx.Err() == nil && !absent(err):
				r.reasons[o.key] = stays(o, fmt.Sprintf("it cannot be deleted: %v", err))
			}
			return absent(err)
		})
		return len(left) == 0, nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		for _, o := range left {
			if _, known := r.reasons[o.key]; !known {
				r.reasons[o.key] = stays(o, fmt.Sprintf("it is still there %s after being deleted", limit))
			}
		}
	}
	return nil
}

// awaitPlans waits until OLM is through with the InstallPlans in the walks' namespaces, also with those that it made since these were
// looked for, but no longer than for finalizers: of one that is deleted meanwhile it makes the definitions once more.
func (r *removal) awaitPlans(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, r.finalizers, true, func(ctx context.Context) (bool, error) {
		for name := range r.found.homes {
			var plans v1alpha1.InstallPlanList
			if err := r.olm.List(ctx, &plans, client.InNamespace(name)); err == nil && slices.ContainsFunc(plans.Items, underWay) {
				return false, nil
			}
		}
		return true, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil // nobody works on them
	}
	return err
}

// underWay reports whether OLM has still to work on p, or is at it.
func underWay(p v1alpha1.InstallPlan) bool {
	switch p.Status.Phase {
	case v1alpha1.InstallPlanPhaseComplete, v1alpha1.InstallPlanPhaseFailed:
		return false
	case v1alpha1.InstallPlanPhaseRequiresApproval:
		return p.Spec.Approved
	}
	return true
}

// deleteCustomResources deletes walks' objects of the kinds that walks brought, and gives the operator, if there is one, time to
// remove its finalizers. What is left then goes with its definition.
func (r *removal) deleteCustomResources(ctx context.Context) error {
	if len(r.pick(ofKinds(versionKind, extensionKind))) == 0 {
		return nil
	}
	custom := func(o Object) bool {
		return slices.ContainsFunc(r.pick(ofKinds(definitionKind)), func(d Object) bool {
			_, group, _ := strings.Cut(d.Name, ".")
			return group == o.key.Group
		})
	}
	objects := r.pick(custom)
	if err := r.delete(ctx, custom, r.finalizers); err != nil {
		return err
	}
	for _, o := range objects {
		delete(r.reasons, o.key)
	}
	return nil
}

// others are those of objects that olmkit did not make.
func (r *removal) others(objects []metav1.PartialObjectMetadata) somebodys {
	return slices.DeleteFunc(slices.Clone(objects), func(o metav1.PartialObjectMetadata) bool {
		h := r.found.homes[o.Namespace]
		return o.Labels[r.label] != "" || !r.ofRuns() && h != nil && h.whole
	})
}

// somebodys is the error that objects of a definition are no walk's.
type somebodys []metav1.PartialObjectMetadata

func (s somebodys) Error() string {
	var names []string
	for _, o := range s {
		names = append(names, o.Kind+"/"+strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
	}
	return fmt.Sprintf("it has objects that olmkit did not make: %s", strings.Join(names, ", "))
}

// fix says how to remove the definition called name with s, and the operators that OLM makes again as long as that is there.
func (s somebodys) fix(name string, operators []Object) string {
	fix := fmt.Sprintf("if nobody needs them, delete it with all of them: 'kubectl delete crd %s'", name)
	for _, o := range operators {
		fix += fmt.Sprintf(", and then 'kubectl delete operators.operators.coreos.com %s'", o.Name)
	}
	if slices.ContainsFunc(s, func(o metav1.PartialObjectMetadata) bool { return len(o.Finalizers) > 0 }) {
		fix += "; those with finalizers go only while the operator runs, so install it again, delete them, and clean up then"
	}
	return fix
}

// holdNamespaces has the namespaces stay that hold objects of the definition called name.
func (r *removal) holdNamespaces(name string, others somebodys) {
	for _, n := range r.pick(ofKinds(namespaceKind)) {
		if slices.ContainsFunc(others, func(o metav1.PartialObjectMetadata) bool { return o.Namespace == n.Name }) {
			r.reasons[n.key] = Kept{Why: "it holds objects of CustomResourceDefinition/" + name, Fix: fmt.Sprintf("delete them, and then 'kubectl delete namespace %s'", n.Name)}
		}
	}
}

// removeDefinitions removes the definitions that walks brought, but those of which somebody else has made objects since.
func (r *removal) removeDefinitions(ctx context.Context) error {
	for _, d := range r.pick(ofKinds(definitionKind)) {
		if err := r.removeDefinition(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// removeRemade removes the definitions that OLM made once more, by an InstallPlan that it was at work on when that was deleted. With
// the namespaces gone nothing tells any more whose they are. An OLM that stays has a moment to make them.
func (r *removal) removeRemade(ctx context.Context) error {
	definitions := r.pick(ofKinds(definitionKind))
	if len(definitions) == 0 {
		return nil
	}
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		olmGone := absent(r.olm.List(ctx, &v1alpha1.CatalogSourceList{}))
		for _, d := range definitions {
			now := d.metadata.DeepCopy()
			err := r.olm.Get(ctx, d.key.ObjectKey, now)
			if err != nil || now.UID == d.metadata.UID || now.Labels[olmv0.ManagedLabel] != "true" {
				continue
			}
			if err := r.removeDefinition(ctx, d); err != nil {
				return err
			}
		}
		if ctx.Err() != nil || olmGone || time.Since(began) > r.remake {
			return ctx.Err()
		}
	}
}

func (r *removal) removeDefinition(ctx context.Context, d Object) error {
	err := lifecycle.RemoveDefinition(ctx, r.olm.WithWatch, d.Name, r.limit, func(objects []metav1.PartialObjectMetadata) error {
		if others := r.others(objects); len(others) > 0 {
			return others
		}
		return nil
	})
	var others somebodys
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &others):
		r.reasons[d.key] = Kept{Why: others.Error(), Fix: others.fix(d.Name, r.pick(ofKinds(operatorKind)))}
		r.holdNamespaces(d.Name, others)
	case err != nil:
		r.reasons[d.key] = stays(d, err.Error())
	}
	return nil
}

// removeOLM removes OLM if walks installed it and nobody else uses it.
func (r *removal) removeOLM(ctx context.Context) error {
	parts, err := r.installed(ctx, r.walk)
	if err != nil || len(parts) == 0 {
		return err
	}
	users, err := r.users(ctx)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		for _, o := range r.pick(func(o Object) bool { return o.ofOLM }) {
			r.reasons[o.key] = Kept{Why: "OLM is in use: " + strings.Join(users, ", "),
				Fix: fmt.Sprintf("delete these if nobody needs them, and run this again; or keep OLM: take the label %s from its objects", cluster.WalkLabel)}
		}
		return nil
	}
	if err := r.olm.Remove(ctx, parts, r.limit); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, o := range r.pick(func(o Object) bool { return o.ofOLM }) {
			r.reasons[o.key] = stays(o, err.Error())
		}
	}
	return nil
}

// users names what somebody has OLM do.
func (r *removal) users(ctx context.Context) ([]string, error) {
	var users []string
	for _, kind := range []schema.GroupVersionKind{subscriptionKind, versionKind, sourceKind, groupKind} {
		list, err := r.list(ctx, kind)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			_, copied := m.Labels[v1alpha1.CopiedLabelKey]
			if m.Labels[cluster.WalkLabel] == "" && !copied && m.DeletionTimestamp == nil {
				users = append(users, newObject(m, "", false).String())
			}
		}
	}
	return users, nil
}
