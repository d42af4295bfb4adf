// Package resources says what the operator makes for a RedisCluster.
package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	redisv1beta1 "github.com/olmkit/olmkit/examples/redis-operator/api/v1beta1"
)

const (
	// Port is the one that servers listen on.
	Port = 6379

	configHashAnnotation = "redis.example.com/config-hash"
	configFile           = "redis.conf"
)

// Reserved are the directives of redis.conf that the operator sets itself.
var Reserved = []string{"appendonly", "bind", "dir", "port", "protected-mode"}

// Labels returns the labels of all that belongs to the RedisCluster called name. They select its pods.
func Labels(name string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       "redis",
		"app.kubernetes.io/instance":   name,
		"app.kubernetes.io/managed-by": "redis-operator",
	}
}

// meta names what is made for rc. All of it has the name of the RedisCluster.
func meta(rc *redisv1beta1.RedisCluster) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: rc.Namespace, Name: rc.Name, Labels: Labels(rc.Name)}
}

// ConfigMap returns the ConfigMap with redis.conf.
func ConfigMap(rc *redisv1beta1.RedisCluster) *corev1.ConfigMap {
	var conf strings.Builder
	fmt.Fprintf(&conf, "port %d\nbind * -::*\nprotected-mode no\ndir /data\nappendonly yes\n", Port)
	for _, key := range slices.Sorted(maps.Keys(rc.Spec.Config)) {
		fmt.Fprintf(&conf, "%s %s\n", key, rc.Spec.Config[key])
	}
	return &corev1.ConfigMap{ObjectMeta: meta(rc), Data: map[string]string{configFile: conf.String()}}
}

// Service returns the headless Service that gives each server a name.
func Service(rc *redisv1beta1.RedisCluster) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: meta(rc),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  Labels(rc.Name),
			Ports:     []corev1.ServicePort{{Name: "redis", Port: Port, TargetPort: intstr.FromString("redis")}},
		},
	}
}

// StatefulSet returns the StatefulSet of the servers, which run image unless the spec names another one.
func StatefulSet(rc *redisv1beta1.RedisCluster, image string) *appsv1.StatefulSet {
	if rc.Spec.Image != "" {
		image = rc.Spec.Image
	}
	return &appsv1.StatefulSet{
		ObjectMeta: meta(rc),
		Spec: appsv1.StatefulSetSpec{
			Replicas:    ptr.To(max(rc.Spec.Replicas, 1)),
			ServiceName: rc.Name,
			Selector:    &metav1.LabelSelector{MatchLabels: Labels(rc.Name)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      Labels(rc.Name),
					Annotations: map[string]string{configHashAnnotation: hash(ConfigMap(rc).Data[configFile])},
				},
				Spec: podSpec(rc, image),
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: Labels(rc.Name)},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					StorageClassName: rc.Spec.Storage.ClassName,
					Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: rc.Spec.Storage.Size}},
				},
			}},
		},
	}
}

func podSpec(rc *redisv1beta1.RedisCluster, image string) corev1.PodSpec {
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   ptr.To(true),
			RunAsUser:      ptr.To(int64(999)),
			FSGroup:        ptr.To(int64(999)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name:  "redis",
			Image: image,
			Args:  []string{"/etc/redis/" + configFile},
			Ports: []corev1.ContainerPort{{Name: "redis", ContainerPort: Port}},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("redis")}},
				PeriodSeconds: 2,
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "config", MountPath: "/etc/redis", ReadOnly: true},
				{Name: "data", MountPath: "/data"},
			},
		}},
		Volumes: []corev1.Volume{{
			Name: "config",
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: rc.Name},
			}},
		}},
	}
}

// PodDisruptionBudget returns the PodDisruptionBudget of the servers.
func PodDisruptionBudget(rc *redisv1beta1.RedisCluster) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: meta(rc),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(ptr.Deref(rc.Spec.MaxUnavailable, 1))),
			Selector:       &metav1.LabelSelector{MatchLabels: Labels(rc.Name)},
		},
	}
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
