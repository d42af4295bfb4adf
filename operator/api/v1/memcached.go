package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the API server fills in where a v1 document is silent.
const (
	DefaultReplicas        = 2
	DefaultPort            = 11211
	DefaultMemoryMegabytes = 64
	DefaultMaxConnections  = 1024
)

// MemcachedSpec says what is wanted.
type MemcachedSpec struct {
	// How many memcached pods run.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +kubebuilder:default=2
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=1,displayName="Replicas",xDescriptors="urn:alm:descriptor:com.tectonic.ui:podCount"
	Replicas int32 `json:"replicas,omitempty"`

	// The memcached image. Without one the operator's own default is used.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Image"
	Image *Image `json:"image,omitempty"`

	// How clients reach the servers.
	// +kubebuilder:default={}
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Service"
	Service Service `json:"service,omitzero"`

	// How memcached itself is set up.
	// +kubebuilder:default={}
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Cache"
	Cache Cache `json:"cache,omitzero"`

	// What each pod requests and is limited to. Without it, both are reckoned from the cache's memory.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Resources",xDescriptors="urn:alm:descriptor:com.tectonic.ui:resourceRequirements"
	Resources *Resources `json:"resources,omitempty"`
}

// Image is an image reference in its parts. Its length is bounded because the versions before this one carry what
// they cannot say in an annotation, and an object whose annotations outgrow the API server's limit could not be read.
//
// +kubebuilder:validation:XValidation:rule="(has(self.repository) ? size(self.repository) : 0) + (has(self.tag) ? size(self.tag) + 1 : 0) + (has(self.digest) ? size(self.digest) + 1 : 0) <= 1024",message="the whole image reference may have 1024 characters at most"
type Image struct {
	// Registry and path, for example ghcr.io/org/memcached. Without one the operator's default repository is used.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Repository string `json:"repository,omitempty"`

	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Tag string `json:"tag,omitempty"`

	// +kubebuilder:validation:Pattern=`^[a-z0-9]+([+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$`
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Digest string `json:"digest,omitempty"`

	// When the image is pulled. Without it, Kubernetes decides by the tag.
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pull policy",xDescriptors="urn:alm:descriptor:com.tectonic.ui:imagePullPolicy"
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`
}

// Service is the headless Service in front of the pods.
type Service struct {
	// The port that memcached listens on and the Service offers.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:default=11211
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Port",xDescriptors="urn:alm:descriptor:com.tectonic.ui:number"
	Port int32 `json:"port,omitempty"`
}

// Cache is memcached's own settings.
type Cache struct {
	// Memory for items, in megabytes.
	// +kubebuilder:validation:Minimum=8
	// +kubebuilder:validation:Maximum=1048576
	// +kubebuilder:default=64
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Memory",xDescriptors="urn:alm:descriptor:com.tectonic.ui:number"
	MemoryMegabytes int32 `json:"memoryMegabytes,omitempty"`

	// Simultaneous connections of each server.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +kubebuilder:default=1024
	// +optional
	MaxConnections int32 `json:"maxConnections,omitempty"`

	// Further arguments, after those that the operator sets.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	ExtraArgs []string `json:"extraArgs,omitempty"`

	// A ConfigMap in the Memcached's namespace, whose key args has arguments, one a line, that follow extraArgs. When it changes, so do
	// the servers.
	// +optional
	ExtraArgsFrom *ConfigMapReference `json:"extraArgsFrom,omitempty"`
}

// ConfigMapReference names a ConfigMap.
type ConfigMapReference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// Resources is written as a container's resources are, for the two kinds that memcached uses.
type Resources struct {
	// +optional
	Requests ResourceList `json:"requests,omitzero"`
	// +optional
	Limits ResourceList `json:"limits,omitzero"`
}

// ResourceList is an amount of processor time and of memory.
type ResourceList struct {
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// Types of a Memcached's conditions.
const (
	// ConditionAvailable is true while enough servers are ready to take requests.
	ConditionAvailable = "Available"
	// ConditionProgressing is true while the servers do not yet match the spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is true when the operator cannot bring about what the spec asks for.
	ConditionDegraded = "Degraded"
)

// MemcachedStatus says what was observed.
type MemcachedStatus struct {
	// The memcached pods by name.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Nodes"
	Nodes map[string]Node `json:"nodes,omitempty"`

	// How many pods are ready.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=1,displayName="Ready"
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// The labels of the pods, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// The generation of the spec that this status answers.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation"
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Available, Progressing and Degraded.
	// +listType=map
	// +listMapKey=type
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Node is one memcached pod.
type Node struct {
	// Whether the pod takes requests.
	// +required
	Ready bool `json:"ready"`
}

// Memcached is a group of memcached servers behind one Service.
//
// +kubebuilder:object:root=true
// +operator-sdk:csv:customresourcedefinitions:displayName="Memcached",resources={{Deployment,v1,""},{NetworkPolicy,v1,""},{Pod,v1,""},{PodDisruptionBudget,v1,""},{Service,v1,""}}
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.readyReplicas,selectorpath=.status.selector
// +kubebuilder:storageversion
// +kubebuilder:resource:path=memcacheds,shortName=mc,categories=cache
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Degraded",type=string,JSONPath=`.status.conditions[?(@.type=="Degraded")].status`,priority=1
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
