package operand

import (
	"crypto/sha256"
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// compacted is the type of managedFields that hold the digest of the fields that the operator manages, in place of their names. The
// API server knows no such type, and so nobody else can set it.
const compacted = "Digest"

// Compact is a cache's transform. It leaves of an object of an operand what the operator reads: which one it is, whose, the
// digest of the fields that the operator applied and still manages, and of a Deployment its size and how its rollout goes.
// What is no such object, or is compact, stays as it is. It returns no error.
func Compact(in any) (any, error) {
	if object, ok := in.(client.Object); ok {
		return compact(object), nil
	}
	return in, nil
}

func compact(object client.Object) client.Object {
	if isCompact(object) {
		return object
	}
	m := metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), Generation: object.GetGeneration(), DeletionTimestamp: object.GetDeletionTimestamp(),
		OwnerReferences: object.GetOwnerReferences(), Finalizers: object.GetFinalizers(),
	}
	if applied(object) {
		m.ManagedFields = []metav1.ManagedFieldsEntry{ownFields(object)}
	}
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &appsv1.Deployment{ObjectMeta: m, Spec: appsv1.DeploymentSpec{Replicas: o.Spec.Replicas}, Status: rollout(o.Status)}
	case *corev1.Service:
		return &corev1.Service{ObjectMeta: m}
	case *policyv1.PodDisruptionBudget:
		return &policyv1.PodDisruptionBudget{ObjectMeta: m}
	case *networkingv1.NetworkPolicy:
		return &networkingv1.NetworkPolicy{ObjectMeta: m}
	}
	return object
}

// ownFields is the digest of the fields of an object that the operator manages. Without one, since they could not be read, they
// are applied once more.
func ownFields(object client.Object) metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{Manager: FieldOwner, Operation: metav1.ManagedFieldsOperationApply, FieldsType: compacted}
	if fields, err := extract(object); err == nil {
		entry.FieldsV1 = metav1.NewFieldsV1(digest(fields))
	}
	return entry
}

// rollout is how a Deployment's rollout goes, and what is wrong with it, if anything.
func rollout(s appsv1.DeploymentStatus) appsv1.DeploymentStatus {
	out := appsv1.DeploymentStatus{ObservedGeneration: s.ObservedGeneration, Replicas: s.Replicas, UpdatedReplicas: s.UpdatedReplicas, AvailableReplicas: s.AvailableReplicas}
	for _, condition := range s.Conditions {
		if failing(condition) {
			out.Conditions = append(out.Conditions, condition)
		}
	}
	return out
}

func isCompact(object client.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.FieldsType == compacted })
}

// asApplied says that the fields which the operator applied are those of wanted, and that nobody took one away from it.
func asApplied(object client.Object, wanted any) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.FieldsType == compacted && e.FieldsV1 != nil && e.FieldsV1.GetRawString() == digest(wanted)
	})
}

// extract returns the apply configuration with the fields that the operator applied and still manages.
func extract(object client.Object) (any, error) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return appsv1ac.ExtractDeployment(o, FieldOwner)
	case *corev1.Service:
		return corev1ac.ExtractService(o, FieldOwner)
	case *policyv1.PodDisruptionBudget:
		return policyv1ac.ExtractPodDisruptionBudget(o, FieldOwner)
	case *networkingv1.NetworkPolicy:
		return networkingv1ac.ExtractNetworkPolicy(o, FieldOwner)
	}
	return nil, nil
}

// digest is that of an apply configuration's JSON, in which quantities are canonical and what is empty is left out.
func digest(configuration any) string {
	text, err := json.Marshal(configuration)
	if err != nil {
		panic(err) // apply configurations are structs of strings, numbers, and maps by strings
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}
