// Package v1 is the stable form of the Memcached API: the hub that the other versions convert to, and the version stored from release 0.3.0 on.
// It is immutable: a release published it, so what must change goes into a new version.
//
// +kubebuilder:object:generate=true
// +groupName=cache.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of this package's kinds.
var GroupVersion = schema.GroupVersion{Group: "cache.example.com", Version: "v1"}

var builder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Memcached{}, &MemcachedList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme makes a scheme know this version's kinds.
var AddToScheme = builder.AddToScheme
