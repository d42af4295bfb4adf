package observe

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Creation is an object that an operator created.
type Creation struct {
	schema.GroupVersionResource
	client.ObjectKey
}

// Creations lists what log says that the accounts which account returns created, each once, in order. What lasts for an hour by itself
// (Events) is left out, as are namespaces, which take their time to go and may have been filled by others since.
func Creations(log []auditv1.Event, account func(auditv1.Event) string) []Creation {
	var list []Creation
	for _, e := range log {
		o := e.ObjectRef
		if o == nil || e.ResponseStatus == nil || e.ResponseStatus.Code != http.StatusCreated || o.Name == "" || o.Subresource != "" || account(e) == "" {
			continue
		}
		made := Creation{schema.GroupVersionResource{Group: o.APIGroup, Version: o.APIVersion, Resource: o.Resource}, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}}
		if o.Resource != "events" && o.Resource != "namespaces" && !slices.Contains(list, made) {
			list = append(list, made)
		}
	}
	return list
}

// DeleteCreations deletes those of list that are still there and belong to nothing. Of these it returns the webhook configurations,
// as Kind/name, by which the API server calls the operator, and refuses what it asks about without an answer.
func (c *Cluster) DeleteCreations(ctx context.Context, list []Creation) (calling []string, err error) {
	for _, made := range list {
		resource := c.Dynamic.Resource(made.GroupVersionResource).Namespace(made.Namespace)
		o, err := resource.Get(ctx, made.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err): // also what is only asked, as a SubjectAccessReview
			continue
		case err != nil:
			return calling, fmt.Errorf("read %s %s, which the operator made: %w", made.Resource, made.ObjectKey, err)
		case len(o.GetOwnerReferences()) > 0 || o.GetDeletionTimestamp() != nil:
			continue
		}
		if callsInto(c.Place.Namespace, o) {
			calling = append(calling, o.GetKind()+"/"+o.GetName())
		}
		err = resource.Delete(ctx, made.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(o.GetUID()))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return calling, fmt.Errorf("delete %s %s, which the operator made: %w", made.Resource, made.ObjectKey, err)
		}
	}
	return calling, nil
}

// callsInto reports whether o configures a webhook that is served from a namespace, and without whose answer requests are refused.
func callsInto(namespace string, o *unstructured.Unstructured) bool {
	var configured struct { // what configurations of both kinds have in common
		Webhooks []admissionregistrationv1.ValidatingWebhook `json:"webhooks"`
	}
	if o.GroupVersionKind().Group != admissionregistrationv1.GroupName || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &configured) != nil {
		return false
	}
	return slices.ContainsFunc(configured.Webhooks, func(h admissionregistrationv1.ValidatingWebhook) bool {
		service := h.ClientConfig.Service
		return service != nil && service.Namespace == namespace && ptr.Deref(h.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Fail
	})
}

// AnyAsker returns whose request an event is, if one of the releases' ServiceAccounts in namespace sent it.
func AnyAsker(releases []*lifecycle.Release, namespace string) func(auditv1.Event) string {
	var accounts []string
	for _, r := range releases {
		accounts = append(accounts, r.Permitted(namespace)...)
	}
	return func(e auditv1.Event) string {
		if name := accountOf(e); slices.Contains(accounts, name) {
			return name
		}
		return ""
	}
}
