package embedded

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/olmkit/olmkit/internal/cluster/certificates"
)

// writeIdentities puts the files of the control plane's identities, which a signs, into dir, which is on tmpfs.
func writeIdentities(a *certificates.Authority, dir string, hosts []string) error {
	files := map[string][]byte{"ca.crt": a.PEM}
	for name, hosts := range map[string][]string{"apiserver": hosts, "kubelet-client": nil} {
		certificate, key, err := a.Issue(name, hosts...)
		if err != nil {
			return err
		}
		files[name+".crt"], files[name+".key"] = certificate, key
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if files["service-accounts.key"], err = certificates.EncodeKey(signer); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// kubeletTLS is how the node serves: to the API server alone, whose certificate a signed.
func kubeletTLS(a *certificates.Authority, host string) (*tls.Config, error) {
	config, err := a.ServerTLS("node", host)
	if err != nil {
		return nil, err
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	config.ClientCAs.AddCert(a.Certificate)
	return config, nil
}

// newToken returns 128 random bits.
func newToken() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
