package manager

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/operator/internal/operand"
)

// caching keeps of the cluster only what the operator manages, in the namespaces that it watches, and of that only what it reads.
func caching(namespaces []string, managedFields bool) cache.Options {
	managed := cache.ByObject{Label: operand.Managed.AsSelector(), Transform: operand.Compact}
	pods := cache.ByObject{Label: operand.Managed.AsSelector(), Transform: readinessAlone}
	options := cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}: managed, &corev1.Service{}: managed, &corev1.Pod{}: pods,
			&policyv1.PodDisruptionBudget{}: managed, &networkingv1.NetworkPolicy{}: managed,
			&corev1.ConfigMap{}: {Transform: nameAlone},
		},
	}
	if !managedFields {
		options.DefaultTransform = cache.TransformStripManagedFields()
	}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// readinessAlone leaves of a pod which one it is, whose, whether it is ready and whether it goes.
func readinessAlone(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
			DeletionTimestamp: pod.DeletionTimestamp, DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if name, ok := pod.Annotations[operand.OwnerAnnotation]; ok {
		kept.Annotations = map[string]string{operand.OwnerAnnotation: name}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			kept.Status.Conditions = []corev1.PodCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return kept, nil
}

// nameAlone leaves of an object whose metadata is watched its name and its version.
func nameAlone(in any) (any, error) {
	if object, ok := in.(*metav1.PartialObjectMetadata); ok {
		object.ObjectMeta = metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion}
	}
	return in, nil
}
