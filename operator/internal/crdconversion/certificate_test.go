package crdconversion

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func csv(version string) metav1.OwnerReference {
	no := false
	return metav1.OwnerReference{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "memcached-operator.v" + version,
		UID: types.UID("uid of " + version), Controller: &no, BlockOwnerDeletion: &no,
	}
}

// Three releases one after the other: OLM makes the Secret for the first, and for each writes the Service anew.
func TestKeepCertificate(t *testing.T) {
	t.Parallel()
	meta := func(name string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "operators", Name: name, OwnerReferences: owners}
	}
	secret := &corev1.Secret{ObjectMeta: meta(Secret, csv("1")), Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k"), AuthorityKey: []byte("a")}}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"}
	byName := cmpopts.SortSlices(func(a, b metav1.OwnerReference) bool { return a.Name < b.Name })
	c := fake.NewClientBuilder().WithObjects(secret, &corev1.Service{ObjectMeta: meta(Service)}).Build()
	for _, step := range []struct {
		service []metav1.OwnerReference
		want    []metav1.OwnerReference
		err     string
	}{
		{service: []metav1.OwnerReference{csv("1")}, want: []metav1.OwnerReference{csv("1")}},
		{service: []metav1.OwnerReference{other, csv("2")}, want: []metav1.OwnerReference{csv("1"), csv("2")}},
		{service: []metav1.OwnerReference{csv("2")}, want: []metav1.OwnerReference{csv("1"), csv("2")}},
		{service: []metav1.OwnerReference{csv("3")}, want: []metav1.OwnerReference{csv("1"), csv("2"), csv("3")}},
		{service: []metav1.OwnerReference{other}, want: []metav1.OwnerReference{csv("1"), csv("2"), csv("3")}, err: "belongs to no CSV"},
	} {
		var s corev1.Service
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "operators", Name: Service}, &s); err != nil {
			t.Fatal(err)
		}
		s.OwnerReferences = step.service
		if err := c.Update(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		err := KeepCertificate(t.Context(), c, c, "operators")
		if step.err == "" && err != nil || step.err != "" && (err == nil || !strings.Contains(err.Error(), step.err)) {
			t.Fatalf("%v, wanted %q", err, step.err)
		}
		var got corev1.Secret
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, got.OwnerReferences, byName); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(secret.Data, got.Data); diff != "" || got.Type != secret.Type {
			t.Errorf("type %s, data %s", got.Type, diff)
		}
	}
}

// OLM makes a Secret that is gone anew; the manager does not ask for what it may not do.
func TestKeepCertificateThatIsGone(t *testing.T) {
	t.Parallel()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: Service, OwnerReferences: []metav1.OwnerReference{csv("1")}}}
	c := fake.NewClientBuilder().WithObjects(service).Build()
	if err := KeepCertificate(t.Context(), c, c, "operators"); !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
}

func TestKeepCertificateWithoutService(t *testing.T) {
	t.Parallel()
	c := fake.NewClientBuilder().Build()
	if err := KeepCertificate(t.Context(), c, c, "operators"); err == nil || !strings.Contains(err.Error(), "operators/"+Service) {
		t.Errorf("%v", err)
	}
}
