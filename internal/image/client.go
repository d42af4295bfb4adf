package image

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/olmkit/olmkit/internal/advice"
)

// Client reaches registries. Credentials are Docker's or Podman's: their configuration files and credential helpers. A
// registry on localhost is tried with TLS and without.
type Client struct {
	PlainHTTP bool          // reach registries without TLS, where they have none
	CAFile    string        // PEM file with certificate authorities to trust beside the system's; "" for none
	Pause     time.Duration // before the first of four new tries after a failure that may pass, doubled each time; 0 is a second
}

// tries is how often a request is made in all.
const tries = 5

func (c Client) options(ctx context.Context) ([]remote.Option, error) {
	pause := c.Pause
	if pause == 0 {
		pause = time.Second
	}
	options := []remote.Option{
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithUserAgent("olmkit"),
		remote.WithRetryBackoff(remote.Backoff{Duration: pause, Factor: 2, Jitter: 0.1, Steps: tries}),
	}
	if c.CAFile == "" {
		return options, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, advice.With(fmt.Errorf("read certificate authorities: %w", err), "name a PEM file with --ca-file")
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, advice.With(fmt.Errorf("read certificate authorities: %s holds no PEM certificate", c.CAFile), "name a PEM file with --ca-file")
	}
	base, ok := remote.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, fmt.Errorf("trust %s: the default transport is a %T", c.CAFile, remote.DefaultTransport)
	}
	own := base.Clone()
	own.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return append(options, remote.WithTransport(own)), nil
}

func (c Client) parse(reference string) (name.Reference, error) {
	var options []name.Option
	if c.PlainHTTP {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(reference, options...)
	if err != nil {
		if _, why := name.NewTag(reference, options...); why != nil && !strings.Contains(reference, "@") {
			err = why // which says what is wrong
		}
		return nil, advice.With(fmt.Errorf("image %s: %w", reference, err), "write it as registry/repository:tag")
	}
	return ref, nil
}

// explain adds to an error of ref's registry what its reader can do about it.
func explain(err error, doing string, ref name.Reference) error {
	if err == nil {
		return nil
	}
	host := ref.Context().RegistryStr()
	wrapped := fmt.Errorf("image %s: %s: %w", ref, doing, err)
	var refused *transport.Error
	var unknown x509.UnknownAuthorityError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &refused):
		switch code := refused.StatusCode; {
		case code == http.StatusNotFound:
			return advice.With(wrapped, "see whether the repository and the tag are there: push the image first, or mend its name")
		case code == http.StatusUnauthorized, code == http.StatusForbidden:
			return advice.With(wrapped, "log in with 'docker login %s' as a user who may do this", host)
		case code == http.StatusTooManyRequests:
			return advice.With(wrapped, "wait a little and try again: what was sent stays at the registry")
		case code >= http.StatusInternalServerError:
			return advice.With(wrapped, "look at the logs of the registry %s and try again: what was sent stays there", host)
		case code == http.StatusBadRequest && strings.Contains(err.Error(), "HTTP request to an HTTPS server"):
			return advice.With(wrapped, "the registry speaks TLS: name the authority that signed its certificate with --ca-file, and leave out --plain-http")
		}
		return advice.With(wrapped, "see what the registry %s says above", host)
	case errors.As(err, &unknown):
		return advice.With(wrapped, "name the authority that signed the certificate of %s with --ca-file", host)
	case errors.As(err, &plain), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return advice.With(wrapped, "if %s really has no TLS, say so with --plain-http", host)
	}
	var network *net.OpError
	if errors.As(err, &network) {
		return advice.With(wrapped, "see whether the registry %s can be reached", host)
	}
	return advice.With(wrapped, "try again: what was sent stays at the registry %s", host)
}
