package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MemcachedSpec says what is wanted.
type MemcachedSpec struct {
	// How many memcached pods run.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +required
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Size",xDescriptors="urn:alm:descriptor:com.tectonic.ui:podCount"
	Size int32 `json:"size"`
}

// MemcachedStatus says what was observed.
type MemcachedStatus struct {
	// Names of the memcached pods, sorted.
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Nodes"
	Nodes []string `json:"nodes,omitempty"`
}

// Memcached is a group of memcached servers behind one Service.
//
// +kubebuilder:object:root=true
// +operator-sdk:csv:customresourcedefinitions:displayName="Memcached",resources={{Deployment,v1,""},{NetworkPolicy,v1,""},{Pod,v1,""},{PodDisruptionBudget,v1,""},{Service,v1,""}}
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=memcacheds,shortName=mc,categories=cache
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Memcached struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec MemcachedSpec `json:"spec"`
	// +optional
	Status MemcachedStatus `json:"status,omitempty"`
}

// MemcachedList is a list of Memcached.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Memcached `json:"items"`
}
