package fault

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	conflict "k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

const noWebhooks = inapplicable("no webhook has a certificate at this phase")

func (s *Set) loseCertificates(ctx context.Context, k *Active) error {
	secrets, err := s.Manager.Certificates(ctx, s.Place)
	if err != nil {
		return err
	}
	if len(secrets) == 0 {
		return noWebhooks
	}
	for i := range secrets {
		k.Undo.Push(func(ctx context.Context) error {
			was := secrets[i].DeepCopy()
			was.ResourceVersion, was.UID = "", ""
			if err := s.Client.Create(ctx, was); !apierrors.IsAlreadyExists(err) {
				return err
			}
			return nil
		})
		if err := s.Client.Delete(ctx, secrets[i].DeepCopy()); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func (s *Set) expireCertificates(ctx context.Context, k *Active) error {
	return s.replaceCertificates(ctx, k, time.Now().Add(-time.Minute))
}

func (s *Set) rotateCertificates(ctx context.Context, k *Active) error {
	return s.replaceCertificates(ctx, k, time.Now().Add(2*365*24*time.Hour))
}

// quiet is how long nothing may have come to trust a fault's certificates again before they count as gone: who installs the
// operator reads the Secret long before it writes what trusts it.
const quiet = 2 * time.Second

// replaceCertificates puts other certificates, which end at until, into the webhooks' Secrets, and their authority into
// what the API server trusts. What it wrote and nobody else has changed since is put back afterwards.
func (s *Set) replaceCertificates(ctx context.Context, k *Active, until time.Time) error {
	secrets, err := s.Manager.Certificates(ctx, s.Place)
	if err != nil {
		return err
	}
	if len(secrets) == 0 {
		return noWebhooks
	}
	var hosts []string
	for _, secret := range secrets {
		hosts = append(hosts, hostsOf(secret.Data[corev1.TLSCertKey])...)
	}
	pair, err := newCertificate(hosts, until)
	if err != nil {
		return err
	}
	was := map[string][][]byte{} // what each object trusted, by its kind and name
	k.Undo.Push(func(ctx context.Context) error { return s.trustAgain(ctx, pair, was) })
	for _, secret := range secrets {
		before := secret.DeepCopy()
		k.Undo.Push(func(ctx context.Context) error {
			return s.change(ctx, &corev1.Secret{}, before.Name, func(o client.Object) bool {
				now, ok := o.(*corev1.Secret)
				ours := ok && bytes.Equal(now.Data[corev1.TLSCertKey], pair.certificate)
				if ours {
					now.Data = before.Data
				}
				return ours
			})
		})
		if err := s.change(ctx, &secret, before.Name, func(client.Object) bool {
			secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey] = pair.certificate, pair.key
			secret.Data[s.Manager.AuthorityKey()] = pair.authority
			return true
		}); err != nil {
			return err
		}
	}
	return s.eachTrust(ctx, func(o client.Object) error {
		return s.change(ctx, o, o.GetName(), func(o client.Object) bool {
			var before [][]byte
			for _, t := range trusts(o, s.Place.Namespace) {
				before, *t.ca = append(before, *t.ca), pair.authority
			}
			was[trustName(o)] = before
			return len(before) > 0
		})
	})
}

// trustAgain takes away the trust in pair wherever it is by now: also where the one who installs the operator, who found pair in
// the Secret, put it. A webhook whose certificate is in a Secret trusts that one's authority, another what it did before.
func (s *Set) trustAgain(ctx context.Context, pair pair, was map[string][][]byte) error {
	for since := time.Now(); time.Since(since) < quiet; {
		secrets, err := s.Manager.Certificates(ctx, s.Place)
		if err != nil {
			return err
		}
		err = s.eachTrust(ctx, func(o client.Object) error {
			return s.change(ctx, o, o.GetName(), func(o client.Object) bool {
				ours := false
				for i, t := range trusts(o, s.Place.Namespace) {
					if !bytes.Equal(*t.ca, pair.authority) {
						continue
					}
					authority := s.authorityOf(secrets, t.service)
					if before := was[trustName(o)]; authority == nil && i < len(before) {
						authority = before[i]
					}
					if !bytes.Equal(authority, pair.authority) {
						*t.ca, ours, since = authority, true, time.Now()
					}
				}
				return ours
			})
		})
		if err != nil {
			return err
		}
		select {
		case <-time.After(quiet / 4):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// authorityOf is the certificate of the authority of the one of secrets that has a certificate for host, nil if none has.
func (s *Set) authorityOf(secrets []corev1.Secret, host string) []byte {
	for _, secret := range secrets {
		if slices.Contains(hostsOf(secret.Data[corev1.TLSCertKey]), host) {
			return secret.Data[s.Manager.AuthorityKey()]
		}
	}
	return nil
}

// trustName tells o from whatever else says whom the API server trusts.
func trustName(o client.Object) string { return fmt.Sprintf("%T %s", o, o.GetName()) }

// change reads the object called name anew, changes it, and writes it if there was something to change.
func (s *Set) change(ctx context.Context, o client.Object, name string, change func(client.Object) bool) error {
	key := client.ObjectKey{Name: name}
	if _, namespaced := o.(*corev1.Secret); namespaced {
		key.Namespace = s.Place.Namespace
	}
	err := conflict.RetryOnConflict(conflict.DefaultBackoff, func() error {
		if err := s.Client.Get(ctx, key, o); err != nil || !change(o) {
			return err
		}
		return s.Client.Update(ctx, o)
	})
	return client.IgnoreNotFound(err)
}

// eachTrust calls do for everything by which the API server trusts webhooks in the operator's namespace.
func (s *Set) eachTrust(ctx context.Context, do func(client.Object) error) error {
	var objects []client.Object
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	if err := errors.Join(s.Client.List(ctx, &validating), s.Client.List(ctx, &mutating)); err != nil {
		return fmt.Errorf("list webhook configurations: %w", err)
	}
	for i := range validating.Items {
		objects = append(objects, &validating.Items[i])
	}
	for i := range mutating.Items {
		objects = append(objects, &mutating.Items[i])
	}
	for _, name := range s.definitionNames() {
		var d apiextensionsv1.CustomResourceDefinition
		if err := s.Client.Get(ctx, client.ObjectKey{Name: name}, &d); err == nil {
			objects = append(objects, &d)
		} else if !apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, o := range objects {
		if len(trusts(o, s.Place.Namespace)) > 0 {
			if err := do(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// definitionNames are those of both releases, sorted.
func (s *Set) definitionNames() []string {
	var names []string
	for _, r := range []*lifecycle.Release{s.From, s.To} {
		for _, d := range r.CRDs {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// trust is whom the API server trusts when it calls a webhook at a Service.
type trust struct {
	service string // its host
	ca      *[]byte
}

// trusts returns those in o for webhooks in namespace.
func trusts(o client.Object, namespace string) []trust {
	var list []trust
	add := func(in, name string, ca *[]byte) {
		if in == namespace {
			list = append(list, trust{name + "." + in + ".svc", ca})
		}
	}
	hook := func(c *admissionregistrationv1.WebhookClientConfig) {
		if c.Service != nil {
			add(c.Service.Namespace, c.Service.Name, &c.CABundle)
		}
	}
	switch o := o.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			hook(&o.Webhooks[i].ClientConfig)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			hook(&o.Webhooks[i].ClientConfig)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		if c := converter(o); c != nil && c.Service != nil {
			add(c.Service.Namespace, c.Service.Name, &c.CABundle)
		}
	}
	return list
}

// converter returns how d's conversion webhook is reached, or nil.
func converter(d *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	if c := d.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter && c.Webhook != nil {
		return c.Webhook.ClientConfig
	}
	return nil
}

// convertFaultily has the conversion requests answered by a webhook of the cluster's that misbehaves.
func (s *Set) convertFaultily(ctx context.Context, k *Active) error {
	server, ok := s.Provider.(FaultyConverter)
	if !ok {
		return inapplicable("this kind of cluster cannot do it")
	}
	url, ca, err := server.FaultyConverter(ctx, k.converter)
	if err != nil {
		return err
	}
	return s.divert(ctx, k, apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca})
}

// unconvert has the conversion requests go to a Service that does not exist.
func (s *Set) unconvert(ctx context.Context, k *Active) error {
	return s.divert(ctx, k, apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: s.Place.Namespace, Name: observe.FaultName}})
}

// divert points the conversion webhooks of the hop's definitions to another place, and back unless somebody else did.
func (s *Set) divert(ctx context.Context, k *Active, to apiextensionsv1.WebhookClientConfig) error {
	was := map[string]*apiextensionsv1.WebhookClientConfig{}
	ours := func(c *apiextensionsv1.WebhookClientConfig) bool {
		if to.URL != nil {
			return c.URL != nil && *c.URL == *to.URL
		}
		return c.Service != nil && c.Service.Name == to.Service.Name
	}
	k.Undo.Push(func(ctx context.Context) error {
		var errs []error
		for name, before := range was {
			errs = append(errs, s.change(ctx, &apiextensionsv1.CustomResourceDefinition{}, name, func(o client.Object) bool {
				d, isDefinition := o.(*apiextensionsv1.CustomResourceDefinition)
				if !isDefinition || converter(d) == nil || !ours(converter(d)) {
					return false
				}
				d.Spec.Conversion.Webhook.ClientConfig = before
				return true
			}))
		}
		return errors.Join(errs...)
	})
	for _, name := range s.definitionNames() {
		err := s.change(ctx, &apiextensionsv1.CustomResourceDefinition{}, name, func(o client.Object) bool {
			d, isDefinition := o.(*apiextensionsv1.CustomResourceDefinition)
			if !isDefinition || converter(d) == nil {
				return false
			}
			was[name] = converter(d).DeepCopy()
			d.Spec.Conversion.Webhook.ClientConfig = to.DeepCopy()
			return true
		})
		if err != nil {
			return err
		}
	}
	if len(was) == 0 {
		return inapplicable("no CRD has a conversion webhook at this phase")
	}
	return nil
}

// pair is a serving certificate with its key and its authority's certificate, PEM encoded.
type pair struct{ authority, certificate, key []byte }

// newCertificate makes a certificate for hosts, by an authority of its own, that ends at until.
func newCertificate(hosts []string, until time.Time) (pair, error) {
	authority := &x509.Certificate{
		Subject: pkix.Name{CommonName: observe.FaultName}, SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(3 * 365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, &signer.PublicKey, signer)
	if err != nil {
		return pair{}, err
	}
	leaf := &x509.Certificate{
		Subject: pkix.Name{CommonName: observe.FaultName + " server"}, SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		DNSNames: hosts, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority, &private.PublicKey, signer)
	if err != nil {
		return pair{}, err
	}
	key, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return pair{}, err
	}
	encode := func(kind string, data []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}) }
	return pair{encode("CERTIFICATE", root), encode("CERTIFICATE", der), encode("EC PRIVATE KEY", key)}, nil
}

// hostsOf returns the names that a PEM encoded certificate is for.
func hostsOf(certificate []byte) []string {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c.DNSNames
}

// secondWrites is the annotation that counts the second client's writes.
const secondWrites = "olmkit.dev/second-writes"

// writeToo has a second client read and update every object that the observers write, as fast as they do. What it was told
// is stored has to be there in the end.
func (s *Set) writeToo(ctx context.Context, k *Active) error {
	var written []*observe.Object
	for _, o := range s.Objects {
		if o.Written {
			written = append(written, o)
		}
	}
	if len(written) == 0 {
		return inapplicable("there are no objects")
	}
	ctx, cancel := context.WithCancel(ctx)
	var writers sync.WaitGroup
	acked := make([]int64, len(written))
	for i, o := range written {
		version := o.Version
		if d := s.To.CRD(o.CRD); d != nil {
			for _, v := range definition.ServedVersions(d) {
				if o.Views[v] != nil && v != o.Version {
					version = v
				}
			}
		}
		writers.Go(func() {
			for n := int64(1); ctx.Err() == nil; n++ {
				if s.updateOnce(ctx, o, version, n) == nil {
					acked[i] = n
				}
				select {
				case <-ctx.Done():
				case <-time.After(observe.Pace):
				}
			}
		})
	}
	k.Undo.Push(func(ctx context.Context) error {
		cancel()
		writers.Wait()
		for i, o := range written {
			d := s.Watcher.Definitions()[o.CRD]
			if d == nil {
				continue
			}
			now, err := o.At(s.Dynamic, d.Storage).Get(ctx, o.Name, metav1.GetOptions{})
			if err != nil {
				continue // the judge of objects tells
			}
			if n, _ := strconv.ParseInt(now.GetAnnotations()[secondWrites], 10, 64); n < acked[i] {
				k.Lost = append(k.Lost, fmt.Sprintf("%s: write number %d of the second client was acknowledged, but the object has number %d", o, acked[i], n))
			}
		}
		return nil
	})
	return nil
}

// updateOnce reads o in version and writes it back with the number n.
func (s *Set) updateOnce(ctx context.Context, o *observe.Object, version string, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, observe.ProbeLimit)
	defer cancel()
	now, err := o.At(s.Dynamic, version).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	annotations := now.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[secondWrites] = strconv.FormatInt(n, 10)
	now.SetAnnotations(annotations)
	_, err = o.At(s.Dynamic, version).Update(ctx, now, metav1.UpdateOptions{FieldManager: "olmkit-second"})
	return err
}

// forget deletes objects and waits until they are gone, whose finalizers the operator serves.
func (s *Set) forget(ctx context.Context, objects []*observe.Object) error {
	d := s.Watcher.Definitions()
	err := s.Watcher.Until(ctx, observe.RetryTimeout, func() (bool, error) {
		gone := true
		for _, o := range objects {
			if d[o.CRD] == nil {
				continue
			}
			err := o.At(s.Dynamic, d[o.CRD].Storage).Delete(ctx, o.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(o.UID))})
			gone = gone && apierrors.IsNotFound(err)
		}
		return gone, nil
	})
	if errors.Is(err, observe.ErrTimeout) {
		return nil // the next uninstallation tells
	}
	return err
}
