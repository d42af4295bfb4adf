package diagnosis

import (
	"context"
	"errors"
	"io"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/clientset/versioned"
	clientv1alpha1 "github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/clientset/versioned/typed/operators/v1alpha1"
	operatorsv1listers "github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/listers/operators/v1"
	v1alpha1listers "github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/listers/operators/v1alpha1"
	olmresolver "github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/lib/operatorlister"
	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/resolver"
)

// Key names a CatalogSource.
type Key = resolver.Key

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
	clients, stop, err := resolver.Serve(ctx, catalogs)
	defer stop()
	if err != nil {
		return next{err: err}
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	lister, subscriptions := s.listers(namespace)
	sources := olmresolver.SourceProviderFromRegistryClientProvider(clients, lister.OperatorsV1alpha1().CatalogSourceLister(), logger)
	api := readAPI{subscriptions: subscriptions}
	r := olmresolver.NewOperatorStepResolver(lister, api, s.OLM.Namespace, olmresolver.NewOperatorCacheProvider(lister, api, sources, logger), logger)
	_, _, changed, err := r.ResolveSteps(namespace)
	n := next{to: map[string]string{}, err: err}
	for _, sub := range changed {
		n.to[sub.Name] = sub.Status.CurrentCSV
	}
	return n
}

// listers hold what the resolver reads of the cluster, and the Subscriptions of namespace.
func (s *State) listers(namespace string) (operatorlister.OperatorLister, []v1alpha1.Subscription) {
	index := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	subscriptions, versions, sources, groups := index(), index(), index(), index()
	var copies []v1alpha1.Subscription
	for i := range s.Subscriptions {
		if s.Subscriptions[i].Namespace == namespace {
			o := s.Subscriptions[i].DeepCopy()
			_ = subscriptions.Add(o) // an object with a name always has a key
			copies = append(copies, *o.DeepCopy())
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
	return lister, copies
}

// readAPI is the API of a cluster as the resolver uses it: it lists the Subscriptions of one namespace, past the listers. OLM's fake
// clientset could as well, and brings all of Kubernetes' fakes with it.
type readAPI struct {
	versioned.Interface
	clientv1alpha1.OperatorsV1alpha1Interface
	clientv1alpha1.SubscriptionInterface
	subscriptions []v1alpha1.Subscription
}

// OperatorsV1alpha1 is versioned.Interface's.
func (a readAPI) OperatorsV1alpha1() clientv1alpha1.OperatorsV1alpha1Interface { return a }

// Subscriptions is OperatorsV1alpha1Interface's.
func (a readAPI) Subscriptions(string) clientv1alpha1.SubscriptionInterface { return a }

// List is SubscriptionInterface's.
func (a readAPI) List(context.Context, metav1.ListOptions) (*v1alpha1.SubscriptionList, error) {
	return &v1alpha1.SubscriptionList{Items: a.subscriptions}, nil
}
