package registry

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"

	"github.com/olmkit/olmkit/internal/catalog"
)

// TestRead: a package is read from olmkit's and from operator-registry's server as it is in the catalog's files, and no other is.
func TestRead(t *testing.T) {
	for _, dir := range []string{"testdata/shop", "../../../catalog"} {
		loaded, err := catalog.Load(t.Context(), nil, dir)
		if err != nil {
			t.Fatal(err)
		}
		want := loaded.Packages[0]
		for who, connection := range map[string]*grpc.ClientConn{"olmkit": ours(t, catalog.Loader{}.Load, dir), "opm": theirs(t, dir)} {
			read, err := Read(t.Context(), connection.Target(), want.Name)
			if err != nil {
				t.Fatal(err)
			}
			got := read.Packages[0]
			if len(read.Packages) != 1 || got.DefaultChannel != want.DefaultChannel {
				t.Errorf("%s serves of %s %d packages, with default channel %s", who, dir, len(read.Packages), got.DefaultChannel)
			}
			if graphOf(got) != graphOf(want) {
				t.Errorf("%s serves of %s\n%s, want\n%s", who, dir, graphOf(got), graphOf(want))
			}
			for _, b := range want.Bundles {
				if served := got.Bundle(b.Name); served == nil || served.Image != b.Image || !served.Version.Equals(b.Version) || len(catalog.Bare([]*catalog.Bundle{served})) != len(catalog.Bare([]*catalog.Bundle{b})) {
					t.Errorf("%s serves of %s, bundle %s: %+v", who, dir, b.Name, served)
				}
			}
		}
	}
}

// graphOf are the channels of p, in their order, with their entries in the order of their names.
func graphOf(p *catalog.Package) string {
	var lines []string
	for _, c := range p.Channels {
		for _, e := range c.Entries {
			lines = append(lines, fmt.Sprintf("%s: %s replaces %q skips %q %q", c.Name, e.Name, e.Replaces, e.Skips, e.SkipRange))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// garbled is a registry with a property that is no JSON.
type garbled struct {
	api.UnimplementedRegistryServer
}

func (garbled) GetPackage(context.Context, *api.GetPackageRequest) (*api.Package, error) {
	return &api.Package{Name: "tea", DefaultChannelName: "stable"}, nil
}

func (garbled) ListBundles(_ *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	return stream.Send(&api.Bundle{PackageName: "tea", ChannelName: "stable", CsvName: "tea.v1", Properties: []*api.Property{{Type: "a", Value: "{"}}})
}

// TestReadFails: what cannot be read is an error that says where.
func TestReadFails(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	server := grpc.NewServer()
	api.RegisterRegistryServer(server, garbled{})
	t.Cleanup(server.Stop)
	for name, address := range map[string]string{
		"nobody answers":           closed.Addr().String(),
		"there is no such package": ours(t, catalog.Loader{}.Load, "testdata/shop").Target(),
		"what is served is wrong":  serve(t, func(l net.Listener) { _ = server.Serve(l) }).Target(),
	} {
		if c, err := Read(t.Context(), address, "tea"); err == nil || !strings.Contains(err.Error(), "read package tea from the registry at "+address) {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}
