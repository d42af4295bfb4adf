package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/clientset/versioned/fake"
	operatorsv1listers "github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/listers/operators/v1"
	v1alpha1listers "github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/listers/operators/v1alpha1"
	controllerregistry "github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/lib/operatorlister"
	registryclient "github.com/operator-framework/operator-registry/pkg/client"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/catalog/registry"
)

// Key names a CatalogSource.
type Key = controllerregistry.CatalogKey

// next is what OLM's resolver makes of one namespace.
type next struct {
	to  map[string]string // by the name of a Subscription, the bundle that OLM goes on to
	err error             // why it goes on to none
}

// errUnread is of a namespace whose catalogs are not all known.
var errUnread = errors.New("the content of its catalogs is not known here")

// resolve asks OLM's own resolver, as catalog-operator does (ResolveSteps of operator-lifecycle-manager v0.46.0,
// pkg/controller/registry/resolver/step_resolver.go), what it would do next in namespace, with what catalogs hold. Nothing is
// written to the cluster: the resolver reads copies.
func (s *State) resolve(ctx context.Context, namespace string, catalogs map[Key]*catalog.Catalog) next {
	for _, source := range s.Catalogs {
		if (source.Namespace == namespace || source.Namespace == s.OLM.Namespace) && catalogs[Key{Name: source.Name, Namespace: source.Namespace}] == nil {
			return next{err: errUnread}
		}
	}
	clients, stop, err := serve(ctx, catalogs)
	defer stop()
	if err != nil {
		return next{err: err}
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	lister, objects := s.listers(namespace)
	sources := resolver.SourceProviderFromRegistryClientProvider(clients, lister.OperatorsV1alpha1().CatalogSourceLister(), logger)
	api := fake.NewSimpleClientset(objects...)
	r := resolver.NewOperatorStepResolver(lister, api, s.OLM.Namespace, resolver.NewOperatorCacheProvider(lister, api, sources, logger), logger)
	_, _, changed, err := r.ResolveSteps(namespace)
	n := next{to: map[string]string{}, err: err}
	for _, sub := range changed {
		n.to[sub.Name] = sub.Status.CurrentCSV
	}
	return n
}

// listers hold what the resolver reads of the cluster, and the Subscriptions of namespace.
func (s *State) listers(namespace string) (operatorlister.OperatorLister, []runtime.Object) {
	index := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	subscriptions, versions, sources, groups := index(), index(), index(), index()
	var objects []runtime.Object
	for i := range s.Subscriptions {
		if s.Subscriptions[i].Namespace == namespace {
			o := s.Subscriptions[i].DeepCopy()
			_ = subscriptions.Add(o) // an object with a name always has a key
			objects = append(objects, o.DeepCopy())
		}
	}
	for i := range s.CSVs {
		_ = versions.Add(&s.CSVs[i])
	}
	for i := range s.Catalogs {
		_ = sources.Add(&s.Catalogs[i])
	}
	for i := range s.Groups {
		_ = groups.Add(&s.Groups[i])
	}
	lister := operatorlister.NewLister()
	lister.OperatorsV1alpha1().RegisterSubscriptionLister(namespace, v1alpha1listers.NewSubscriptionLister(subscriptions))
	lister.OperatorsV1alpha1().RegisterClusterServiceVersionLister(namespace, v1alpha1listers.NewClusterServiceVersionLister(versions))
	lister.OperatorsV1().RegisterOperatorGroupLister(namespace, operatorsv1listers.NewOperatorGroupLister(groups))
	for _, ns := range []string{namespace, s.OLM.Namespace} {
		lister.OperatorsV1alpha1().RegisterCatalogSourceLister(ns, v1alpha1listers.NewCatalogSourceLister(sources))
	}
	return lister, objects
}

// served are connections to catalogs.
type served map[Key]registryclient.Interface

// ClientsForNamespaces returns those to the catalogs of namespaces.
func (s served) ClientsForNamespaces(namespaces ...string) map[Key]registryclient.Interface {
	of := map[Key]registryclient.Interface{}
	for key, c := range s {
		for _, n := range namespaces {
			if key.Namespace == n {
				of[key] = c
			}
		}
	}
	return of
}

// serve serves catalogs inside of this process, until stop is called.
func serve(ctx context.Context, catalogs map[Key]*catalog.Catalog) (_ served, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	clients := served{}
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
