package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// What the API server fills in where a v1beta1 document is silent.
const (
	DefaultSize          = 1
	DefaultContainerPort = 11211
)

// MemcachedSpec says what is wanted.
type MemcachedSpec struct {
	// How many memcached pods run.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +kubebuilder:default=1
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=1,displayName="Size",xDescriptors="urn:alm:descriptor:com.tectonic.ui:podCount"
	Size int32 `json:"size,omitempty"`

	// The port that memcached listens on and the Service offers.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:default=11211
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Port",xDescriptors="urn:alm:descriptor:com.tectonic.ui:number"
	ContainerPort int32 `json:"containerPort,omitempty"`

	// The memcached image: any image reference. Without one the operator's own default is used.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Image",xDescriptors="urn:alm:descriptor:com.tectonic.ui:text"
	Image string `json:"image,omitempty"`
}

// MemcachedStatus says what was observed.
type MemcachedStatus struct {
	// Names of the memcached pods, sorted.
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Nodes"
	Nodes []string `json:"nodes,omitempty"`

	// Available, Progressing and Degraded.
	// +listType=map
	// +listMapKey=type
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Memcached is a group of memcached servers behind one Service.
//
// +kubebuilder:object:root=true
// +operator-sdk:csv:customresourcedefinitions:displayName="Memcached",resources={{Deployment,v1,""},{NetworkPolicy,v1,""},{Pod,v1,""},{PodDisruptionBudget,v1,""},{Service,v1,""}}
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=memcacheds,shortName=mc,categories=cache
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`,priority=1
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
