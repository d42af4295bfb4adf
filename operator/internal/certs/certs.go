// Package certs is the webhooks' certificate authority where the operator is deployed without OLM, which is one
// itself: it makes a certificate, keeps it in a Secret, tells the API server to trust it, and renews it in time.
package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Keys of the Secret, besides those of every Secret with a certificate. The first certificate under Key signs; others
// were signing before and are still trusted.
const (
	Key    = "ca.crt"
	keyKey = "ca.key"
)

const (
	// period is the time between two checks of what must be renewed or was removed.
	period = time.Hour
	// secretPeriod is the time between two checks whether the Secret was replaced.
	secretPeriod = 10 * time.Second
)

// Authority has a certificate for the operator's webhooks. Ensure must be called before it is used.
type Authority struct {
	Client client.Client
	// API reads past the cache, which the manager may not have started yet.
	API client.Reader
	Log logr.Logger
	// Namespace is where the Secret and the Service are.
	Namespace, Secret, Service string
	// CRD, Mutating and Validating are the objects that say whose certificates the API server trusts.
	CRD, Mutating, Validating string
	// Now is the time.
	Now func() time.Time

	serving atomic.Pointer[tls.Certificate]
	// version is of the Secret that serving is from, ca its authorities, due when to look again at all of it.
	version string
	ca      []byte
	due     time.Time
}

// Host is whom the certificate is of.
func (a *Authority) Host() string { return a.Service + "." + a.Namespace + ".svc" }

// Certificate is what a TLS server shows now.
func (a *Authority) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := a.serving.Load(); certificate != nil {
		return certificate, nil
	}
	return nil, errors.New("no certificate has been made yet")
}

// NeedLeaderElection says that every manager looks after its certificate, since every one serves webhooks.
func (a *Authority) NeedLeaderElection() bool { return false }

// Start renews the certificate in time, and takes up what another manager or a person puts into the Secret, until ctx ends.
func (a *Authority) Start(ctx context.Context) error {
	ticker := time.NewTicker(secretPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := a.check(ctx); err != nil && ctx.Err() == nil {
				a.Log.Error(err, "checking the webhooks' certificate; trying again", "after", secretPeriod.String())
			}
		}
	}
}

// check calls Ensure if it is time, or if the Secret is not the one that it left.
func (a *Authority) check(ctx context.Context) error {
	if a.Now().Before(a.due) {
		var secret corev1.Secret
		err := a.API.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Secret}, &secret)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading secret %s/%s: %w", a.Namespace, a.Secret, err)
		}
		if err == nil && secret.ResourceVersion == a.version {
			return nil
		}
	}
	return a.Ensure(ctx)
}

// Ensure takes the certificate from the Secret, makes there what is missing or ends soon, and has the API server trust
// it before it is shown. What was shown until then stays trusted until Ensure is called again, also if its authority is
// gone from the Secret. When another manager wrote the Secret at the same time, the error is a conflict, and the next
// call finds what that one made.
func (a *Authority) Ensure(ctx context.Context) error {
	key := client.ObjectKey{Namespace: a.Namespace, Name: a.Secret}
	var secret corev1.Secret
	err := a.API.Get(ctx, key, &secret)
	exists := err == nil
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading secret %s: %w", key, err)
	}
	found := pems{ca: secret.Data[Key], caKey: secret.Data[keyKey], certificate: secret.Data[corev1.TLSCertKey], key: secret.Data[corev1.TLSPrivateKeyKey]}
	made, err := found.renewed(a.Host(), a.Now())
	if err != nil {
		return fmt.Errorf("making a certificate for secret %s: %w", key, err)
	}
	if !made.equal(found) {
		secret.Data = map[string][]byte{Key: made.ca, keyKey: made.caKey, corev1.TLSCertKey: made.certificate, corev1.TLSPrivateKeyKey: made.key}
		if exists {
			err = a.Client.Update(ctx, &secret)
		} else {
			secret.ObjectMeta, secret.Type = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, corev1.SecretTypeTLS
			err = a.Client.Create(ctx, &secret)
		}
		if err != nil {
			return fmt.Errorf("writing secret %s: %w", key, err)
		}
		a.Log.Info("made a certificate for the webhooks", "secret", key.String())
	}
	certificate, err := tls.X509KeyPair(made.certificate, made.key)
	if err != nil {
		return fmt.Errorf("reading secret %s: %w", key, err)
	}
	trusted := made.ca
	if !bytes.Contains(made.ca, a.ca) {
		trusted = slices.Concat(made.ca, a.ca)
	}
	if err := a.trust(ctx, trusted); err != nil {
		return err
	}
	a.serving.Store(&certificate)
	a.version, a.ca, a.due = secret.ResourceVersion, made.ca, a.Now().Add(period)
	return nil
}

// trust puts the authority where the API server looks for it.
func (a *Authority) trust(ctx context.Context, ca []byte) error {
	var crd apiextensions.CustomResourceDefinition
	if err := a.change(ctx, a.CRD, &crd, func() {
		if c := crd.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil {
			c.Webhook.ClientConfig.CABundle = ca
		}
	}); err != nil {
		return err
	}
	var mutating admissionregistration.MutatingWebhookConfiguration
	if err := a.change(ctx, a.Mutating, &mutating, func() {
		for i := range mutating.Webhooks {
			mutating.Webhooks[i].ClientConfig.CABundle = ca
		}
	}); err != nil {
		return err
	}
	var validating admissionregistration.ValidatingWebhookConfiguration
	return a.change(ctx, a.Validating, &validating, func() {
		for i := range validating.Webhooks {
			validating.Webhooks[i].ClientConfig.CABundle = ca
		}
	})
}

// change writes what f changes in an object. One that is not there needs no authority.
func (a *Authority) change(ctx context.Context, name string, object client.Object, f func()) error {
	err := a.API.Get(ctx, client.ObjectKey{Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %T %s: %w", object, name, err)
	}
	before := object.DeepCopyObject().(client.Object)
	f()
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	// A patch that changes nothing but names the version it was made from is not worth a request.
	if plain, err := client.MergeFrom(before).Data(object); err != nil || string(plain) == "{}" {
		return err
	}
	if err := a.Client.Patch(ctx, object, patch); err != nil {
		return fmt.Errorf("putting the webhooks' authority into %T %s: %w", object, name, err)
	}
	return nil
}
