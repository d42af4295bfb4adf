package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RedisClusterSpec defines the desired state of RedisCluster.
type RedisClusterSpec struct {
	// size is the number of Redis servers.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	// +optional
	Size int32 `json:"size,omitempty"`

	// image of the Redis servers. By default the one that this release of the operator was tested with.
	// +optional
	Image string `json:"image,omitempty"`

	// storage is the size of each server's volume. It cannot be changed.
	// +kubebuilder:default="1Gi"
	// +optional
	Storage resource.Quantity `json:"storage,omitempty"`

	// storageClassName is the class of the volumes; the cluster's default class if it is not set.
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// config holds directives of redis.conf, such as maxmemory.
	// +optional
	Config map[string]string `json:"config,omitempty"`
}

// RedisClusterStatus defines the observed state of RedisCluster.
type RedisClusterStatus struct {
	// readyReplicas is the number of servers that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions represent the current state of the RedisCluster.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`

// RedisCluster is the Schema for the redisclusters API.
type RedisCluster struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec RedisClusterSpec `json:"spec,omitempty"`

	// +optional
	Status RedisClusterStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// RedisClusterList contains a list of RedisCluster.
type RedisClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RedisCluster `json:"items"`
}
