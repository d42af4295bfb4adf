package image

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/olmkit/olmkit/internal/hint"
)

// Client reaches registries. Credentials are Docker's or Podman's: their configuration files and credential helpers. A
// registry of this machine, or one that PlainHTTP names, is tried with TLS first and then without; credentials go without TLS
// to this machine alone.
type Client struct {
	PlainHTTP   []string      // hosts that may have no TLS, as host or host:port; AnyHost for all
	Authorities []Authority   // whom to trust beside the system's certificate authorities
	Timeout     time.Duration // longest time for one image; 0 is DefaultTimeout
	Pause       time.Duration // before the first of four new tries after a failure that may pass, doubled each time; 0 is a second

	wait  func(context.Context, time.Duration) error // nil to really wait
	stall time.Duration                              // how long a connection may stand still; 0 is longestStall
}

// AnyHost stands for every registry.
const AnyHost = "*"

// Authority is a file of certificate authorities that certificates of hosts may be signed by.
type Authority struct {
	Host string // as host or host:port; "" for all
	File string // PEM
}

// tries is how often a request is made in all.
const tries = 5

func (c Client) options(ctx context.Context) ([]remote.Option, error) {
	reach, keys, err := c.reach()
	if err != nil {
		return nil, err
	}
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(keys),
		remote.WithUserAgent(userAgent),
		remote.WithTransport(reach),
		remote.WithRetryBackoff(c.backoff()),
	}, nil
}

func (c Client) backoff() remote.Backoff {
	return remote.Backoff{Duration: cmp.Or(c.Pause, time.Second), Factor: 2, Jitter: 0.1, Steps: tries}
}

const userAgent = "olmkit"

// reach returns by which way, and with whose credentials, the requests for one image are made.
func (c Client) reach() (http.RoundTripper, authn.Keychain, error) {
	trusting, err := c.transport()
	if err != nil {
		return nil, nil, err
	}
	wait := c.wait
	if wait == nil {
		wait = sleep
	}
	found, timeout := &atomic.Bool{}, cmp.Or(c.Timeout, DefaultTimeout)
	return &guard{
		inner: &retryAfterTransport{inner: trusting, wait: wait, until: map[string]time.Time{}},
		plain: c.plain, credentials: found, until: time.Now().Add(timeout), timeout: timeout, stall: cmp.Or(c.stall, longestStall),
	}, keychain{found}, nil
}

// plain reports whether host, as host or host:port, may have no TLS.
func (c Client) plain(host string) bool {
	bare, _, _ := strings.Cut(host, ":")
	return slices.Contains(c.PlainHTTP, AnyHost) || slices.Contains(c.PlainHTTP, host) || slices.Contains(c.PlainHTTP, bare)
}

// byHost sends requests over the transport of their host.
type byHost struct {
	hosts  map[string]*http.Transport
	others http.RoundTripper
}

// RoundTrip is http.RoundTripper's.
func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, host := range []string{r.URL.Host, r.URL.Hostname()} {
		if t := b.hosts[host]; t != nil {
			return t.RoundTrip(r)
		}
	}
	return b.others.RoundTrip(r)
}

// byMethod sends what asks for something over one transport, and what stores something over the other.
type byMethod struct{ asks, stores http.RoundTripper }

// RoundTrip is http.RoundTripper's.
func (b byMethod) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return b.asks.RoundTrip(r)
	}
	return b.stores.RoundTrip(r)
}

// transport trusts the Client's authorities, and gives up connections that stand still.
func (c Client) transport() (http.RoundTripper, error) {
	pools, err := c.pools()
	if err != nil {
		return nil, err
	}
	stall, near := cmp.Or(c.stall, longestStall), &nearby{}
	asks, err := transportWith(pools, stall, near)
	if err != nil {
		return nil, err
	}
	stores, err := transportWith(pools, storingTakes*stall, near)
	return byMethod{asks, stores}, err
}

// transportWith trusts pools, by host, and gives up connections on which nothing moves for longer than stall.
func transportWith(pools map[string]*x509.CertPool, stall time.Duration, near *nearby) (http.RoundTripper, error) {
	usual, ok := remote.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, fmt.Errorf("reach registries: the default transport is a %T", remote.DefaultTransport)
	}
	base := usual.Clone()
	base.DisableCompression = true // what a registry sends is as long as it is kept
	dial := base.DialContext
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if err := near.check(address, conn.RemoteAddr()); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return idleTimeoutConn{conn, stall}, nil
	}
	trusting := byHost{hosts: map[string]*http.Transport{}, others: base}
	for host, pool := range pools {
		own := base.Clone()
		own.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		if host == "" {
			trusting.others = own
			continue
		}
		trusting.hosts[host] = own
	}
	return trusting, nil
}

// pools are the certificate authorities of each host that Authorities names, "" for all others: the system's, and those.
func (c Client) pools() (map[string]*x509.CertPool, error) {
	pools := map[string]*x509.CertPool{}
	for _, a := range c.Authorities {
		pools[a.Host] = nil
	}
	for host := range pools {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		for _, a := range c.Authorities {
			if a.Host != host && a.Host != "" {
				continue
			}
			pem, err := readAuthorities(a.File)
			if err == nil && !pool.AppendCertsFromPEM(pem) {
				err = fmt.Errorf("%s holds no PEM certificate", a.File)
			}
			if err != nil {
				return nil, hint.With(fmt.Errorf("read certificate authorities: %w", err), "name a PEM file with --ca-file")
			}
		}
		pools[host] = pool
	}
	return pools, nil
}

// readAuthorities returns what a file of certificate authorities holds, which is no device without an end.
func readAuthorities(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pem, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err == nil && len(pem) > maxDocument {
		err = fmt.Errorf("%s holds more than %d MiB", file, maxDocument>>20)
	}
	return pem, err
}

// longestStall is how long a connection may stand still, and storingTakes by how much longer where something is stored: of a large blob
// a registry reads all again before it answers.
const (
	longestStall = 30 * time.Second
	storingTakes = 4
)

// idleTimeoutConn is a connection that fails when nothing moves on it, in either direction, for longer than limit.
type idleTimeoutConn struct {
	net.Conn
	limit time.Duration
}

// Read is net.Conn's.
func (l idleTimeoutConn) Read(p []byte) (int, error) {
	if err := l.SetDeadline(time.Now().Add(l.limit)); err != nil {
		return 0, err
	}
	return l.Conn.Read(p)
}

// Write is net.Conn's. What waits for an answer meanwhile waits anew.
func (l idleTimeoutConn) Write(p []byte) (int, error) {
	if err := l.SetDeadline(time.Now().Add(l.limit)); err != nil {
		return 0, err
	}
	return l.Conn.Write(p)
}

// longestWait is how long a registry can ask to be left alone before that is an error.
const longestWait = time.Minute

// retryAfterTransport waits as long as a host asks for in Retry-After.
type retryAfterTransport struct {
	inner http.RoundTripper
	wait  func(context.Context, time.Duration) error

	mu    sync.Mutex
	until map[string]time.Time // by host
}

// RoundTrip is http.RoundTripper's.
func (p *retryAfterTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	left := time.Until(p.until[r.URL.Host])
	p.mu.Unlock()
	if left > 0 {
		if err := p.wait(r.Context(), left); err != nil {
			return nil, err
		}
	}
	answer, err := p.inner.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
		return answer, err
	}
	now := time.Now()
	asked := retryAfter(answer.Header.Get("Retry-After"), now)
	if asked > longestWait {
		answer.Body.Close()
		return nil, busyError{answer.StatusCode, asked}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := now.Add(asked); until.After(p.until[r.URL.Host]) {
		p.until[r.URL.Host] = until
	}
	return answer, nil
}

// busyError is a registry that asks to be left alone for longer than olmkit waits.
type busyError struct {
	code  int
	asked time.Duration
}

func (e busyError) Error() string {
	return fmt.Sprintf("it answers %d and asks to be left alone for %s", e.code, e.asked.Round(time.Second))
}

// retryAfter reads the header of that name (RFC 9110, 10.2.3): seconds or a date. It is 0 when there is none.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(date.Sub(now), 0)
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// referenceError is of a reference that none of a registry could be.
type referenceError struct{ error }

func (e referenceError) Unwrap() error { return e.error }

// IsWrongReference reports whether err is of a reference that is wrong in itself, whatever the registry.
func IsWrongReference(err error) bool { return errors.As(err, &referenceError{}) }

func (c Client) parse(reference string) (name.Reference, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		if _, why := name.NewTag(reference); why != nil && !strings.Contains(reference, "@") {
			err = why // which says what is wrong
		}
		return nil, referenceError{hint.With(fmt.Errorf("image %s: %w", reference, err), "write it as registry/repository:tag")}
	}
	if _, port, err := net.SplitHostPort(ref.Context().RegistryStr()); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return nil, referenceError{hint.With(fmt.Errorf("image %s: %s is no port", reference, port), "write a port from 1 to 65535, or none")}
		}
	}
	if c.plain(ref.Context().RegistryStr()) {
		return name.ParseReference(reference, name.Insecure)
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
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var credentials credentialError
	var busy busyError
	var network *net.OpError
	var stopped refusedRequest
	switch {
	case errors.As(err, &credentials):
		return hint.With(wrapped, "log in again with 'docker login %s', or fix the credential helper that Docker's configuration names", host)
	case errors.As(err, &busy):
		return hint.With(wrapped, "try again later: what was sent stays at the registry")
	case errors.As(err, &refused):
		switch code := refused.StatusCode; {
		case code == http.StatusNotFound:
			return hint.With(wrapped, "check that the repository and the tag exist: push the image first, or correct its name")
		case code == http.StatusUnauthorized, code == http.StatusForbidden:
			return hint.With(wrapped, "log in with 'docker login %s' as a user who may do this", host)
		case code == http.StatusTooManyRequests:
			return hint.With(wrapped, "wait a little and try again: what was sent stays at the registry")
		case code == http.StatusInsufficientStorage, strings.Contains(err.Error(), "no space left on device"):
			return hint.With(wrapped, "the registry %s has no room left: make some, and try again", host)
		case code >= http.StatusInternalServerError:
			return hint.With(wrapped, "look at the logs of the registry %s and try again: what was sent stays there", host)
		case code == http.StatusBadRequest && strings.Contains(err.Error(), "HTTP request to an HTTPS server"):
			return hint.With(wrapped, "the registry speaks TLS: name the authority that signed its certificate with --ca-file, and leave out --plain-http")
		}
		return hint.With(wrapped, "see what the registry %s says above", host)
	case errors.As(err, &unknown):
		return hint.With(wrapped, "name the authority that signed the certificate of %s with --ca-file", host)
	case errors.As(err, &certificate):
		return hint.With(wrapped, "write the registry's name as its certificate has it, or let its administrator renew the certificate")
	case errors.As(err, &stopped):
		return hint.With(wrapped, "%s", hint.Of(err))
	case errors.As(err, &network) && network.Timeout() && network.Op != "dial":
		return hint.With(wrapped, "the registry %s stopped answering: try again, what was sent stays there", host)
	case errors.As(err, &plain), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return hint.With(wrapped, "if %s really has no TLS, say so with --plain-http", host)
	}
	if errors.As(err, &network) {
		return hint.With(wrapped, "see whether the registry %s can be reached", host)
	}
	return hint.With(wrapped, "try again: what was sent stays at the registry %s", host)
}
