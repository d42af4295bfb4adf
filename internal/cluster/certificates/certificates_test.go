package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
)

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	a, err := NewAuthority("tea")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestServerTLS has clients that trust the authority reach a server at the host that its certificate is for.
func TestServerTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	config, err := a.ServerTLS("registry", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = connection.(*tls.Conn).Handshake() }()
		}
	}()
	dial := func(trusted *x509.CertPool) error {
		connection, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", listener.Addr().String(), &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12})
		if err == nil {
			_ = connection.Close()
		}
		return err
	}
	own := x509.NewCertPool()
	own.AppendCertsFromPEM(a.PEM)
	if err := dial(own); err != nil {
		t.Errorf("who trusts the authority: %v", err)
	}
	other := x509.NewCertPool()
	other.AddCert(newAuthority(t).Certificate)
	if dial(other) == nil {
		t.Error("who trusts another authority reaches the server, too")
	}
}

func object(apiVersion, kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func certificateFor(names ...any) *unstructured.Unstructured {
	return object("cert-manager.io/v1", "Certificate", "operators", "tea", map[string]any{"spec": map[string]any{"secretName": "tea-cert", "dnsNames": names}})
}

func webhooksOf(annotation string) *unstructured.Unstructured {
	o := object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "tea", map[string]any{
		"webhooks": []any{map[string]any{"name": "one", "clientConfig": map[string]any{}}, map[string]any{"name": "two", "clientConfig": map[string]any{"caBundle": "b2xk"}}},
	})
	o.SetAnnotations(map[string]string{annotation: "operators/tea"})
	return o
}

func definitionWith(strategy string) *unstructured.Unstructured {
	o := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "teas.example.com", map[string]any{
		"spec": map[string]any{"conversion": map[string]any{"strategy": strategy}},
	})
	o.SetAnnotations(map[string]string{"cert-manager.io/inject-ca-from": "operators/tea"})
	return o
}

// cluster has objects, and a provider at work until the test ends.
func cluster(t *testing.T, a *Authority, objects ...runtime.Object) (*fake.Clientset, dynamic.Interface) {
	t.Helper()
	kinds := map[schema.GroupVersionResource]string{certificateResource: "CertificateList"}
	for r := range injected {
		kinds[r] = map[string]string{
			"customresourcedefinitions": "CustomResourceDefinitionList", "validatingwebhookconfigurations": "ValidatingWebhookConfigurationList",
			"mutatingwebhookconfigurations": "MutatingWebhookConfigurationList",
		}[r.Resource]
	}
	client, objectsClient := fake.NewClientset(), dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	if err := start(ctx, client, objectsClient, a); err != nil {
		t.Fatal(err)
	}
	return client, objectsClient
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// TestProvideIssues fills the Secret of a Certificate, and again when it is to be for another name.
func TestProvideIssues(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	client, objects := cluster(t, a, certificateFor("tea.operators.svc"))
	servesAt := func(name string) bool {
		secret, err := client.CoreV1().Secrets("operators").Get(t.Context(), "tea-cert", metav1.GetOptions{})
		if err != nil || string(secret.Data["ca.crt"]) != string(a.PEM) || secret.Type != corev1.SecretTypeTLS {
			return false
		}
		pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return slices.Equal(leaf.DNSNames, []string{name}) && leaf.CheckSignatureFrom(a.Certificate) == nil
	}
	eventually(t, "the Secret has a certificate", func() bool { return servesAt("tea.operators.svc") })
	if _, err := objects.Resource(certificateResource).Namespace("operators").Update(t.Context(), certificateFor("milk.operators.svc"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Secret has a certificate for the other name", func() bool { return servesAt("milk.operators.svc") })
}

// TestProvideInjects has the API server trust the authority at webhooks that ask for it.
func TestProvideInjects(t *testing.T) {
	t.Parallel()
	for _, annotation := range []string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret"} {
		a := newAuthority(t)
		_, objects := cluster(t, a, webhooksOf(annotation), definitionWith("Webhook"))
		want := base64.StdEncoding.EncodeToString(a.PEM)
		for r, name := range map[schema.GroupVersionResource]string{
			{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}: "tea",
			{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}:               "teas.example.com",
		} {
			eventually(t, annotation+" of "+r.Resource, func() bool {
				o, err := objects.Resource(r).Get(t.Context(), name, metav1.GetOptions{})
				return err == nil && trusts(o, want)
			})
		}
	}
}

// trusts reports whether each webhook of o has the given authority.
func trusts(o *unstructured.Unstructured, authority string) bool {
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	if conversion, ok, _ := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook"); ok {
		webhooks = append(webhooks, conversion)
	}
	for _, w := range webhooks {
		if now, _, _ := unstructured.NestedString(w.(map[string]any), "clientConfig", "caBundle"); now != authority {
			return false
		}
	}
	return len(webhooks) > 0
}

// What does not ask for the authority, or has it, stays as it is.
func TestInjectsNoMore(t *testing.T) {
	t.Parallel()
	if o := definitionWith("None"); injectDefinition(o, "Y2E=") || trusts(o, "Y2E=") {
		t.Errorf("a definition without a webhook became %v", o.Object)
	}
	o := webhooksOf("")
	if !injectWebhooks(o, "Y2E=") || injectWebhooks(o, "Y2E=") {
		t.Error("webhooks are to be changed once")
	}
	a := newAuthority(t)
	if block, _ := pem.Decode(a.PEM); block == nil || block.Type != "CERTIFICATE" {
		t.Errorf("the authority is %s", a.PEM)
	}
}
