// Package registry serves a catalog over the registry's gRPC API, the one by which OLM reads catalogs
// (operator-registry v1.74.0, pkg/api/registry.proto).
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/operator-framework/operator-registry/pkg/api"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
)

// Serve answers on listener with the content of c until ctx ends. Calls in progress are then cut off.
func Serve(ctx context.Context, listener net.Listener, c *catalog.Catalog) error {
	return New(c).Serve(ctx, listener)
}

// Server serves one catalog after another.
type Server struct{ registry *registry }

// New returns a Server of c.
func New(c *catalog.Catalog) *Server {
	s := &Server{&registry{}}
	s.Replace(c)
	return s
}

// Replace serves c from now on. Connections stay, and a call that has begun ends with the catalog that it began with.
func (s *Server) Replace(c *catalog.Catalog) { s.registry.current.Store(slim(c)) }

// slim returns c without the documents that it was read from, which are as large as all that is served of them.
func slim(c *catalog.Catalog) *catalog.Catalog {
	kept := &catalog.Catalog{}
	for _, p := range c.Packages {
		of := *p
		of.Document, of.Bundles = nil, nil
		for _, b := range p.Bundles {
			bare := *b
			bare.Document = nil
			of.Bundles = append(of.Bundles, &bare)
		}
		of.Channels = slices.Clone(p.Channels)
		for i, ch := range p.Channels {
			bare := *ch
			bare.Document = nil
			of.Channels[i] = &bare
		}
		of.Deprecations = slices.Clone(p.Deprecations)
		for i := range of.Deprecations {
			of.Deprecations[i].Document = nil
		}
		kept.Packages = append(kept.Packages, &of)
	}
	return kept
}

// Serve answers on listener until ctx ends. Calls in progress are then cut off.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer()
	api.RegisterRegistryServer(server, s.registry)
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve the catalog at %s: %w", listener.Addr(), err)
	}
	return nil
}

// Follow serves what load returns whenever stamp, which is asked once in a period, changes, until ctx ends. While load
// fails the last good catalog is served on. What became of each change is told: nil when it is served, else the error.
func (s *Server) Follow(ctx context.Context, period time.Duration, stamp func() (string, error), load func(context.Context) (*catalog.Catalog, error), tell func(error)) {
	last, lastErr := stamp()
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, err := stamp()
		if now == last && (err == nil) == (lastErr == nil) {
			continue
		}
		last, lastErr = now, err
		if err == nil {
			var c *catalog.Catalog
			if c, err = load(ctx); err == nil {
				s.Replace(c)
			}
			c = nil
			debug.FreeOSMemory() // of the last catalog, and of what reading this one took
		}
		if ctx.Err() == nil {
			tell(err)
		}
	}
}

type registry struct {
	api.UnimplementedRegistryServer
	current atomic.Pointer[catalog.Catalog]
}

// placed is a bundle as an entry of a channel.
type placed struct {
	pkg     *catalog.Package
	channel *catalog.Channel
	entry   *catalog.Entry
	bundle  *catalog.Bundle
}

// each calls f for every entry of every channel whose bundle is there, until it returns an error.
func (r *registry) each(f func(placed) error) error {
	for _, p := range r.current.Load().Packages {
		for _, c := range p.Channels {
			for i := range c.Entries {
				b := p.Bundle(c.Entries[i].Name)
				if b == nil {
					continue
				}
				if err := f(placed{p, c, &c.Entries[i], b}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// find returns the first entry that fits.
func (r *registry) find(fits func(placed) bool, what string, args ...any) (placed, error) {
	var found placed
	err := r.each(func(e placed) error {
		if fits(e) {
			found = e
			return errFound
		}
		return nil
	})
	if err == nil {
		return placed{}, status.Errorf(codes.NotFound, what, args...)
	}
	return found, nil
}

var errFound = errors.New("found")

func (r *registry) ListPackages(_ *api.ListPackageRequest, stream api.Registry_ListPackagesServer) error {
	for _, p := range r.current.Load().Packages {
		if err := stream.Send(&api.PackageName{Name: p.Name}); err != nil {
			return err
		}
	}
	return nil
}

func (r *registry) GetPackage(_ context.Context, request *api.GetPackageRequest) (*api.Package, error) {
	p := r.current.Load().Find(request.GetName())
	if p == nil {
		return nil, status.Errorf(codes.NotFound, "the catalog has no package %q", request.GetName())
	}
	answer := &api.Package{Name: p.Name, DefaultChannelName: p.DefaultChannel, Deprecation: deprecation(p, catalog.SchemaPackage, "")}
	for _, c := range p.Channels {
		answer.Channels = append(answer.Channels, &api.Channel{Name: c.Name, CsvName: head(c), Deprecation: deprecation(p, catalog.SchemaChannel, c.Name)})
	}
	return answer, nil
}

// head returns the channel's first head; "" for a channel without one.
func head(c *catalog.Channel) string {
	if heads := c.Heads(); len(heads) > 0 {
		return heads[0]
	}
	return ""
}

func deprecation(p *catalog.Package, schema, name string) *api.Deprecation {
	for _, d := range p.Deprecations {
		if d.Schema == schema && d.Name == name {
			return &api.Deprecation{Message: d.Message}
		}
	}
	return nil
}

func (r *registry) GetBundle(_ context.Context, request *api.GetBundleRequest) (*api.Bundle, error) {
	e, err := r.find(func(e placed) bool {
		return e.pkg.Name == request.GetPkgName() && e.channel.Name == request.GetChannelName() && e.bundle.Name == request.GetCsvName()
	}, "the catalog has no bundle %q in channel %q of package %q", request.GetCsvName(), request.GetChannelName(), request.GetPkgName())
	if err != nil {
		return nil, err
	}
	return e.whole()
}

func (r *registry) GetBundleForChannel(_ context.Context, request *api.GetBundleInChannelRequest) (*api.Bundle, error) {
	e, err := r.find(func(e placed) bool {
		return e.pkg.Name == request.GetPkgName() && e.channel.Name == request.GetChannelName() && e.bundle.Name == head(e.channel)
	}, "the catalog has no head of channel %q of package %q", request.GetChannelName(), request.GetPkgName())
	if err != nil {
		return nil, err
	}
	return e.whole()
}

func (r *registry) ListBundles(_ *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	return r.each(func(e placed) error {
		message, err := e.message(false)
		if err != nil {
			return err
		}
		return stream.Send(message)
	})
}

func (e placed) supersedes(name string) bool {
	return e.entry.Replaces == name || slices.Contains(e.entry.Skips, name)
}

func (r *registry) GetChannelEntriesThatReplace(request *api.GetAllReplacementsRequest, stream api.Registry_GetChannelEntriesThatReplaceServer) error {
	return r.send(stream, func(e placed) bool { return e.supersedes(request.GetCsvName()) })
}

func (r *registry) GetBundleThatReplaces(_ context.Context, request *api.GetReplacementRequest) (*api.Bundle, error) {
	e, err := r.find(func(e placed) bool {
		return e.pkg.Name == request.GetPkgName() && e.channel.Name == request.GetChannelName() && e.supersedes(request.GetCsvName())
	}, "nothing in channel %q of package %q replaces %q", request.GetChannelName(), request.GetPkgName(), request.GetCsvName())
	if err != nil {
		return nil, err
	}
	return e.whole()
}

// entrySender is the stream of both calls that answer with channel entries.
type entrySender interface {
	Send(*api.ChannelEntry) error
}

func (r *registry) send(stream entrySender, fits func(placed) bool) error {
	return r.each(func(e placed) error {
		if !fits(e) {
			return nil
		}
		return stream.Send(&api.ChannelEntry{PackageName: e.pkg.Name, ChannelName: e.channel.Name, BundleName: e.bundle.Name, Replaces: e.entry.Replaces})
	})
}

func (e placed) provides(group, version, kind string) bool {
	for _, gvk := range e.kinds(catalog.PropertyGVK) {
		if gvk.Group == group && gvk.Version == version && gvk.Kind == kind {
			return true
		}
	}
	return false
}

func (r *registry) GetChannelEntriesThatProvide(request *api.GetAllProvidersRequest, stream api.Registry_GetChannelEntriesThatProvideServer) error {
	return r.send(stream, func(e placed) bool {
		return e.provides(request.GetGroup(), request.GetVersion(), request.GetKind())
	})
}

func (r *registry) GetLatestChannelEntriesThatProvide(request *api.GetLatestProvidersRequest, stream api.Registry_GetLatestChannelEntriesThatProvideServer) error {
	return r.send(stream, func(e placed) bool {
		return e.bundle.Name == head(e.channel) && e.provides(request.GetGroup(), request.GetVersion(), request.GetKind())
	})
}

func (r *registry) GetDefaultBundleThatProvides(_ context.Context, request *api.GetDefaultProviderRequest) (*api.Bundle, error) {
	e, err := r.find(func(e placed) bool {
		return e.channel.Name == e.pkg.DefaultChannel && e.bundle.Name == head(e.channel) && e.provides(request.GetGroup(), request.GetVersion(), request.GetKind())
	}, "no default channel's head provides %s/%s %s", request.GetGroup(), request.GetVersion(), request.GetKind())
	if err != nil {
		return nil, err
	}
	return e.whole()
}

func (e placed) kinds(property string) []*api.GroupVersionKind {
	var kinds []*api.GroupVersionKind
	for _, p := range e.bundle.Properties {
		var gvk struct{ Group, Version, Kind string }
		if p.Type == property && json.Unmarshal(p.Value, &gvk) == nil {
			kinds = append(kinds, &api.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind})
		}
	}
	return kinds
}

// whole renders the bundle as the answer to a question for it alone: with its manifests and, as opm has it, without its
// edges (operator-registry v1.74.0, pkg/cache/cache.go, GetBundle).
func (e placed) whole() (*api.Bundle, error) {
	message, err := e.message(true)
	if err != nil {
		return nil, err
	}
	message.Replaces, message.Skips = "", nil
	return message, nil
}

// message renders the bundle for the wire. A bundle that has an image is unpacked from there, so that its manifests are
// left out unless they were asked for alone (operator-registry v1.74.0, pkg/cache/cache.go, SendBundles).
func (e placed) message(manifests bool) (*api.Bundle, error) {
	b := e.bundle
	answer := &api.Bundle{
		CsvName: b.Name, PackageName: e.pkg.Name, ChannelName: e.channel.Name, BundlePath: b.Image,
		Version: b.Version.String(), Replaces: e.entry.Replaces, Skips: e.entry.Skips, SkipRange: e.entry.SkipRange,
		ProvidedApis: e.kinds(catalog.PropertyGVK), RequiredApis: e.kinds(catalog.PropertyGVKRequired),
		Deprecation: deprecation(e.pkg, catalog.SchemaBundle, b.Name),
	}
	for _, p := range b.Properties {
		switch p.Type {
		case catalog.PropertyObject, catalog.PropertyCSVMetadata:
			continue // OLM copies properties into the CSV's annotations, which these would overfill
		case catalog.PropertyGVKRequired:
			answer.Dependencies = append(answer.Dependencies, &api.Dependency{Type: catalog.PropertyGVK, Value: string(p.Value)})
		case catalog.PropertyPackageRequired:
			var required struct {
				PackageName  string `json:"packageName"`
				VersionRange string `json:"versionRange"`
			}
			if err := json.Unmarshal(p.Value, &required); err != nil {
				return nil, status.Errorf(codes.Internal, "bundle %s: property %s: %v", b.Name, p.Type, err)
			}
			value, err := json.Marshal(map[string]string{"packageName": required.PackageName, "version": required.VersionRange})
			if err != nil {
				return nil, err
			}
			answer.Dependencies = append(answer.Dependencies, &api.Dependency{Type: catalog.PropertyPackage, Value: string(value)})
		}
		answer.Properties = append(answer.Properties, &api.Property{Type: p.Type, Value: string(p.Value)})
	}
	if b.Image != "" && !manifests {
		return answer, nil
	}
	objects, err := b.Objects()
	if err != nil {
		return nil, status.Errorf(codes.Internal, "bundle %s: %v", b.Name, err)
	}
	for _, object := range objects {
		answer.Object = append(answer.Object, string(object))
		var kind struct {
			Kind string `json:"kind"`
		}
		if document.Decode(object, &kind) == nil && strings.EqualFold(kind.Kind, "ClusterServiceVersion") {
			answer.CsvJson = string(object)
		}
	}
	return answer, nil
}
