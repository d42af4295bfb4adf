package registry

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/operator-framework/operator-registry/pkg/cache"
	"github.com/operator-framework/operator-registry/pkg/server"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	ourcache "github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/catalog"
)

// serve starts serving on a loopback port and returns a connection to it.
func serve(t *testing.T, run func(net.Listener)) *grpc.ClientConn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go run(listener)
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func ours(t *testing.T, load func(context.Context, ...string) (*catalog.Catalog, error), dir string) *grpc.ClientConn {
	t.Helper()
	c, err := load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	return serve(t, func(l net.Listener) { _ = Serve(ctx, l, c) })
}

// theirs is operator-registry's own server, as 'opm serve' runs it.
func theirs(t *testing.T, dir string) *grpc.ClientConn {
	t.Helper()
	store, err := cache.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Build(t.Context(), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := store.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	api.RegisterRegistryServer(s, server.NewRegistryServer(store))
	t.Cleanup(func() { s.Stop(); _ = store.Close() })
	return serve(t, func(l net.Listener) { _ = s.Serve(l) })
}

// receive reads a stream to its end.
func receive[T any](t *testing.T, next func() (T, error)) []T {
	t.Helper()
	var all []T
	for {
		v, err := next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
}

func bundles(t *testing.T, client api.RegistryClient) []*api.Bundle {
	t.Helper()
	stream, err := client.ListBundles(t.Context(), &api.ListBundlesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	all := receive(t, stream.Recv)
	slices.SortFunc(all, func(a, b *api.Bundle) int {
		return cmp.Or(cmp.Compare(a.GetPackageName(), b.GetPackageName()), cmp.Compare(a.GetChannelName(), b.GetChannelName()), cmp.Compare(a.GetCsvName(), b.GetCsvName()))
	})
	return all
}

// canonical renders a bundle for comparison: what the registry lists in no particular order is sorted, also the fields of
// properties, which olmkit keeps in the author's order.
func canonical(b *api.Bundle) string {
	for _, p := range b.Properties {
		p.Value = sorted(p.Value)
	}
	for _, d := range b.Dependencies {
		d.Value = sorted(d.Value)
	}
	slices.Sort(b.Object)
	for _, kinds := range [][]*api.GroupVersionKind{b.ProvidedApis, b.RequiredApis} {
		slices.SortFunc(kinds, func(x, y *api.GroupVersionKind) int { return cmp.Compare(x.String(), y.String()) })
	}
	slices.SortFunc(b.Properties, func(x, y *api.Property) int {
		return cmp.Or(cmp.Compare(x.GetType(), y.GetType()), cmp.Compare(x.GetValue(), y.GetValue()))
	})
	return protojson.Format(b)
}

// sorted puts the fields of a JSON document in order.
func sorted(document string) string {
	var value any
	if err := json.Unmarshal([]byte(document), &value); err != nil {
		return document
	}
	out, _ := json.Marshal(value)
	return string(out)
}

// TestServesWhatOPMServes compares every answer with that of operator-registry's server.
func TestServesWhatOPMServes(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	kept := catalog.Loader{Cache: ourcache.New(t.TempDir())}
	for _, way := range []struct {
		name string
		load func(context.Context, ...string) (*catalog.Catalog, error)
	}{{"loaded", catalog.Loader{}.Load}, {"lazy", kept.OpenLazy}, {"from the cache", kept.OpenLazy}, {"without a cache", catalog.Loader{}.OpenLazy}} {
		for _, dir := range append(dirs, "../../../catalog") {
			t.Run(way.name+" "+filepath.Base(dir), func(t *testing.T) { servesWhatOPMServes(t, way.load, dir) })
		}
	}
}

func servesWhatOPMServes(t *testing.T, load func(context.Context, ...string) (*catalog.Catalog, error), dir string) {
	t.Helper()
	mine, opm := api.NewRegistryClient(ours(t, load, dir)), api.NewRegistryClient(theirs(t, dir))
	names := map[string][]string{}
	for who, client := range map[string]api.RegistryClient{"olmkit": mine, "opm": opm} {
		stream, err := client.ListPackages(t.Context(), &api.ListPackageRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range receive(t, stream.Recv) {
			names[who] = append(names[who], p.GetName())
		}
		slices.Sort(names[who])
	}
	if !slices.Equal(names["olmkit"], names["opm"]) || len(names["opm"]) == 0 {
		t.Fatalf("packages %v", names)
	}
	for _, name := range names["opm"] {
		got, err := mine.GetPackage(t.Context(), &api.GetPackageRequest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		want, err := opm.GetPackage(t.Context(), &api.GetPackageRequest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(want.Channels, func(a, b *api.Channel) int { return cmp.Compare(a.GetName(), b.GetName()) })
		if protojson.Format(got) != protojson.Format(want) {
			t.Errorf("package %s: got\n%s\nwant\n%s", name, protojson.Format(got), protojson.Format(want))
		}
	}
	got, want := bundles(t, mine), bundles(t, opm)
	if len(got) != len(want) {
		t.Fatalf("%d bundles, want %d", len(got), len(want))
	}
	for i := range want {
		if canonical(got[i]) != canonical(want[i]) {
			t.Errorf("listed bundle %s in %s differs: got\n%.2000s\nwant\n%.2000s", want[i].GetCsvName(), want[i].GetChannelName(), canonical(got[i]), canonical(want[i]))
		}
		key := &api.GetBundleRequest{PkgName: want[i].GetPackageName(), ChannelName: want[i].GetChannelName(), CsvName: want[i].GetCsvName()}
		whole, err := mine.GetBundle(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		expected, err := opm.GetBundle(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if canonical(whole) != canonical(expected) {
			t.Errorf("bundle %v differs", key)
		}
	}
}

func TestUnknownThings(t *testing.T) {
	connection := ours(t, catalog.Loader{}.Load, "../../../catalog")
	client := api.NewRegistryClient(connection)
	_, err := client.GetPackage(t.Context(), &api.GetPackageRequest{Name: "nothing"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("an unknown package: %v", err)
	}
	_, err = client.GetBundle(t.Context(), &api.GetBundleRequest{PkgName: "memcached-operator", ChannelName: "stable", CsvName: "nothing"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("an unknown bundle: %v", err)
	}
	answer, err := healthpb.NewHealthClient(connection).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", answer, err)
	}
}

// TestReplaceUnderLoad lists bundles on many connections while one catalog takes the place of another: each answer is of
// one catalog, no call fails, and the catalogs that are gone take no memory.
func TestReplaceUnderLoad(t *testing.T) {
	const bundles, replacements, clients = 20, 15, 4
	// made returns a catalog of so many bundles of version, each with a large manifest.
	made := func(version string) *catalog.Catalog {
		var b strings.Builder
		b.WriteString(`{"schema":"olm.package","name":"tea","defaultChannel":"stable"}` + "\n" + `{"schema":"olm.channel","package":"tea","name":"stable","entries":[`)
		for i := range bundles {
			fmt.Fprintf(&b, `{"name":"tea.v%s.%d"},`, version, i)
		}
		text := strings.TrimSuffix(b.String(), ",") + "]}\n"
		b.Reset()
		b.WriteString(text)
		data := base64.StdEncoding.EncodeToString([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"a":"` + strings.Repeat("x", 20_000) + `"}}`))
		for i := range bundles {
			fmt.Fprintf(&b, `{"schema":"olm.bundle","package":"tea","name":"tea.v%s.%d","image":"","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"%s.%d"}},{"type":"olm.bundle.object","value":{"data":%q}}]}`+"\n", version, i, version, i, data)
		}
		c := catalog.Parse("catalog.json", []byte(b.String()))
		if err := c.Err(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := New(made("1.0"))
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(ctx, listener) }()

	var wait sync.WaitGroup
	done, answered, ended := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
	for range clients {
		connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		client := api.NewRegistryClient(connection)
		wait.Add(1)
		go func() {
			defer wait.Done()
			for {
				select {
				case <-done:
					return
				default:
				}
				stream, err := client.ListBundles(t.Context(), &api.ListBundlesRequest{})
				if err != nil {
					t.Error(err)
					return
				}
				seen := map[string]int{}
				for {
					b, err := stream.Recv()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Error(err)
						return
					}
					seen[b.GetVersion()[:strings.LastIndexByte(b.GetVersion(), '.')]]++
				}
				for version, n := range seen {
					if len(seen) != 1 || n != bundles {
						t.Errorf("%d bundles of version %s; in all %v", n, version, seen)
					}
				}
				select {
				case answered <- struct{}{}:
				default:
				}
			}
		}()
	}
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	go func() { wait.Wait(); close(ended) }()
	before := heap()
	for i := range replacements {
		select {
		case <-answered: // each catalog is served for a while
		case <-ended:
		}
		server.Replace(made(fmt.Sprintf("1.%d", i+1)))
	}
	close(done)
	<-ended
	if after := heap(); after > before+4<<20 { // all that were replaced are 15 MB
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
