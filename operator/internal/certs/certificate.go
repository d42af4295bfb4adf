package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// How long an authority and a certificate last. Both are made anew when a third of it is left.
const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
)

// pems is what the Secret holds.
type pems struct {
	ca, caKey, certificate, key []byte
}

func (p pems) equal(q pems) bool {
	return bytes.Equal(p.ca, q.ca) && bytes.Equal(p.caKey, q.caKey) && bytes.Equal(p.certificate, q.certificate) && bytes.Equal(p.key, q.key)
}

// renewed is p, with what is missing, broken or about to end made anew. A new authority leaves the one before trusted:
// others may still show a certificate by it.
func (p pems) renewed(host string, now time.Time) (pems, error) {
	signer, err := tls.X509KeyPair(p.ca, p.caKey)
	if err != nil || !fresh(signer.Leaf, now) {
		previous := p.ca
		if p.ca, p.caKey, err = issue(&x509.Certificate{
			Subject: pkix.Name{CommonName: host + " authority"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(authorityLife),
			KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
		}, nil); err != nil {
			return pems{}, err
		}
		if signer, err = tls.X509KeyPair(p.ca, p.caKey); err != nil {
			return pems{}, err
		}
		if trusted, err := cert.ParseCertsPEM(previous); err == nil && now.Before(trusted[0].NotAfter) {
			p.ca = append(p.ca, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: trusted[0].Raw})...)
		}
		p.certificate = nil
	}
	if shown, err := tls.X509KeyPair(p.certificate, p.key); err == nil && fresh(shown.Leaf, now) && verifies(shown.Leaf, signer.Leaf, host, now) {
		return p, nil
	}
	p.certificate, p.key, err = issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}, &signer)
	return p, err
}

func fresh(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && now.Before(c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore)/3))
}

func verifies(c, ca *x509.Certificate, host string, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	_, err := c.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now})
	return err == nil
}

// issue makes a key, and a certificate for it by signer, or by itself if there is none.
func issue(template *x509.Certificate, signer *tls.Certificate) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	parent, by := template, any(private)
	if signer != nil {
		parent, by = signer.Leaf, signer.PrivateKey
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, by)
	if err != nil {
		return nil, nil, fmt.Errorf("signing: %w", err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw}), key, nil
}
