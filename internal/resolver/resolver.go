// Package resolver asks OLM's own resolver which bundles OLM takes from a catalog, dependencies and constraints included, and
// serves catalogs to it.
package resolver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	v1alpha1listers "github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/listers/operators/v1alpha1"
	olmresolver "github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver"
	olmcache "github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver/cache"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver/solver"
	"github.com/sirupsen/logrus"
	"k8s.io/client-go/tools/cache"

	"github.com/olmkit/olmkit/internal/catalog"
)

// Answer is what OLM takes for a Subscription to a channel.
type Answer struct {
	To    string   // the bundle that OLM takes, "" for none
	Along []Change // of other packages, by their names
	// Why OLM takes no bundle or another than was asked about; "" if it takes that one.
	Why string
	// Missing says why OLM would not install the installed bundle today. The answer is then for a cluster that has this bundle
	// alone, without its dependencies.
	Missing string
}

// Change is a bundle that OLM installs, or upgrades to, together with another.
type Change struct {
	Package string
	From    string // "" if OLM installs it
	To      string
}

// Channel answers for Subscriptions to one channel of a catalog.
type Channel struct {
	pkg, name string
	available []*olmcache.Entry
}

// The Subscriptions that are asked about, and the catalog, are in one namespace.
const namespace = "operators"

var (
	source  = olmcache.SourceKey{Name: "catalog", Namespace: namespace}
	virtual = olmcache.NewVirtualSourceKey(namespace)
)

// Open reads c as OLM's catalog-operator does, for Subscriptions to a channel of pkg.
func Open(ctx context.Context, c *catalog.Catalog, pkg, channel string) (*Channel, error) {
	key := Key{Name: source.Name, Namespace: source.Namespace}
	clients, stop, err := Serve(ctx, map[Key]*catalog.Catalog{key: c})
	defer stop()
	if err != nil {
		return nil, err
	}
	sources := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	object := &v1alpha1.CatalogSource{}
	object.Name, object.Namespace = key.Name, key.Namespace
	_ = sources.Add(object) // an object with a name always has a key
	provider := olmresolver.SourceProviderFromRegistryClientProvider(clients, v1alpha1listers.NewCatalogSourceLister(sources), silent())
	snapshot, err := provider.Sources(namespace)[source].Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the catalog as OLM does: %w", err)
	}
	return &Channel{pkg: pkg, name: channel, available: snapshot.Entries}, nil
}

func silent() *logrus.Logger {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	return logger
}

// New returns what OLM installs for a new Subscription, which planned is expected to be.
func (c *Channel) New(planned string) Answer {
	return c.answer(cluster{}, c.subscription("", ""), planned)
}

// From returns what OLM upgrades an installed bundle to, which planned is expected to be. With it are installed the dependencies
// that OLM installs with it today.
func (c *Channel) From(installed, planned string) Answer {
	before, err := c.install(installed)
	if err != nil {
		before = c.alone(installed)
	}
	a := c.answer(before, c.subscription(installed, ""), planned)
	if err != nil {
		a.Missing = reason(err)
	}
	return a
}

// cluster is what is installed.
type cluster struct {
	entries       []*olmcache.Entry
	subscriptions []*v1alpha1.Subscription
}

// add installs a bundle, to which sub is.
func (k *cluster) add(e *olmcache.Entry, sub *v1alpha1.Subscription) {
	k.entries = append(k.entries, &olmcache.Entry{
		Name: e.Name, Version: e.Version, Properties: e.Properties, ProvidedAPIs: e.ProvidedAPIs, RequiredAPIs: e.RequiredAPIs,
		SourceInfo: &olmcache.OperatorSourceInfo{Catalog: virtual, Package: e.Package(), Subscription: sub},
	})
	k.subscriptions = append(k.subscriptions, sub)
}

// install returns a cluster with a bundle of the channel, and with what OLM installs together with it.
func (c *Channel) install(bundle string) (cluster, error) {
	solution, err := c.resolve(cluster{}, c.subscription("", bundle))
	if err != nil {
		return cluster{}, err
	}
	var k cluster
	for _, e := range solution {
		k.add(e, subscribed(e.Package(), e.Channel(), e.Name))
	}
	return k, nil
}

// alone returns a cluster with nothing but a bundle of the channel.
func (c *Channel) alone(bundle string) cluster {
	var k cluster
	for _, e := range c.available {
		if e.Name == bundle && e.Package() == c.pkg && e.Channel() == c.name {
			k.add(e, c.subscription(bundle, ""))
		}
	}
	return k
}

// answer asks for sub, which is one of those in k or a new one.
func (c *Channel) answer(k cluster, sub *v1alpha1.Subscription, planned string) Answer {
	var a Answer
	solution, err := c.resolve(k, sub)
	if err != nil {
		a.Why = reason(err)
	}
	for _, e := range solution {
		switch {
		case e.Package() != c.pkg:
			if from := k.of(e.Package()); from != e.Name {
				a.Along = append(a.Along, Change{Package: e.Package(), From: from, To: e.Name})
			}
		case e.Name != sub.Status.InstalledCSV: // OLM can choose again what is installed
			a.To = e.Name
		}
	}
	slices.SortFunc(a.Along, func(a, b Change) int { return strings.Compare(a.Package, b.Package) })
	if err == nil && a.To != planned && planned != "" {
		// Its other dependencies stay; only the bundle itself makes way for the one that was expected.
		if _, err := c.resolve(k.without(c.pkg), c.subscription("", planned)); err != nil {
			a.Why = reason(err)
		}
	}
	return a
}

// resolve returns the bundles that OLM adds to k. A Subscription of k to the same package as sub is left out.
func (c *Channel) resolve(k cluster, sub *v1alpha1.Subscription) ([]*olmcache.Entry, error) {
	content := olmcache.New(olmcache.StaticSourceProvider{
		source:  &olmcache.Snapshot{Entries: c.available},
		virtual: &olmcache.Snapshot{Entries: k.entries},
	})
	subscriptions := slices.Concat(k.without(c.pkg).subscriptions, []*v1alpha1.Subscription{sub})
	return olmresolver.NewDefaultResolver(content, silent()).Resolve([]string{namespace}, subscriptions)
}

// of returns the installed bundle of a package, or "".
func (k cluster) of(pkg string) string {
	for _, e := range k.entries {
		if e.SourceInfo.Package == pkg {
			return e.Name
		}
	}
	return ""
}

// without returns k less a package.
func (k cluster) without(pkg string) cluster {
	var rest cluster
	for i, e := range k.entries {
		if e.SourceInfo.Package != pkg {
			rest.entries, rest.subscriptions = append(rest.entries, e), append(rest.subscriptions, k.subscriptions[i])
		}
	}
	return rest
}

// subscription is one to the channel.
func (c *Channel) subscription(installed, starting string) *v1alpha1.Subscription {
	s := subscribed(c.pkg, c.name, installed)
	s.Spec.StartingCSV = starting
	return s
}

func subscribed(pkg, channel, installed string) *v1alpha1.Subscription {
	s := &v1alpha1.Subscription{Spec: &v1alpha1.SubscriptionSpec{
		CatalogSource: source.Name, CatalogSourceNamespace: source.Namespace, Package: pkg, Channel: channel,
	}}
	s.Name, s.Namespace = pkg, namespace
	s.Status.InstalledCSV, s.Status.CurrentCSV = installed, installed
	return s
}

// plain leaves out the names of the catalog and the namespace, which are made up.
var plain = strings.NewReplacer(source.String()+"/", "", virtual.String()+"//", "installed ")

// reason is what the resolver says, in the same order every time.
func reason(err error) string {
	var unsatisfied solver.NotSatisfiable
	if !errors.As(err, &unsatisfied) {
		return plain.Replace(err.Error())
	}
	var parts []string
	for _, constraint := range unsatisfied {
		parts = append(parts, plain.Replace(constraint.String()))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
