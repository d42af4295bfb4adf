package certificates

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Limitation is what a walk on a cluster with Provide does not cover.
const Limitation = "olmkit issued certificates and injected their authority in cert-manager's place"

// Kinds that the provider looks after.
var (
	certificateResource = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	injected            = map[schema.GroupVersionResource]func(o *unstructured.Unstructured, ca string) bool{
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}:               injectDefinition,
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}: injectWebhooks,
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}:   injectWebhooks,
	}
)

// provider puts a certificate of the cluster's authority into the Secret of each Certificate, whichever its issuer, and the authority
// into what has an annotation that asks for one. Certificates are not renewed: they outlive the cluster.
type provider struct {
	authority *Authority
	client    kubernetes.Interface
	dynamic   dynamic.Interface
	queue     workqueue.TypedRateLimitingInterface[certificateKey]
}

type certificateKey struct {
	schema.GroupVersionResource
	namespace, name string
}

// Provide issues certificates of authority on the cluster of config, and injects it, as cert-manager does, until ctx ends. Its kinds
// must be served.
func Provide(ctx context.Context, config *rest.Config, authority *Authority) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	return start(ctx, client, dynamicClient, authority)
}

func start(ctx context.Context, client kubernetes.Interface, dynamicClient dynamic.Interface, authority *Authority) error {
	p := &provider{
		authority: authority, client: client, dynamic: dynamicClient,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[certificateKey](50*time.Millisecond, 5*time.Second)),
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)
	resources := []schema.GroupVersionResource{certificateResource}
	for r := range injected {
		resources = append(resources, r)
	}
	for _, r := range resources {
		add := func(object any) {
			if o, ok := object.(*unstructured.Unstructured); ok {
				p.queue.Add(certificateKey{r, o.GetNamespace(), o.GetName()})
			}
		}
		if _, err := factory.ForResource(r).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: add, UpdateFunc: func(_, now any) { add(now) },
		}); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	go func() {
		<-ctx.Done()
		p.queue.ShutDown()
	}()
	go p.work(ctx)
	return nil
}

func (p *provider) work(ctx context.Context) {
	for {
		key, end := p.queue.Get()
		if end {
			return
		}
		if err := p.reconcile(ctx, key); err != nil && !apierrors.IsNotFound(err) {
			p.queue.AddRateLimited(key)
		} else {
			p.queue.Forget(key)
		}
		p.queue.Done(key)
	}
}

func (p *provider) reconcile(ctx context.Context, key certificateKey) error {
	at := p.dynamic.Resource(key.GroupVersionResource).Namespace(key.namespace)
	o, err := at.Get(ctx, key.name, metav1.GetOptions{})
	if err != nil || o.GetDeletionTimestamp() != nil {
		return err
	}
	if key.GroupVersionResource == certificateResource {
		return p.issue(ctx, o)
	}
	asks := slices.ContainsFunc([]string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret"}, func(annotation string) bool {
		return o.GetAnnotations()[annotation] != ""
	})
	if asks && injected[key.GroupVersionResource](o, base64.StdEncoding.EncodeToString(p.authority.PEM)) {
		_, err = at.Update(ctx, o, metav1.UpdateOptions{FieldManager: "certificate-provider"})
	}
	return err
}

// namesAnnotation holds, on a Secret, for which names its certificate is, as cert-manager has it.
const namesAnnotation = "cert-manager.io/alt-names"

// issue fills the Secret of certificate, unless it holds a certificate for these names already.
func (p *provider) issue(ctx context.Context, certificate *unstructured.Unstructured) error {
	names, _, err := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	if err != nil {
		return err
	}
	addresses, _, err := unstructured.NestedStringSlice(certificate.Object, "spec", "ipAddresses")
	if err != nil {
		return err
	}
	secretName, _, err := unstructured.NestedString(certificate.Object, "spec", "secretName")
	names = append(names, addresses...)
	if err != nil || secretName == "" || len(names) == 0 {
		return err
	}
	secrets := p.client.CoreV1().Secrets(certificate.GetNamespace())
	wanted := strings.Join(names, ",")
	now, err := secrets.Get(ctx, secretName, metav1.GetOptions{})
	if err == nil && now.Annotations[namesAnnotation] == wanted {
		return nil
	}
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return err
	}
	leaf, key, err := p.authority.Issue(certificate.GetName(), names...)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: certificate.GetNamespace(), Name: secretName, Annotations: map[string]string{namesAnnotation: wanted},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: certificate.GetAPIVersion(), Kind: certificate.GetKind(), Name: certificate.GetName(), UID: certificate.GetUID(),
			}},
		},
		Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"ca.crt": p.authority.PEM, corev1.TLSCertKey: leaf, corev1.TLSPrivateKeyKey: key},
	}
	if missing {
		_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	} else {
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	return err
}

// injectDefinition has the API server trust ca at the conversion webhook of a CustomResourceDefinition, and tells whether it did
// not before.
func injectDefinition(o *unstructured.Unstructured, ca string) bool {
	strategy, _, _ := unstructured.NestedString(o.Object, "spec", "conversion", "strategy")
	path := []string{"spec", "conversion", "webhook", "clientConfig", "caBundle"}
	now, _, _ := unstructured.NestedString(o.Object, path...)
	return strategy == "Webhook" && now != ca && unstructured.SetNestedField(o.Object, ca, path...) == nil
}

// injectWebhooks does so for the webhooks of a configuration.
func injectWebhooks(o *unstructured.Unstructured, ca string) bool {
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	changed := false
	for _, w := range webhooks {
		webhook, ok := w.(map[string]any)
		if !ok {
			continue
		}
		now, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle")
		changed = now != ca && unstructured.SetNestedField(webhook, ca, "clientConfig", "caBundle") == nil || changed
	}
	return changed && unstructured.SetNestedSlice(o.Object, webhooks, "webhooks") == nil
}
