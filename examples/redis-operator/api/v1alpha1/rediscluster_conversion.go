package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	redisv1beta1 "github.com/olmkit/olmkit/examples/redis-operator/api/v1beta1"
)

// hubAnnotation keeps what v1beta1 says and v1alpha1 cannot, so that nothing is lost on the way there and back.
const hubAnnotation = "redis.example.com/v1beta1"

// hubFields are the fields that only v1beta1 has.
type hubFields struct {
	DeletionPolicy redisv1beta1.DeletionPolicy   `json:"deletionPolicy,omitempty"`
	MaxUnavailable *int32                        `json:"maxUnavailable,omitempty"`
	RestoreFrom    *redisv1beta1.BackupReference `json:"restoreFrom,omitempty"`
	RestoredFrom   string                        `json:"restoredFrom,omitempty"`
}

// ConvertTo converts this RedisCluster (v1alpha1) to the Hub version (v1beta1).
func (src *RedisCluster) ConvertTo(dstRaw conversion.Hub) error {
	dst := dstRaw.(*redisv1beta1.RedisCluster)
	dst.ObjectMeta = *src.ObjectMeta.DeepCopy()

	var only hubFields
	if kept, ok := dst.Annotations[hubAnnotation]; ok {
		if err := json.Unmarshal([]byte(kept), &only); err != nil {
			return fmt.Errorf("annotation %s of RedisCluster %s/%s is no JSON of this operator, remove it: %w",
				hubAnnotation, src.Namespace, src.Name, err)
		}
		if delete(dst.Annotations, hubAnnotation); len(dst.Annotations) == 0 {
			dst.Annotations = nil
		}
	}

	dst.Spec.Replicas = src.Spec.Size
	dst.Spec.Image = src.Spec.Image
	dst.Spec.Storage.Size = src.Spec.Storage.DeepCopy()
	dst.Spec.Storage.ClassName = src.Spec.StorageClassName
	dst.Spec.Config = src.Spec.Config
	dst.Spec.DeletionPolicy = only.DeletionPolicy
	dst.Spec.MaxUnavailable = only.MaxUnavailable
	dst.Spec.RestoreFrom = only.RestoreFrom

	dst.Status.ReadyReplicas = src.Status.ReadyReplicas
	dst.Status.RestoredFrom = only.RestoredFrom
	dst.Status.ObservedGeneration = src.Status.ObservedGeneration
	dst.Status.Conditions = src.Status.Conditions
	return nil
}

// ConvertFrom converts the Hub version (v1beta1) to this RedisCluster (v1alpha1).
func (dst *RedisCluster) ConvertFrom(srcRaw conversion.Hub) error {
	src := srcRaw.(*redisv1beta1.RedisCluster)
	dst.ObjectMeta = *src.ObjectMeta.DeepCopy()

	dst.Spec.Size = src.Spec.Replicas
	dst.Spec.Image = src.Spec.Image
	dst.Spec.Storage = src.Spec.Storage.Size.DeepCopy()
	dst.Spec.StorageClassName = src.Spec.Storage.ClassName
	dst.Spec.Config = src.Spec.Config

	dst.Status.ReadyReplicas = src.Status.ReadyReplicas
	dst.Status.ObservedGeneration = src.Status.ObservedGeneration
	dst.Status.Conditions = src.Status.Conditions

	only := hubFields{
		DeletionPolicy: src.Spec.DeletionPolicy,
		MaxUnavailable: src.Spec.MaxUnavailable,
		RestoreFrom:    src.Spec.RestoreFrom,
		RestoredFrom:   src.Status.RestoredFrom,
	}
	if equality.Semantic.DeepEqual(only, hubFields{}) {
		return nil
	}
	kept, err := json.Marshal(only)
	if err != nil {
		return fmt.Errorf("keep the fields of v1beta1 of RedisCluster %s/%s: %w", src.Namespace, src.Name, err)
	}
	dst.Annotations = maps.Clone(dst.Annotations)
	if dst.Annotations == nil {
		dst.Annotations = map[string]string{}
	}
	dst.Annotations[hubAnnotation] = string(kept)
	return nil
}
