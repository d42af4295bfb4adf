package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/catalog/registry"
	"github.com/olmkit/olmkit/internal/hint"
)

// lookPeriod is how often a served catalog's files are looked at for changes.
const lookPeriod = time.Second

// readingGC is by how many percent the heap may grow before it is cleaned while a server reads its catalog.
const readingGC = 10

func newCatalogServe(s *session) *cobra.Command {
	var address string
	c := &cobra.Command{
		Use:   "serve REF...",
		Short: "Serve a catalog over the gRPC API by which OLM reads catalogs",
		Long: `Serve a catalog over the gRPC API by which OLM reads catalogs, with the gRPC health and reflection services, until it is
interrupted. The address is printed once it answers; a CatalogSource names it as spec.address. Unless --address says otherwise,
only this machine reaches it: there is no TLS and no authentication.

When files of the catalog change, they are read again, and open connections get the new content. If a changed file is invalid,
the command reports that and serves the content from before.`,
		Example: `  olmkit catalog serve catalog
  grpcurl -plaintext localhost:50051 api.Registry/ListPackages`,
		Args: atLeastOne("REF"),
		RunE: func(c *cobra.Command, args []string) error { return s.serveCatalog(c.Context(), address, args) },
	}
	c.Flags().StringVar(&address, "address", "127.0.0.1:50051", "address to listen on; :50051 for those of all interfaces")
	return c
}

func (s *session) serveCatalog(ctx context.Context, address string, refs []string) error {
	for _, ref := range refs {
		if ref == "-" && len(refs) > 1 {
			return usagef("standard input can only be served alone")
		}
	}
	load := func(ctx context.Context) (*catalog.Catalog, error) {
		s.decidesCollection()
		defer debug.SetGCPercent(debug.SetGCPercent(readingGC)) // files are large, and what is kept of them is small
		loaded, err := s.loader().OpenLazy(ctx, refs...)
		if err != nil {
			return nil, err
		}
		if err := loaded.Err(); err != nil {
			return nil, err
		}
		for _, refused := range refusedByOpm(loaded) {
			s.progress().Say("note: %s: 'opm serve' refuses the catalog, see 'olmkit catalog validate'", refused)
		}
		return loaded, nil
	}
	loaded, err := load(ctx)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		err = fmt.Errorf("serve the catalog: %w", err)
		if wrong := (*net.AddrError)(nil); errors.As(err, &wrong) {
			return hint.With(usageError{fmt.Errorf("--address %s: %w", address, err)}, "write HOST:PORT, as in 127.0.0.1:50051, with a port up to 65535")
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			return hint.With(err, "stop what listens there, or choose another address with --address; :0 takes any free port")
		}
		return hint.With(err, "choose an address of this machine with --address, as in 127.0.0.1:50051")
	}
	p := s.progress()
	if _, err := fmt.Fprintln(s.Out, listener.Addr()); err != nil {
		listener.Close()
		return err
	}
	p.Say("serving at %s, packages: %d", listener.Addr(), len(loaded.Packages))
	server := registry.New(loaded)
	go server.Follow(ctx, lookPeriod, func() (string, error) { return stamp(refs) }, load, func(err error) {
		if err == nil {
			p.Say("the catalog changed, and is served as it is now")
			return
		}
		p.Say("the catalog changed, but cannot be read; what was served before is served on: %v", err)
	})
	return server.Serve(ctx, listener)
}

// refusedByOpm names the channels for which opm does not serve a catalog: those without one head (operator-registry v1.74.0,
// alpha/model/model.go, Head).
func refusedByOpm(c *catalog.Catalog) (refused []string) {
	for _, p := range c.Packages {
		for _, channel := range p.Channels {
			switch heads := channel.Heads(); len(heads) {
			case 0:
				refused = append(refused, fmt.Sprintf("channel %s of package %s has no head", channel.Name, p.Name))
			case 1:
			default:
				refused = append(refused, fmt.Sprintf("channel %s of package %s has several heads: %s", channel.Name, p.Name, strings.Join(heads, ", ")))
			}
		}
	}
	return refused
}

// stamp returns a text that changes when a file below one of refs does. References that are no paths never change.
func stamp(refs []string) (string, error) {
	var b strings.Builder
	for _, ref := range refs {
		err := filepath.WalkDir(ref, func(name string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && name == ref {
				return nil
			}
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%q %d %d %s\n", name, info.Size(), info.ModTime().UnixNano(), info.Mode())
			return nil
		})
		if err != nil {
			return b.String(), err
		}
	}
	return b.String(), nil
}
