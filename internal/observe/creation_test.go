package observe

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
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
	dry := event(manager, "create", "secrets", "tried", http.StatusCreated)
	dry.RequestURI = "/api/v1/namespaces/n/secrets?dryRun=All"
	hook := event(manager, "create", "validatingwebhookconfigurations", "hook", http.StatusCreated)
	hook.ObjectRef.APIGroup = "admissionregistration.k8s.io"
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
		status, dry, hook,
		event(manager, "create", "customresourcedefinitions", "things.example.com", http.StatusCreated),
	}
	var names []string
	for _, made := range Creations(log, AnyAsker([]*lifecycle.Release{r}, "operators")) {
		names = append(names, made.Resource+"/"+made.Name)
	}
	if want := []string{"validatingwebhookconfigurations/hook", "secrets/certificate", "configmaps/applied", "namespaces/n", "customresourcedefinitions/things.example.com"}; !slices.Equal(names, want) {
		t.Errorf("%q, not %q", names, want)
	}
}

// TestDeleteCreations has webhooks that do harm when their operator is gone, and some that do not, a Secret that a webhook refuses to have
// deleted until it is gone itself, and one that nothing can delete.
func TestDeleteCreations(t *testing.T) {
	synctest.Test(t, testDeleteCreations)
}

func testDeleteCreations(t *testing.T) {
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
		secret("kept"), secret("left"), secret("owned", metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "1"}), secret("another's"))
	refused := 0
	dynamic.PrependReactor("delete", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.DeleteAction).GetName()
		if name == "kept" || name == "left" && refused < 2 {
			refused++
			return true, nil, apierrors.NewInternalError(errors.New("failed calling webhook"))
		}
		return false, nil, nil
	})
	c := &Cluster{Dynamic: dynamic, Place: lifecycle.Place{Namespace: "operators"}}
	calling, err := c.DeleteCreations(t.Context(), []Creation{
		{validatingHooks, client.ObjectKey{Name: "fails"}}, {mutatingHooks, client.ObjectKey{Name: "fails"}}, {validatingHooks, client.ObjectKey{Name: "elsewhere"}},
		{validatingHooks, client.ObjectKey{Name: "url"}}, {secrets, client.ObjectKey{Namespace: "n", Name: "kept"}}, {secrets, client.ObjectKey{Namespace: "n", Name: "left"}}, {secrets, client.ObjectKey{Namespace: "n", Name: "owned"}},
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
	if want := []string{"another's", "kept", "owned"}; !slices.Equal(left, want) {
		t.Errorf("%q are left, not %q", left, want)
	}
}
