package observe

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// CreationOf is the creation of an operand.
func CreationOf(made Operand) Creation {
	return Creation{OperandResource(made.Kind), client.ObjectKey{Namespace: made.Namespace, Name: made.Name}}
}

// slow resources are left to themselves: namespaces and definitions take their time until they are gone, in which they are in nobody's way as they are.
var slow = []string{"namespaces", "customresourcedefinitions"}

// Creations lists what log says that the accounts which account returns created, each once, but for Events, which go by themselves: webhook configurations before the rest,
// which they may refuse to have deleted. It does not know what got its name from the API server (generateName).
func Creations(log []auditv1.Event, account func(auditv1.Event) string) []Creation {
	return objectsOf(log, account, created)
}

// Written are Creations, and what else was written.
func Written(log []auditv1.Event, account func(auditv1.Event) string) []Creation {
	return objectsOf(log, account, func(e auditv1.Event) bool {
		o := e.ObjectRef
		changed := (e.Verb == "update" || e.Verb == "patch") && o != nil && o.Subresource == "" && e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusOK
		return changed || created(e)
	})
}

func objectsOf(log []auditv1.Event, account func(auditv1.Event) string, wanted func(auditv1.Event) bool) []Creation {
	var hooks, rest []Creation
	for _, e := range log {
		o := e.ObjectRef
		if !wanted(e) || o.Name == "" || account(e) == "" {
			continue
		}
		if uri, err := url.Parse(e.RequestURI); err != nil || uri.Query().Has("dryRun") {
			continue
		}
		made := Creation{schema.GroupVersionResource{Group: o.APIGroup, Version: o.APIVersion, Resource: o.Resource}, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}}
		list := &rest
		if o.APIGroup == admissionregistrationv1.GroupName {
			list = &hooks
		}
		if o.Resource != "events" && !slices.Contains(*list, made) {
			*list = append(*list, made)
		}
	}
	return append(hooks, rest...)
}

// created reports whether e made an object.
func created(e auditv1.Event) bool {
	o := e.ObjectRef
	return o != nil && o.Subresource == "" && e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusCreated
}

// Made are the resources of which log says that the accounts which account returns created something, under whatever name, sorted.
func Made(log []auditv1.Event, account func(auditv1.Event) string) []string {
	made := map[string]bool{}
	for _, e := range log {
		if o := e.ObjectRef; created(e) && account(e) != "" {
			made[schema.GroupResource{Group: o.APIGroup, Resource: o.Resource}.String()] = true
		}
	}
	return slices.Sorted(maps.Keys(made))
}

// DeleteCreations deletes those of list that are still there and belong to nothing, without their finalizers, which nobody serves any
// more. What can't be read or deleted stays. It returns the webhook configurations, as Kind/name, by which the API server called the
// operator, and refused what it asked about without an answer.
func (c *Cluster) DeleteCreations(ctx context.Context, list []Creation) (calling []string, err error) {
	for _, made := range list {
		if slices.Contains(slow, made.Resource) {
			continue
		}
		resource := c.Dynamic.Resource(made.GroupVersionResource).Namespace(made.Namespace)
		o, err := resource.Get(ctx, made.Name, metav1.GetOptions{})
		if err != nil || len(o.GetOwnerReferences()) > 0 || o.GetDeletionTimestamp() != nil {
			continue
		}
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(o.GetUID())), PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
		// A webhook that is deleted is asked for a moment more.
		err = lifecycle.Poll(ctx, 3*time.Second, func(ctx context.Context) (bool, error) {
			err = resource.Delete(ctx, made.Name, options)
			return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err), nil
		})
		if err == nil && callsInto(c.Place.Namespace, o) {
			calling = append(calling, o.GetKind()+"/"+o.GetName())
		}
		if err == nil && len(o.GetFinalizers()) > 0 {
			_, _ = resource.Patch(ctx, made.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
	}
	return calling, ctx.Err()
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
