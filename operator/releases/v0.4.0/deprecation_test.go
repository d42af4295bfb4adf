package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWriters(t *testing.T) {
	t.Parallel()
	fields := []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", APIVersion: "cache.example.com/v1alpha1"},
		{Manager: "argocd", APIVersion: "cache.example.com/v1alpha1"},
		{Manager: "kubectl", APIVersion: "cache.example.com/v1alpha1"},
		{Manager: "terraform", APIVersion: "cache.example.com/v1beta1"},
		{Manager: "memcached-operator", APIVersion: "cache.example.com/v1alpha1", Subresource: "status"},
	}
	if diff := cmp.Diff([]string{"argocd", "kubectl"}, writers(fields)); diff != "" {
		t.Error(diff)
	}
}
