package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/output"
)

// packageNames asks a served catalog for the names of its packages.
func packageNames(t *testing.T, connection *grpc.ClientConn) []string {
	t.Helper()
	stream, err := api.NewRegistryClient(connection).ListPackages(t.Context(), &api.ListPackageRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for {
		p, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, p.GetName())
	}
}

// messages is a standard error that can be read while it is written.
type messages struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *messages) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *messages) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// eventually waits until ok reports true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("%s did not come about", what)
		case <-look.C:
		}
	}
}

func TestCatalogServe(t *testing.T) {
	dir := t.TempDir()
	publish := func(name string, text string) {
		t.Helper()
		if err := output.Write(t.Context(), filepath.Join(dir, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	publish("tea.yaml", "schema: olm.package\nname: tea\n")

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	out, printed := io.Pipe()
	said := &messages{}
	ended := make(chan int, 1)
	go func() {
		ended <- Run(ctx, Streams{In: strings.NewReader(""), Out: printed, Err: said}, []string{"catalog", "serve", dir, "--address", "127.0.0.1:0"})
		_ = printed.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no address was printed: %v\n%s", err, said)
	}
	address := strings.TrimSpace(line)
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()

	if got := packageNames(t, connection); !slices.Equal(got, []string{"tea"}) {
		t.Errorf("packages %v", got)
	}
	health, err := healthpb.NewHealthClient(connection).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || health.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health %v (%v)", health, err)
	}
	reflection, err := reflectionpb.NewServerReflectionClient(connection).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := reflection.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	services, err := reflection.Recv()
	if err != nil || !strings.Contains(services.String(), "api.Registry") {
		t.Errorf("services %v (%v)", services, err)
	}

	publish("coffee.yaml", "schema: olm.package\nname: coffee\n")
	eventually(t, "the new package", func() bool { return slices.Equal(packageNames(t, connection), []string{"coffee", "tea"}) })
	publish("coffee.yaml", "a: [")
	eventually(t, "the complaint", func() bool { return strings.Contains(said.String(), "cannot be read") })
	if got := packageNames(t, connection); !slices.Equal(got, []string{"coffee", "tea"}) {
		t.Errorf("after a change that cannot be read, packages %v", got)
	}
	if err := os.Remove(filepath.Join(dir, "coffee.yaml")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the package's end", func() bool { return slices.Equal(packageNames(t, connection), []string{"tea"}) })
	if err := reflection.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Errorf("the stream of the first catalog's time is gone: %v", err)
	}
	if _, err := reflection.Recv(); err != nil {
		t.Errorf("the stream of the first catalog's time is gone: %v", err)
	}

	var errOut strings.Builder
	code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errOut}, []string{"catalog", "serve", dir, "--address", address})
	if code != exitFailed || !strings.Contains(errOut.String(), "choose another address with --address") {
		t.Errorf("a taken address: exit code %d\n%s", code, errOut.String())
	}

	stop()
	if code := <-ended; code != exitPassed {
		t.Errorf("exit code %d\n%s", code, said)
	}
}

// A catalog is served to this machine alone, unless it is said otherwise: there is no TLS, and nobody is asked who they are.
func TestCatalogServeAddress(t *testing.T) {
	flag := newCatalogServe(&session{}).Flags().Lookup("address")
	host, _, err := net.SplitHostPort(flag.DefValue)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("the default is %s (%v)", flag.DefValue, err)
	}
}

func TestRefusedByOpm(t *testing.T) {
	c := catalog.Parse("tea.yaml", []byte(`
schema: olm.package
name: tea
---
schema: olm.channel
package: tea
name: one
entries: [{name: tea.v1}, {name: tea.v2, replaces: tea.v1}]
---
schema: olm.channel
package: tea
name: two
entries: [{name: tea.v1}, {name: tea.v2, skipRange: <2.0.0}]
---
schema: olm.channel
package: tea
name: none
entries: [{name: tea.v1, replaces: tea.v2}, {name: tea.v2, replaces: tea.v1}]
`))
	want := []string{"channel none of package tea has no head", "channel two of package tea has several heads: tea.v1, tea.v2"}
	if got := refusedByOpm(c); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
