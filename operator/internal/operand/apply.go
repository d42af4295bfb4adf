package operand

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TakenError says that an object which does not belong to the Memcached has the name that its operand needs.
type TakenError struct {
	Kind, Namespace, Name string
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("%s %s/%s exists and belongs to another owner", e.Kind, e.Namespace, e.Name)
}

// Applier brings operands about by server-side apply.
type Applier struct {
	// Client reads from the cache, which needs to hold only what the operator manages.
	Client client.Client
	// API reads past the cache. It is asked before something is created, since the name may be in use by others, and
	// before something is taken to be gone.
	API client.Reader
}

// read reads what the cache has, and what it has not, past it.
func (a Applier) read(ctx context.Context, key client.ObjectKey, live client.Object) error {
	err := a.Client.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		err = a.API.Get(ctx, key, live)
	}
	return err
}

// Deployment applies the desired Deployment, and returns the generation and the resourceVersion that this made, zero values if it
// wrote nothing because the operator's fields are so already. The error is a *TakenError if the name belongs to somebody else.
func (a Applier) Deployment(ctx context.Context, d Desired) (generation int64, version string, err error) {
	wanted := Deployment(d)
	err = apply(ctx, a, d, "Deployment", &appsv1.Deployment{}, wanted, containerPorts(d))
	if err == nil && wanted.Generation != nil && wanted.ResourceVersion != nil {
		generation, version = *wanted.Generation, *wanted.ResourceVersion
	}
	return generation, version, err
}

// Service applies the desired Service.
func (a Applier) Service(ctx context.Context, d Desired) error {
	return apply(ctx, a, d, "Service", &corev1.Service{}, Service(d), servicePorts(d))
}

// DisruptionBudget applies the desired PodDisruptionBudget. One server has none, since the budget would allow any eviction, and cost
// Kubernetes an account of each change of the pod; one that is there from more servers is deleted.
func (a Applier) DisruptionBudget(ctx context.Context, d Desired) error {
	const kind = "PodDisruptionBudget"
	if d.Replicas > 1 {
		return apply(ctx, a, d, kind, &policyv1.PodDisruptionBudget{}, DisruptionBudget(d), nil)
	}
	key := client.ObjectKey{Namespace: d.Namespace, Name: Name(d.Name)}
	cached := Deletion{Owner: d.UID, Known: map[string]bool{kind: true}} // what the cache learns of later brings the reconciler back
	_, err := a.deleteOwned(ctx, kind, key, &policyv1.PodDisruptionBudget{}, cached, metav1.DeletePropagationBackground, &Remaining{})
	return err
}

// NetworkPolicy applies the desired NetworkPolicy.
func (a Applier) NetworkPolicy(ctx context.Context, d Desired) error {
	return apply(ctx, a, d, "NetworkPolicy", &networkingv1.NetworkPolicy{}, NetworkPolicy(d), nil)
}

// apply compares what is wanted with the fields that the live object's managedFields give to the operator. Whoever
// changes one of them takes it away from the operator, so the comparison finds drift as well as a changed spec, and
// defaults that others fill in do not disturb it. If apply writes, wanted is then the whole object as it was answered.
//
// ports, if any, is a strategic merge patch that makes the operator's ports the only ones. An item of a list whose key
// somebody changed is theirs, and stays beside the operator's own; if its name is in the way of that, it has to go.
func apply(ctx context.Context, a Applier, d Desired, kind string, live client.Object, wanted runtime.ApplyConfiguration, ports []byte) error {
	there := true
	key := client.ObjectKey{Namespace: d.Namespace, Name: Name(d.Name)}
	err := a.read(ctx, key, live)
	switch {
	case apierrors.IsNotFound(err):
		there = false
	case err != nil:
		return fmt.Errorf("reading %s %s: %w", kind, key, err)
	default:
		controller := metav1.GetControllerOf(live)
		switch {
		case controller != nil && controller.UID == d.UID:
			if asApplied(compact(live), wanted) {
				return nil
			}
		case controller == nil && applied(live):
			if err := a.mayAdopt(ctx, d); err != nil {
				return fmt.Errorf("adopting %s %s: %w", kind, key, err)
			}
		default:
			return &TakenError{Kind: kind, Namespace: key.Namespace, Name: key.Name}
		}
	}
	write := func() error {
		return a.Client.Apply(ctx, wanted, client.FieldOwner(FieldOwner), client.ForceOwnership)
	}
	err = write()
	if there && ports != nil && apierrors.IsInvalid(err) {
		if a.Client.Patch(ctx, live, client.RawPatch(types.StrategicMergePatchType, ports), client.FieldOwner(FieldOwner+"-ports")) == nil {
			err = write()
		}
	}
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", kind, key, err)
	}
	return nil
}

func containerPorts(d Desired) []byte {
	return fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":%q,"ports":[{"$patch":"replace"},{"name":%q,"containerPort":%d,"protocol":"TCP"}]}]}}}}`,
		component, portName, orDefault(d.Port, DefaultPort))
}

func servicePorts(d Desired) []byte {
	return fmt.Appendf(nil, `{"spec":{"ports":[{"$patch":"replace"},{"name":%[1]q,"port":%[2]d,"targetPort":%[1]q,"protocol":"TCP"}]}}`,
		portName, orDefault(d.Port, DefaultPort))
}

// applied says that the operator made an object, whoever it belongs to now. One that belongs to nobody was left by a
// Memcached that was deleted without its operand, or lost its owner to somebody's edit.
func applied(live client.Object) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldOwner && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	})
}

// mayAdopt asks past the cache whether the Memcached is there to stay: the objects that a deletion leaves behind
// lose their owner while the cache may not know of the deletion.
func (a Applier) mayAdopt(ctx context.Context, d Desired) error {
	owner := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: d.APIVersion, Kind: "Memcached"}}
	if err := a.API.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: d.Name}, owner); err != nil {
		return err
	}
	if owner.UID != d.UID || !owner.DeletionTimestamp.IsZero() {
		return apierrors.NewConflict(schema.GroupResource{Group: owner.GroupVersionKind().Group, Resource: "memcacheds"}, d.Name, errors.New("it is being deleted"))
	}
	return nil
}
