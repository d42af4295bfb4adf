package observe

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestHolderOf(t *testing.T) {
	owned := func(kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: "p"}}}
	}
	noted := metav1.ObjectMeta{Annotations: map[string]string{"control-plane.alpha.kubernetes.io/leader": `{"holderIdentity":"p_1"}`}}
	for _, test := range []struct {
		name   string
		o      metav1.Object
		holder string
		is     bool
	}{
		{"a Lease", &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("p_1")}}, "p_1", true},
		{"a Lease that is free", &coordinationv1.Lease{}, "", true},
		{"an annotation", &metav1.PartialObjectMetadata{ObjectMeta: noted}, "p_1", true},
		{"an annotation that is none", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"control-plane.alpha.kubernetes.io/leader": "{"}}}, "", false},
		{"a ConfigMap of a pod", &metav1.PartialObjectMetadata{ObjectMeta: owned("Pod")}, "p", true},
		{"a ConfigMap of a Deployment", &metav1.PartialObjectMetadata{ObjectMeta: owned("Deployment")}, "", false},
	} {
		if holder, is := holderOf(test.o); holder != test.holder || is != test.is {
			t.Errorf("%s: %q, %v", test.name, holder, is)
		}
	}
}
