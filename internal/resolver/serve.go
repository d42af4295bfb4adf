package resolver

import (
	"context"
	"fmt"
	"net"

	controllerregistry "github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry"
	registryclient "github.com/operator-framework/operator-registry/pkg/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/catalog/registry"
)

// Key names a CatalogSource.
type Key = controllerregistry.CatalogKey

// Clients are connections to catalogs.
type Clients map[Key]registryclient.Interface

// ClientsForNamespaces returns those to the catalogs of namespaces.
func (all Clients) ClientsForNamespaces(namespaces ...string) map[Key]registryclient.Interface {
	of := map[Key]registryclient.Interface{}
	for key, c := range all {
		for _, n := range namespaces {
			if key.Namespace == n {
				of[key] = c
			}
		}
	}
	return of
}

// Serve serves catalogs inside of this process, until stop is called.
func Serve(ctx context.Context, catalogs map[Key]*catalog.Catalog) (_ Clients, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	clients := Clients{}
	stop = func() {
		cancel()
		for _, c := range clients {
			_ = c.Close()
		}
	}
	for key, c := range catalogs {
		listener := bufconn.Listen(1 << 20)
		go func() { _ = registry.Serve(ctx, listener, c) }()
		conn, err := grpc.NewClient("passthrough:///"+key.Name, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
		if err != nil {
			return clients, stop, fmt.Errorf("read catalog %s/%s: %w", key.Namespace, key.Name, err)
		}
		clients[key] = registryclient.NewClientFromConn(conn)
	}
	return clients, stop, nil
}
