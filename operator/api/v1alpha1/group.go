// Package v1alpha1 is the first form of the Memcached API: a size, and the names of the pods.
// It is immutable: a release published it, so what must change goes into a new version.
//
// +kubebuilder:object:generate=true
// +groupName=cache.example.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of this package's kinds.
var GroupVersion = schema.GroupVersion{Group: "cache.example.com", Version: "v1alpha1"}

var builder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Memcached{}, &MemcachedList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme makes a scheme know this version's kinds.
var AddToScheme = builder.AddToScheme
