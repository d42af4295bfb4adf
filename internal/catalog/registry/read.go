package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
)

const (
	// reachLimit bounds how long an address that nobody answers at is tried.
	reachLimit = 3 * time.Second
	// readLimit bounds how long reading may take: the registry lists the bundles of all packages.
	readLimit = 5 * time.Minute
)

// Read reads one package from the registry at address. As the registry lists them, bundles that have an image come without their
// manifests: catalog.Loader's Pull gets these.
func Read(ctx context.Context, address, pkg string) (*catalog.Catalog, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: reachLimit}))
	if err != nil {
		return nil, fmt.Errorf("read package %s from the registry at %s: %w", pkg, address, err)
	}
	defer func() { _ = conn.Close() }()
	documents, err := read(ctx, api.NewRegistryClient(conn), pkg)
	if err != nil {
		return nil, fmt.Errorf("read package %s from the registry at %s: %w", pkg, address, err)
	}
	c := catalog.Parse(address, documents)
	return c, c.Err()
}

// listed are the documents of a package; its channels and bundles are in the order in which they come.
type listed struct {
	pkg      string
	channels []*channelDocument
	bundles  []bundleDocument
}

type channelDocument struct {
	Schema  string  `json:"schema"`
	Package string  `json:"package"`
	Name    string  `json:"name"`
	Entries []entry `json:"entries"`
}

type entry struct {
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces,omitempty"`
	Skips     []string `json:"skips,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
}

type bundleDocument struct {
	Schema     string     `json:"schema"`
	Package    string     `json:"package"`
	Name       string     `json:"name"`
	Image      string     `json:"image,omitempty"`
	Properties []property `json:"properties"`
}

type property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// read returns the documents of pkg, a line each.
func read(ctx context.Context, client api.RegistryClient, pkg string) ([]byte, error) {
	p, err := client.GetPackage(ctx, &api.GetPackageRequest{Name: pkg})
	if err != nil {
		return nil, err
	}
	stream, err := client.ListBundles(ctx, &api.ListBundlesRequest{})
	if err != nil {
		return nil, err
	}
	all := &listed{pkg: pkg}
	for left := document.MaxText; ; {
		b, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all.encode(p.GetDefaultChannelName())
		}
		if err != nil {
			return nil, err
		}
		if left -= proto.Size(b); left < 0 {
			return nil, fmt.Errorf("the registry has more than %d MB of bundles", document.MaxText>>20)
		}
		if b.GetPackageName() != pkg {
			continue
		}
		if err := all.add(b); err != nil {
			return nil, fmt.Errorf("bundle %s: %w", b.GetCsvName(), err)
		}
	}
}

// add adds b, which is listed once for each of its channels.
func (l *listed) add(b *api.Bundle) error {
	i := slices.IndexFunc(l.channels, func(c *channelDocument) bool { return c.Name == b.GetChannelName() })
	if i < 0 {
		i = len(l.channels)
		l.channels = append(l.channels, &channelDocument{Schema: catalog.SchemaChannel, Package: l.pkg, Name: b.GetChannelName()})
	}
	l.channels[i].Entries = append(l.channels[i].Entries, entry{b.GetCsvName(), b.GetReplaces(), b.GetSkips(), b.GetSkipRange()})
	if slices.ContainsFunc(l.bundles, func(other bundleDocument) bool { return other.Name == b.GetCsvName() }) {
		return nil
	}
	d := bundleDocument{Schema: catalog.SchemaBundle, Package: l.pkg, Name: b.GetCsvName(), Image: b.GetBundlePath()}
	for _, p := range b.GetProperties() {
		d.Properties = append(d.Properties, property{p.GetType(), json.RawMessage(p.GetValue())})
	}
	for _, object := range b.GetObject() {
		value, err := json.Marshal(map[string][]byte{"data": []byte(object)})
		if err != nil {
			return err
		}
		d.Properties = append(d.Properties, property{catalog.PropertyObject, value})
	}
	l.bundles = append(l.bundles, d)
	return nil
}

func (l *listed) encode(defaultChannel string) ([]byte, error) {
	documents := []any{map[string]string{"schema": catalog.SchemaPackage, "name": l.pkg, "defaultChannel": defaultChannel}}
	for _, c := range l.channels {
		documents = append(documents, c)
	}
	for _, b := range l.bundles {
		documents = append(documents, b)
	}
	var out []byte
	for _, d := range documents {
		line, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}
