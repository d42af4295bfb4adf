package certs

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const host = "hooks.system.svc"

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// What is kept and what is made anew, and that it is all trusted, as time goes by.
func TestRenewed(t *testing.T) {
	t.Parallel()
	first, err := pems{}.renewed(host, epoch)
	if err != nil {
		t.Fatal(err)
	}
	broken := func(change func(*pems)) pems {
		p := first
		change(&p)
		return p
	}
	year := 365 * 24 * time.Hour
	for name, test := range map[string]struct {
		from            pems
		host            string
		at              time.Duration
		sameCA, samePEM bool
		trusted         int
	}{
		"nothing is due":             {first, host, 7 * 30 * 24 * time.Hour, true, true, 1},
		"the certificate ends soon":  {first, host, 9 * 30 * 24 * time.Hour, true, false, 1},
		"the certificate has ended":  {first, host, 2 * year, true, false, 1},
		"the authority ends soon":    {first, host, 8 * year, false, false, 2},
		"the authority has ended":    {first, host, 11 * year, false, false, 1},
		"not valid yet":              {first, host, -year, false, false, 2},
		"another host":               {first, "other.system.svc", 0, true, false, 1},
		"a broken certificate":       {broken(func(p *pems) { p.certificate = []byte("nonsense") }), host, 0, true, false, 1},
		"a key of something else":    {broken(func(p *pems) { p.key = first.caKey }), host, 0, true, false, 1},
		"a broken authority":         {broken(func(p *pems) { p.ca = []byte("nonsense") }), host, 0, false, false, 1},
		"an authority without a key": {broken(func(p *pems) { p.caKey = nil }), host, 0, false, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := epoch.Add(test.at)
			got, err := test.from.renewed(test.host, now)
			if err != nil {
				t.Fatal(err)
			}
			if same := bytes.Equal(got.ca, test.from.ca); same != test.sameCA {
				t.Errorf("the same authority: %v", same)
			}
			if same := bytes.Equal(got.certificate, test.from.certificate); same != test.samePEM {
				t.Errorf("the same certificate: %v", same)
			}
			if trusted := bytes.Count(got.ca, []byte("BEGIN CERTIFICATE")); trusted != test.trusted {
				t.Errorf("%d authorities are trusted", trusted)
			}
			again, err := got.renewed(test.host, now)
			if err != nil || !again.equal(got) {
				t.Errorf("made anew once more: %v", err)
			}
		})
	}
}

// Two managers start, one after the other, and a third finds the Secret gone and the trust taken away.
func TestEnsure(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensions.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	crd := &apiextensions.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "crd"}}
	crd.Spec.Conversion = &apiextensions.CustomResourceConversion{Strategy: apiextensions.WebhookConverter, Webhook: &apiextensions.WebhookConversion{ClientConfig: &apiextensions.WebhookClientConfig{}}}
	mutating := &admissionregistration.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionregistration.MutatingWebhook{{Name: "a"}, {Name: "b"}}}
	validating := &admissionregistration.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionregistration.ValidatingWebhook{{Name: "a"}}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(crd, mutating, validating).Build()
	authority := func() *Authority {
		return &Authority{
			Client: c, API: c, Log: logr.Discard(), Now: func() time.Time { return epoch },
			Namespace: "system", Secret: "certificate", Service: "hooks", CRD: "crd", Mutating: "m", Validating: "v",
		}
	}
	read := func(key string, object client.Object) {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: object.GetNamespace(), Name: key}, object); err != nil {
			t.Fatal(err)
		}
	}
	check := func(a *Authority) *corev1.Secret {
		t.Helper()
		if err := a.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system"}}
		read("certificate", secret)
		read("crd", crd)
		read("m", mutating)
		read("v", validating)
		ca := secret.Data["ca.crt"]
		for _, bundle := range [][]byte{crd.Spec.Conversion.Webhook.ClientConfig.CABundle, mutating.Webhooks[0].ClientConfig.CABundle, mutating.Webhooks[1].ClientConfig.CABundle, validating.Webhooks[0].ClientConfig.CABundle} {
			if diff := cmp.Diff(string(ca), string(bundle)); diff != "" {
				t.Error(diff)
			}
		}
		shown, err := a.Certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca)
		if _, err := shown.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: epoch}); err != nil {
			t.Error(err)
		}
		return secret
	}
	if _, err := authority().Certificate(nil); err == nil {
		t.Error("a certificate out of nothing")
	}
	one := check(authority())
	version := crd.ResourceVersion
	two := check(authority())
	if diff := cmp.Diff(one.Data, two.Data); diff != "" || crd.ResourceVersion != version {
		t.Errorf("the second manager changed what the first had made: %s", diff)
	}
	crd.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
	if err := c.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	if three := check(authority()); bytes.Equal(three.Data["ca.crt"], one.Data["ca.crt"]) {
		t.Error("the authority outlived its Secret")
	}
	// Before the CRD and the configurations are there, there is nothing to tell.
	for _, object := range []client.Object{crd, mutating, validating} {
		if err := c.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := authority().Ensure(t.Context()); err != nil {
		t.Error(err)
	}
}

// While a manager serves, its Secret is deleted: until it looks again, after showing the new certificate, the old authority
// stays trusted. Between looks that find the same Secret, it writes nothing.
func TestReplacedSecret(t *testing.T) {
	t.Parallel()
	mutating := &admissionregistration.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionregistration.MutatingWebhook{{Name: "a"}}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensions.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(mutating).Build()
	now := epoch
	a := &Authority{
		Client: c, API: c, Log: logr.Discard(), Now: func() time.Time { return now },
		Namespace: "system", Secret: "certificate", Service: "hooks", CRD: "crd", Mutating: "m", Validating: "v",
	}
	secret := &corev1.Secret{}
	for _, step := range []struct {
		name    string
		before  func() error
		new     bool // certificate
		trusted int
	}{
		{"at first", func() error { return nil }, true, 1},
		{"nothing happened", func() error { now = now.Add(secretPeriod); return nil }, false, 1},
		{"the Secret is deleted", func() error { now = now.Add(secretPeriod); return c.Delete(t.Context(), secret) }, true, 2},
		{"nothing happened since", func() error { now = now.Add(secretPeriod); return nil }, false, 2},
		{"it is time to look at all", func() error { now = now.Add(period); return nil }, false, 1},
		{"the certificate is taken out", func() error {
			now = now.Add(secretPeriod)
			secret.Data[corev1.TLSCertKey] = nil
			return c.Update(t.Context(), secret)
		}, true, 1},
	} {
		before := a.serving.Load()
		if err := step.before(); err != nil {
			t.Fatal(err)
		}
		if err := a.check(t.Context()); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "system", Name: "certificate"}, secret); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "m"}, mutating); err != nil {
			t.Fatal(err)
		}
		if renewed := a.serving.Load() != before; renewed && !step.new && !bytes.Equal(a.serving.Load().Leaf.Raw, before.Leaf.Raw) || step.new && !renewed {
			t.Errorf("%s: another certificate: %v", step.name, renewed)
		}
		bundle := mutating.Webhooks[0].ClientConfig.CABundle
		if trusted := bytes.Count(bundle, []byte("BEGIN CERTIFICATE")); trusted != step.trusted || !bytes.HasPrefix(bundle, secret.Data[Key]) {
			t.Errorf("%s: %d authorities are trusted", step.name, trusted)
		}
	}
}
