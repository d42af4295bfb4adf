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

// frontProxy is as whom the API server calls the API servers of aggregated APIs, on behalf of its callers.
const frontProxy = "front-proxy-client"

// writeIdentities puts the files of the control plane's identities, which a signs, into dir, which is on tmpfs. The front proxy has an
// authority of its own, since who it signs for may call as anyone.
func writeIdentities(a *certificates.Authority, dir string, hosts []string) error {
	proxies, err := certificates.NewAuthority("olmkit embedded cluster's front proxy")
	if err != nil {
		return err
	}
	files := map[string][]byte{"ca.crt": a.PEM, "front-proxy-ca.crt": proxies.PEM}
	for name, by := range map[string]struct {
		authority *certificates.Authority
		hosts     []string
	}{"apiserver": {a, hosts}, "kubelet-client": {a, nil}, frontProxy: {proxies, nil}} {
		certificate, key, err := by.authority.Issue(name, by.hosts...)
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
