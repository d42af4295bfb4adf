package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/blang/semver/v4"
	"github.com/spf13/pflag"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
	"github.com/olmkit/olmkit/internal/subscription"
)

// v1SubscriptionFlags are those of 'subscription generate' that mean something under OLM v1.
var v1SubscriptionFlags = []string{"olm", "package", "channel", "starting-csv", "namespace", "name", "catalog", "image", "poll-interval", "catalog-source", "catalog-source-name", "output-file"}

// generateV1 writes what has OLM v1 install the package.
func (f *subscriptionFlags) generateV1(ctx context.Context, s *session, given *pflag.FlagSet) ([]byte, error) {
	var wrong error
	given.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && wrong == nil && !slices.Contains(v1SubscriptionFlags, flag.Name) {
			wrong = hint.With(usagef("--%s has no meaning under OLM v1", flag.Name), "leave it out; 'olmkit subscription generate --help' tells what --olm v1 takes")
		}
	})
	switch {
	case wrong != nil:
		return nil, wrong
	case f.catalog == "":
		return nil, hint.With(usagef("--olm v1 without --catalog: the rights to install a bundle are derived from it"), "name the file-based catalog with --catalog")
	case (f.Source.Image == "") == (f.catalogSource == ""):
		return nil, hint.With(usagef("it must be known where the catalog comes from, once"), "give --image, or --catalog-source with the name of a ClusterCatalog that the cluster has")
	}
	p, b, err := f.bundleV1(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := s.pull(ctx, []*catalog.Bundle{b}); err != nil {
		return nil, err
	}
	w := olmv1.Wanted{
		Package: p, Bundle: b, Channel: f.Channel, Namespace: cmp.Or(f.Namespace, p.Name), Name: cmp.Or(f.Name, p.Name),
		Catalog: cmp.Or(f.catalogSource, f.sourceName, p.Name+"-catalog"), Image: f.Source.Image, Poll: int(f.Source.Poll.Minutes()),
	}
	if f.StartingCSV != "" {
		w.Version = b.Version.String()
	}
	objects, err := w.Manifests()
	if err != nil {
		return nil, wrongUsage(err)
	}
	written := make([]any, len(objects))
	for i, o := range objects {
		written[i] = o
	}
	return subscription.Write(written...)
}

// bundleV1 is the bundle that OLM v1 is to install first.
func (f *subscriptionFlags) bundleV1(ctx context.Context, s *session) (*catalog.Package, *catalog.Bundle, error) {
	p, err := f.offered(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if f.Channel != "" && p.Channel(f.Channel) == nil {
		return nil, nil, noChannel(p, f.Channel)
	}
	first := cmp.Or(p.NameOf(f.StartingCSV), graph.NewV1(p, f.Channel).Next("", semver.Version{}, false))
	b := p.Bundle(first)
	if b == nil {
		return nil, nil, hint.With(usagef("package %s has no bundle %q to begin with", p.Name, first), "see 'olmkit catalog graph %s'", f.catalog)
	}
	return p, b, nil
}
