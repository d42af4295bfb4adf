package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/olmkit/olmkit/internal/hint"
)

const (
	// maxRedirects is how often a registry may send a request elsewhere; as net/http has it, which go-containerregistry
	// v0.22.1 does away with (pkg/v1/remote/fetcher.go, checkRedirectSSRF).
	maxRedirects = 10

	// DefaultTimeout is the longest time for one image.
	DefaultTimeout = 30 * time.Minute

	// leastRate is how many bytes a second an answer must come at, over any longestStall in which it is waited for.
	leastRate = 1 << 10
)

// refusedRequest is an error of the guard, which no second try would mend.
type refusedRequest struct{ text string }

func (e refusedRequest) Error() string { return e.text }

func guardError(fix, format string, args ...any) error {
	return hint.With(refusedRequest{fmt.Sprintf(format, args...)}, "%s", fix)
}

// guard bounds what a registry can have this client do: where requests go, what they tell in clear text, how long they take
// and how much an answer holds that is kept in memory.
type guard struct {
	inner       http.RoundTripper
	plain       func(host string) bool // which may have no TLS
	credentials *atomic.Bool           // whether some were found for the registry
	until       time.Time              // when all requests must have ended
	timeout     time.Duration          // from the first to then
	stall       time.Duration
}

// RoundTrip is http.RoundTripper's.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if first, n := origin(r); n > maxRedirects {
		return nil, guardError("ask the registry's administrator: it, or a proxy before it, is set up wrongly",
			"%s %s: it was redirected %d times", first.Method, first.URL.Redacted(), maxRedirects)
	}
	withheld, err := g.clearText(&r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithDeadline(r.Context(), g.until)
	answer, err := g.inner.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, g.explain(r, err)
	}
	if withheld && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
		cancel()
		answer.Body.Close()
		return nil, clearTextError(r.URL.Hostname())
	}
	b := &boundedBody{ReadCloser: answer.Body, guard: g, request: r, cancel: cancel, left: maxDocument}
	if first, _ := origin(r); first.Method == http.MethodGet && strings.Contains(first.URL.Path, "/blobs/") {
		b.left = -1 // its reader holds it to its size
	}
	answer.Body = b
	return answer, nil
}

// origin returns the request that r was redirected from, and how often.
func origin(r *http.Request) (*http.Request, int) {
	n := 0
	for ; r.Response != nil && r.Response.Request != nil; n++ {
		r = r.Response.Request
	}
	return r, n
}

// clearText refuses requests without TLS to hosts that are not known to have none, and takes credentials out of those that
// leave the machine. It reports whether it did.
func (g *guard) clearText(r **http.Request) (withheld bool, err error) {
	host := (*r).URL.Hostname()
	switch {
	case (*r).URL.Scheme == "https" || isLoopback(host):
		return false, nil
	case !g.plain((*r).URL.Host):
		return false, guardError(fmt.Sprintf("if %s really has no TLS, say so with --plain-http=%[1]s", (*r).URL.Host),
			"%s %s: olmkit does not speak to %s without TLS", (*r).Method, (*r).URL.Redacted(), host)
	case !g.credentials.Load():
		return false, nil
	case (*r).Header.Get("Content-Type") == "application/x-www-form-urlencoded": // how refresh tokens are sent
		return false, clearTextError(host)
	}
	bare := (*r).Clone((*r).Context())
	bare.Header.Del("Authorization")
	*r = bare
	return true, nil
}

func clearTextError(host string) error {
	return guardError(fmt.Sprintf("give %s a certificate, and leave out --plain-http", host),
		"%s asks for credentials, and without TLS everybody on the way could read them", host)
}

// isLoopback reports whether host is this machine.
func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// nearby keeps a registry from having this client reach what only this machine, or its network, reaches: by redirects, by
// where it says that tokens are given, and by names that have such addresses.
type nearby struct {
	mu    sync.Mutex
	first string // address that was dialled first, the registry's or that of a proxy
	far   bool   // it is public
}

// check refuses a connection to address that has come to remote. A link-local address is of no registry, but of machines'
// metadata services; a public registry leads to public addresses.
func (n *nearby) check(address string, remote net.Addr) error {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return nil
	}
	ip, public := tcp.IP, !tcp.IP.IsLoopback() && !tcp.IP.IsPrivate() && !tcp.IP.IsUnspecified()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.first == "" {
		n.first, n.far = address, public
	}
	switch {
	case ip.IsLinkLocalUnicast(), ip.IsLinkLocalMulticast(), ip.IsInterfaceLocalMulticast():
	case public, !n.far, address == n.first:
		return nil
	}
	return guardError("name a registry that you trust, or ask its administrator where it leads to", "%s, where %s leads to, is the address %s, of this machine or its network", address, n.first, ip)
}

// explain tells of an error whether it came of the guard's own deadline.
func (g *guard) explain(r *http.Request, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || r.Context().Err() != nil || time.Now().Before(g.until) {
		return err
	}
	return guardError("try again, or allow more with --registry-timeout", "%s %s: it took longer than %s in all", r.Method, r.URL.Redacted(), g.timeout)
}

// boundedBody is an answer that ends in an error when it is too slow, or longer than what is kept of it in memory.
type boundedBody struct {
	io.ReadCloser
	guard   *guard
	request *http.Request
	cancel  context.CancelFunc
	left    int64 // bytes; negative for any number
	waited  time.Duration
	got     int64 // meanwhile
}

// Read is io.Reader's.
func (b *boundedBody) Read(p []byte) (int, error) {
	started := time.Now()
	n, err := b.ReadCloser.Read(p)
	b.waited, b.got = b.waited+time.Since(started), b.got+int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, b.guard.explain(b.request, err)
	}
	if b.waited >= b.guard.stall {
		if float64(b.got) < leastRate*b.waited.Seconds() {
			return n, guardError("try again when the registry, or the network, is less busy",
				"%s %s: it answers at less than %d bytes a second", b.request.Method, b.request.URL.Redacted(), leastRate)
		}
		b.waited, b.got = 0, 0
	}
	if b.left >= 0 {
		if b.left -= int64(n); b.left < 0 {
			return n, guardError("name an image of a bundle, a catalog or a program",
				"%s %s: the answer exceeds %d MiB", b.request.Method, b.request.URL.Redacted(), maxDocument>>20)
		}
	}
	return n, err
}

// Close is io.Closer's.
func (b *boundedBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// keychain is the usual one, whose errors say what they are of. It notes whether it found credentials.
type keychain struct{ found *atomic.Bool }

// credentialError is of the files and helpers that hold credentials.
type credentialError struct{ error }

func (e credentialError) Unwrap() error { return e.error }

// Resolve is authn.Keychain's.
func (k keychain) Resolve(of authn.Resource) (authn.Authenticator, error) {
	found, err := authn.DefaultKeychain.Resolve(of)
	if err != nil {
		return nil, credentialError{fmt.Errorf("get the credentials for %s: %w", of.RegistryStr(), err)}
	}
	if found != authn.Anonymous {
		k.found.Store(true)
	}
	return found, nil
}
