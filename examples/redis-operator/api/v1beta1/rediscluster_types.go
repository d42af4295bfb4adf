package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeletionPolicy says what happens to the data when a RedisCluster is deleted.
// +kubebuilder:validation:Enum=Backup;Delete
type DeletionPolicy string

const (
	// DeletionPolicyBackup writes a backup before the servers are deleted. It is the default.
	DeletionPolicyBackup DeletionPolicy = "Backup"
	// DeletionPolicyDelete deletes the servers without a backup.
	DeletionPolicyDelete DeletionPolicy = "Delete"
)

// StorageSpec defines the volumes of the servers.
type StorageSpec struct {
	// size of each server's volume. It cannot be changed.
	// +kubebuilder:default="1Gi"
	// +optional
	Size resource.Quantity `json:"size,omitempty"`

	// className is the class of the volumes; the cluster's default class if it is not set.
	// +optional
	ClassName *string `json:"className,omitempty"`
}

// BackupReference names a backup.
type BackupReference struct {
	// secretName is the name of a backup's Secret in the namespace of the RedisCluster.
	// +kubebuilder:validation:MinLength=1
	// +required
	SecretName string `json:"secretName"`
}

// RedisClusterSpec defines the desired state of RedisCluster.
type RedisClusterSpec struct {
	// replicas is the number of Redis servers.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// image of the Redis servers. By default the one that this release of the operator was tested with.
	// +optional
	Image string `json:"image,omitempty"`

	// storage defines the volumes of the servers.
	// +kubebuilder:default={}
	// +optional
	Storage StorageSpec `json:"storage,omitempty"`

	// config holds directives of redis.conf, such as maxmemory.
	// +optional
	Config map[string]string `json:"config,omitempty"`

	// deletionPolicy says what happens to the data when the RedisCluster is deleted: Backup (the default) or Delete.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// maxUnavailable is the number of servers that may be evicted at the same time, 1 by default.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxUnavailable *int32 `json:"maxUnavailable,omitempty"`

	// restoreFrom names a backup whose keys are written into the servers, once, as soon as all are ready.
	// +optional
	RestoreFrom *BackupReference `json:"restoreFrom,omitempty"`
}

// RedisClusterStatus defines the observed state of RedisCluster.
type RedisClusterStatus struct {
	// readyReplicas is the number of servers that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// restoredFrom is the name of the backup that was restored.
	// +optional
	RestoredFrom string `json:"restoredFrom,omitempty"`

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
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
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
