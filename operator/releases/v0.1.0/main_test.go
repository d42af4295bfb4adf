package main

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/internal/manager"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

// The Deployment's spec is the one that every other release makes for the same spec, so that no upgrade restarts it.
func TestDeploymentIsEveryReleases(t *testing.T) {
	t.Parallel()
	m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "ns", UID: "uid"}, Spec: v1alpha1.MemcachedSpec{Size: 2}}
	got, err := yaml.Marshal(operand.Deployment(desired(m, manager.DefaultImage)).Spec)
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("../../internal/operand/testdata/small-deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want, have any
	if err := yaml.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(got, &have); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.(map[string]any)["spec"], have); diff != "" {
		t.Error(diff)
	}
}

// TestLatePods has the reconciler look again as long as the cache has other pods than the Deployment asks for: releases before
// 0.4.0 do not watch them.
func TestLatePods(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "ns", UID: "uid"}, Spec: v1alpha1.MemcachedSpec{Size: 1}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(m).WithStatusSubresource(m).Build()
	r := &reconciler{client: c, api: c, image: manager.DefaultImage}
	reconcile := func(pods int, nodes []string, again bool) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		if err != nil || (result.RequeueAfter > 0) != again {
			t.Errorf("with %d pods: %+v, %v", pods, result, err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || !slices.Equal(m.Status.Nodes, nodes) {
			t.Errorf("with %d pods the status names %q: %v", pods, m.Status.Nodes, err)
		}
	}
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: operand.Selector("m")}}
	}
	reconcile(0, nil, true)
	if err := errors.Join(c.Create(t.Context(), pod("m-1")), c.Create(t.Context(), pod("m-2"))); err != nil {
		t.Fatal(err)
	}
	reconcile(2, []string{"m-1", "m-2"}, true)
	if err := c.Delete(t.Context(), pod("m-2")); err != nil {
		t.Fatal(err)
	}
	reconcile(1, []string{"m-1"}, false)
}
