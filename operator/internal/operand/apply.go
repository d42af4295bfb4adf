package operand

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
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
	// API reads past the cache. It is asked before something is created, since the name may be in use by others.
	API client.Reader
}

// Deployment makes the wish's Deployment what Deployment says. It writes nothing if the operator's fields are so
// already. The error is a *TakenError if the name belongs to somebody else.
func (a Applier) Deployment(ctx context.Context, w Wish) error {
	return apply(ctx, a, w, "Deployment", &appsv1.Deployment{}, Deployment(w), appsv1ac.ExtractDeployment)
}

// Service makes the wish's Service what Service says, as Deployment does.
func (a Applier) Service(ctx context.Context, w Wish) error {
	return apply(ctx, a, w, "Service", &corev1.Service{}, Service(w), corev1ac.ExtractService)
}

// apply compares what is wanted with the fields that the live object's managedFields give to the operator. Whoever
// changes one of them takes it away from the operator, so the comparison finds drift as well as a changed wish, and
// defaults that others fill in do not disturb it.
func apply[O client.Object, C runtime.ApplyConfiguration](ctx context.Context, a Applier, w Wish, kind string, live O, wanted C, extract func(O, string) (C, error)) error {
	key := client.ObjectKey{Namespace: w.Namespace, Name: Name(w.Name)}
	err := a.Client.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		err = a.API.Get(ctx, key, live)
	}
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading %s %s: %w", kind, key, err)
	default:
		if controller := metav1.GetControllerOf(live); controller == nil || controller.UID != w.UID {
			return &TakenError{Kind: kind, Namespace: key.Namespace, Name: key.Name}
		}
		owned, err := extract(live, FieldOwner)
		if err != nil {
			return fmt.Errorf("reading the fields of %s %s that the operator owns: %w", kind, key, err)
		}
		if equality.Semantic.DeepEqual(owned, wanted) {
			return nil
		}
	}
	if err := a.Client.Apply(ctx, wanted, client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %s %s: %w", kind, key, err)
	}
	return nil
}
