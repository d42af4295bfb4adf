package observe

import (
	"net/http"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

func TestCreations(t *testing.T) {
	r := &lifecycle.Release{CSV: &v1alpha1.ClusterServiceVersion{}}
	r.CSV.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "manager"}}
	const manager = "system:serviceaccount:operators:manager"
	event := func(user, verb, resource, name string, code int32) auditv1.Event {
		return auditv1.Event{
			User: authenticationv1.UserInfo{Username: user}, Verb: verb, ResponseStatus: &metav1.Status{Code: code},
			ObjectRef: &auditv1.ObjectReference{APIVersion: "v1", Resource: resource, Namespace: "n", Name: name},
		}
	}
	status := event(manager, "create", "pods", "p", http.StatusCreated)
	status.ObjectRef.Subresource = "eviction"
	log := []auditv1.Event{
		event(manager, "create", "secrets", "certificate", http.StatusCreated),
		event(manager, "patch", "configmaps", "applied", http.StatusCreated),
		event(manager, "create", "secrets", "certificate", http.StatusCreated), // once more
		event(manager, "create", "secrets", "refused", http.StatusForbidden),
		event(manager, "patch", "secrets", "there", http.StatusOK),
		event(manager, "create", "secrets", "", http.StatusCreated), // by generateName
		event(manager, "create", "events", "told", http.StatusCreated),
		event(manager, "create", "namespaces", "n", http.StatusCreated),
		event("system:serviceaccount:operators:default", "create", "secrets", "another's", http.StatusCreated),
		event("system:serviceaccount:elsewhere:manager", "create", "secrets", "a namesake's", http.StatusCreated),
		event("manager", "create", "secrets", "a person's", http.StatusCreated),
		{User: authenticationv1.UserInfo{Username: manager}, Verb: "get", RequestURI: "/version", ResponseStatus: &metav1.Status{Code: http.StatusCreated}},
		status,
	}
	var names []string
	for _, made := range Creations(log, AnyAsker([]*lifecycle.Release{r}, "operators")) {
		names = append(names, made.Resource+"/"+made.Name)
	}
	if want := []string{"secrets/certificate", "configmaps/applied"}; !slices.Equal(names, want) {
		t.Errorf("%q, not %q", names, want)
	}
}

// TestDeleteCreations has webhooks that harm when their operator is gone, and such that do not.
func TestDeleteCreations(t *testing.T) {
	hook := func(kind, name string, content map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "webhooks": []any{
			map[string]any{"name": "quiet.example.com", "failurePolicy": "Ignore", "clientConfig": map[string]any{"service": map[string]any{"namespace": "operators", "name": "s"}}},
			content,
		}}}
		o.SetName(name)
		return o
	}
	calls := func(namespace string) map[string]any {
		return map[string]any{"name": "h.example.com", "clientConfig": map[string]any{"service": map[string]any{"namespace": namespace, "name": "s"}}}
	}
	secret := func(name string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
		o.SetNamespace("n")
		o.SetName(name)
		o.SetOwnerReferences(owners)
		return o
	}
	const validating, mutating = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
	validatingHooks := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	mutatingHooks := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	dynamic := dynamicfake.NewSimpleDynamicClient(scheme.Scheme,
		hook(validating, "fails", calls("operators")), hook(mutating, "fails", calls("operators")),
		hook(validating, "elsewhere", calls("other")), hook(validating, "url", map[string]any{"name": "h.example.com", "clientConfig": map[string]any{"url": "https://example.com"}}),
		secret("left"), secret("owned", metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "1"}), secret("another's"))
	c := &Cluster{Dynamic: dynamic, Place: lifecycle.Place{Namespace: "operators"}}
	calling, err := c.DeleteCreations(t.Context(), []Creation{
		{validatingHooks, client.ObjectKey{Name: "fails"}}, {mutatingHooks, client.ObjectKey{Name: "fails"}}, {validatingHooks, client.ObjectKey{Name: "elsewhere"}},
		{validatingHooks, client.ObjectKey{Name: "url"}}, {secrets, client.ObjectKey{Namespace: "n", Name: "left"}}, {secrets, client.ObjectKey{Namespace: "n", Name: "owned"}},
		{secrets, client.ObjectKey{Namespace: "n", Name: "gone"}},
	})
	if want := []string{validating + "/fails", mutating + "/fails"}; err != nil || !slices.Equal(calling, want) {
		t.Errorf("%q, %v, not %q", calling, err, want)
	}
	var left []string
	for _, resource := range []schema.GroupVersionResource{validatingHooks, mutatingHooks, secrets} {
		list, err := dynamic.Resource(resource).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			left = append(left, o.GetName())
		}
	}
	if want := []string{"another's", "owned"}; !slices.Equal(left, want) {
		t.Errorf("%q are left, not %q", left, want)
	}
}
