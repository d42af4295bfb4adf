package fault

import (
	"context"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
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
