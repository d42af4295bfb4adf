package manager

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"
)

// A server that is told to stop goes on answering, each time for the last time on a connection, until it is closed.
func TestWebhooksLinger(t *testing.T) {
	t.Parallel()
	hooks, client, url := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() { returned <- hooks.Start(ctx) }()
	for hooks.StartedChecker()(nil) != nil {
		select {
		case err := <-returned:
			t.Fatalf("ended: %v", err)
		default:
		}
	}

	if closes := ask(t, client, url); closes {
		t.Error("a connection is closed though the server stays")
	}
	hooks.leave()
	cancel()
	if err := <-returned; err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if closes := ask(t, client, url); !closes {
			t.Error("a connection is kept open by a server that leaves")
		}
	}
	if err := hooks.close(); err != nil {
		t.Fatal(err)
	}
	if response, err := client.Get(url); err == nil {
		_ = response.Body.Close()
		t.Error("served after the end")
	}
}

// A server that cannot serve ends its manager.
func TestWebhooksWithoutCertificate(t *testing.T) {
	t.Parallel()
	hooks := newWebhooks(true, webhook.NewServer(webhook.Options{Host: "127.0.0.1", CertDir: t.TempDir()}))
	if err := hooks.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "tls.crt") {
		t.Errorf("%v", err)
	}
}

func TestWebhooksNotServed(t *testing.T) {
	t.Parallel()
	if err := newWebhooks(true, webhook.NewServer(webhook.Options{})).close(); err != nil {
		t.Errorf("never started: %v", err)
	}
	off := newWebhooks(false, webhook.NewServer(webhook.Options{Host: "127.0.0.1", CertDir: t.TempDir()}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := errors.Join(off.Start(ctx), off.close()); err != nil {
		t.Errorf("turned off: %v", err)
	}
}

// The kubelet gives the manager the time that it takes.
func TestGracePeriod(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"../../config/manager/manager.yaml", "../../releases/config/manager/manager.yaml"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, deployment, _ := strings.Cut(string(raw), "\n---\n")
		var d struct {
			Spec struct {
				Template struct {
					Spec struct {
						Grace time.Duration `json:"terminationGracePeriodSeconds"`
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(deployment), &d); err != nil {
			t.Fatal(err)
		}
		if grace := d.Spec.Template.Spec.Grace * time.Second; grace <= stopping+lingering {
			t.Errorf("%s: %s, and stopping takes up to %s", file, grace, stopping+lingering)
		}
	}
}

// TestOldTLS: no client comes in with less than TLS 1.2, not even where Go is told to let it.
func TestOldTLS(t *testing.T) {
	t.Setenv("GODEBUG", "tls10server=1")
	hooks, client, url := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = hooks.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := hooks.close(); err != nil {
			t.Error(err)
		}
	})
	for hooks.StartedChecker()(nil) != nil {
		time.Sleep(time.Millisecond)
	}
	config := client.Transport.(*http.Transport).TLSClientConfig
	config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if answer, err := client.Get(url); err == nil {
		_ = answer.Body.Close()
		t.Errorf("answered %s over %s", answer.Status, tls.VersionName(answer.TLS.Version))
	} else if !strings.Contains(err.Error(), "protocol version") {
		t.Error(err)
	}
	config.MaxVersion = tls.VersionTLS12
	ask(t, client, url)
}

// serve prepares webhooks at a free port, with one hook, and a client that trusts them.
func serve(t *testing.T) (*webhooks, *http.Client, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	crt, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, content := range map[string][]byte{"tls.crt": crt, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hooks := newWebhooks(true, webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: folder, TLSOpts: []func(*tls.Config){onlyHTTP1, atLeastTLS12}}))
	hooks.Register("/hook", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("answer")) }))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(crt)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return hooks, &http.Client{Transport: transport}, fmt.Sprintf("https://127.0.0.1:%d/hook", port)
}

// ask says whether the answer was the last one on its connection.
func ask(t *testing.T, client *http.Client, url string) bool {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("answered %s", response.Status)
	}
	return response.Close
}
