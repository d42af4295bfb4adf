package fault

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/observe"
)

// OLM writes the same objects: a write that comes too late is made again, and what is put back is what was there.
func TestReplaceCertificatesWhileOLMWrites(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "cert", Labels: map[string]string{"olm.managed": "true"}},
		Type:       corev1.SecretTypeTLS, Data: map[string][]byte{corev1.TLSCertKey: []byte("mine"), corev1.TLSPrivateKeyKey: []byte("key")},
	}
	hook := func(ca string) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{Name: ca, ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "n"}, CABundle: []byte(ca)}}
	}
	hooks := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{hook("one"), hook("two")},
	}
	late := map[string]bool{}
	c := fake.NewClientBuilder().WithScheme(olmv0.Scheme()).WithObjects(secret, hooks).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if !late[o.GetName()] {
				late[o.GetName()] = true
				return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), nil)
			}
			return c.Update(ctx, o, options...)
		},
	}).Build()
	s := &Set{Hop: Hop{Cluster: &observe.Cluster{Manager: &olmv0.Client{WithWatch: c}, Client: c, Place: lifecycle.Place{Namespace: "n"}}, From: &lifecycle.Release{}, To: &lifecycle.Release{}}}
	k := &Active{}
	if err := s.replaceCertificates(t.Context(), k, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	read := func() (string, []string) {
		t.Helper()
		for _, o := range []client.Object{secret, hooks} {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
		}
		return string(secret.Data[corev1.TLSCertKey]), []string{string(hooks.Webhooks[0].ClientConfig.CABundle), string(hooks.Webhooks[1].ClientConfig.CABundle)}
	}
	if certificate, bundles := read(); certificate == "mine" || bundles[0] == "one" || bundles[0] != bundles[1] {
		t.Errorf("replaced by %q, trusted by %q", certificate, bundles)
	}
	clear(late)
	if err := k.Undo.Run(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if certificate, bundles := read(); certificate != "mine" || bundles[0] != "one" || bundles[1] != "two" {
		t.Errorf("put back: %q, trusted by %q", certificate, bundles)
	}
}

// OLM installs the release again while the fault's certificate is in the Secret, and has the API server trust its authority at a
// CRD that did not call a webhook of the namespace when the fault was made, and once more after the fault was undone. In the end
// it has to be the authority of the certificate that the operator serves with.
func TestReplaceCertificatesThatOLMTakesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, err := newCertificate([]string{"hooks.n.svc"}, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "cert", Labels: map[string]string{"olm.managed": "true"}},
			Type:       corev1.SecretTypeTLS, Data: map[string][]byte{corev1.TLSCertKey: own.certificate, corev1.TLSPrivateKeyKey: own.key, "olmCAKey": own.authority},
		}
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gadgets.example.com"}}
		convert := func(namespace string, ca []byte) {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: namespace, Name: "hooks"}, CABundle: ca}}}
		}
		convert("system", nil)
		c := fake.NewClientBuilder().WithScheme(olmv0.Scheme()).WithObjects(secret, crd).Build()
		to := &lifecycle.Release{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd.DeepCopy()}}
		s := &Set{Hop: Hop{Cluster: &observe.Cluster{Manager: &olmv0.Client{WithWatch: c}, Client: c, Place: lifecycle.Place{Namespace: "n"}}, From: &lifecycle.Release{}, To: to}}
		k := &Active{}
		if err := s.replaceCertificates(t.Context(), k, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		read := func(o client.Object) {
			t.Helper()
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
		}
		read(secret)
		theirs := secret.Data["olmCAKey"]
		if bytes.Equal(theirs, own.authority) {
			t.Fatal("the certificate is not replaced")
		}
		install := func() {
			read(crd)
			convert("n", theirs)
			if err := c.Update(t.Context(), crd); err != nil {
				t.Error(err)
			}
		}
		install()
		time.AfterFunc(time.Second, install)
		if err := k.Undo.Run(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		read(secret)
		read(crd)
		if ca := converter(crd).CABundle; !bytes.Equal(secret.Data[corev1.TLSCertKey], own.certificate) || !bytes.Equal(ca, own.authority) {
			t.Errorf("the Secret has authority\n%s, the CRD trusts\n%s", secret.Data["olmCAKey"], ca)
		}
	})
}
