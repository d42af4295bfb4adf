package rehearsal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/diagnosis"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/progress"
)

// Options of Read.
type Options struct {
	Package   string
	Namespace string // of the Subscription; "" if there is only one to the package
	Channel   string // in place of the Subscription's
	To        string // version or bundle to end at; "" for as far as OLM goes
	// Catalog loads what a CatalogSource holds.
	Catalog func(ctx context.Context, source *v1alpha1.CatalogSource) (*catalog.Catalog, error)
	// Pull completes bundles of which the catalog names the image alone.
	Pull     func(ctx context.Context, bundles []*catalog.Bundle) error
	Progress *progress.Printer
}

// Read reads through c what of its cluster bears on the next upgrades of a package. It gets and lists Subscriptions,
// ClusterServiceVersions, OperatorGroups, CatalogSources, CustomResourceDefinitions and the objects of those that the installed
// bundle owns, and nothing else.
func Read(ctx context.Context, c client.Reader, options Options) (*Snapshot, error) {
	state, sub, err := readState(ctx, c, options)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{APIVersion: APIVersion, Kind: Kind, Read: time.Now().UTC().Truncate(time.Second)}
	s.Installed = Installed{
		Package: sub.Spec.Package, Channel: sub.Spec.Channel, Namespace: sub.Namespace,
		Catalog: sub.Spec.CatalogSourceNamespace + "/" + sub.Spec.CatalogSource,
	}
	source := catalogOf(state, sub)
	loaded, err := options.Catalog(ctx, source)
	if err != nil {
		return nil, err
	}
	told := diagnosis.Diagnose(ctx, state, options.Package, map[diagnosis.Key]*catalog.Catalog{{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource}: loaded})[0]
	csv := versionOf(state, told.Installed)
	if csv == nil {
		return nil, hint.With(fmt.Errorf("no ClusterServiceVersion of Subscription %s/%s is installed", sub.Namespace, sub.Name),
			"ask 'olmkit upgrade diagnose -p %s' what is wrong", options.Package)
	}
	s.Installed.Bundle = csv.Name
	s.group(state)
	if err := s.route(ctx, loaded, csv, told, options); err != nil {
		return nil, err
	}
	return s, s.readObjects(ctx, c, csv, options.Progress)
}

// readState reads what OLM knows of the package in one namespace.
func readState(ctx context.Context, c client.Reader, options Options) (*diagnosis.State, *v1alpha1.Subscription, error) {
	var all v1alpha1.SubscriptionList
	if err := c.List(ctx, &all); err != nil {
		return nil, nil, fmt.Errorf("list Subscriptions: %w", err)
	}
	found := slices.DeleteFunc(all.Items, func(s v1alpha1.Subscription) bool {
		return s.Spec == nil || s.Spec.Package != options.Package || options.Namespace != "" && s.Namespace != options.Namespace
	})
	switch len(found) {
	case 1:
	case 0:
		return nil, nil, hint.With(fmt.Errorf("no Subscription to package %s is on the cluster", options.Package), "name the package of one: 'kubectl get subscriptions --all-namespaces' lists them")
	default:
		return nil, nil, hint.With(fmt.Errorf("%d Subscriptions to package %s are on the cluster", len(found), options.Package), "choose the namespace of one with --namespace")
	}
	sub := &found[0]
	sub.Spec.Channel = cmp.Or(options.Channel, sub.Spec.Channel)
	s := &diagnosis.State{Now: time.Now(), Subscriptions: found, OLM: lifecycle.Status{Installed: true, Namespace: sub.Spec.CatalogSourceNamespace}}
	s.Namespaces = []corev1.Namespace{{}}
	s.Namespaces[0].Name = sub.Namespace
	var versions v1alpha1.ClusterServiceVersionList
	var groups operatorsv1.OperatorGroupList
	for _, list := range []client.ObjectList{&versions, &groups} {
		if err := c.List(ctx, list, client.InNamespace(sub.Namespace)); err != nil {
			return nil, nil, fmt.Errorf("list %T in %s: %w", list, sub.Namespace, err)
		}
	}
	s.CSVs = slices.DeleteFunc(versions.Items, func(v v1alpha1.ClusterServiceVersion) bool { return v.IsCopied() })
	s.Groups = groups.Items
	var source v1alpha1.CatalogSource
	key := client.ObjectKey{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource}
	if err := c.Get(ctx, key, &source); client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("get CatalogSource %s: %w", key, err)
	} else if err == nil {
		s.Catalogs = append(s.Catalogs, source)
	}
	return s, sub, nil
}

// catalogOf returns the CatalogSource of sub; one that is gone has its name alone.
func catalogOf(s *diagnosis.State, sub *v1alpha1.Subscription) *v1alpha1.CatalogSource {
	if len(s.Catalogs) > 0 {
		return &s.Catalogs[0]
	}
	source := &v1alpha1.CatalogSource{}
	source.Namespace, source.Name = sub.Spec.CatalogSourceNamespace, sub.Spec.CatalogSource
	return source
}

func versionOf(s *diagnosis.State, name string) *v1alpha1.ClusterServiceVersion {
	for i := range s.CSVs {
		if s.CSVs[i].Name == name {
			return &s.CSVs[i]
		}
	}
	return nil
}

// group notes in s which namespaces the operator serves.
func (s *Snapshot) group(state *diagnosis.State) {
	s.Installed.Mode = lifecycle.AllNamespaces
	if len(state.Groups) != 1 {
		s.note("namespace %s has %d OperatorGroups instead of one: the operator is installed for all namespaces", s.Installed.Namespace, len(state.Groups))
		return
	}
	served := slices.DeleteFunc(slices.Clone(state.Groups[0].Status.Namespaces), func(n string) bool { return n == "" })
	switch {
	case len(served) == 1 && served[0] == s.Installed.Namespace:
		s.Installed.Mode = lifecycle.OwnNamespace
	case len(served) == 1:
		s.Installed.Mode, s.Installed.Targets = lifecycle.SingleNamespace, served
	case len(served) > 1:
		s.Installed.Mode, s.Installed.Targets = lifecycle.MultiNamespace, served
	}
}

func (s *Snapshot) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// route notes in s the way that OLM takes from csv, with its bundles.
func (s *Snapshot) route(ctx context.Context, loaded *catalog.Catalog, csv *v1alpha1.ClusterServiceVersion, told diagnosis.Diagnosis, options Options) error {
	p := loaded.Find(s.Installed.Package)
	if p == nil {
		return hint.With(fmt.Errorf("the catalog has no package %s", s.Installed.Package), "name one that has it with --catalog")
	}
	s.Installed.Channel = cmp.Or(s.Installed.Channel, p.DefaultChannel)
	c := p.Channel(s.Installed.Channel)
	if c == nil {
		return hint.With(fmt.Errorf("package %s has no channel %s", p.Name, s.Installed.Channel), "choose one that it has with --channel, or name a catalog that has it with --catalog")
	}
	if c.Entry(csv.Name) == nil || p.Bundle(csv.Name) == nil {
		return hint.With(fmt.Errorf("channel %s of package %s does not have %s, which is installed", c.Name, p.Name, csv.Name),
			"name a catalog that has it as well with --catalog: the rehearsal installs it to upgrade from")
	}
	g := graph.New(p, c)
	if err := g.Err(); err != nil {
		return err
	}
	s.Way = g.Way(csv.Name, csv.Spec.Version.Version)
	if told.Next != "" && (len(s.Way) == 0 || s.Way[0] != told.Next) && p.Bundle(told.Next) != nil {
		s.Way = append([]string{told.Next}, g.Way(told.Next, p.Bundle(told.Next).Version)...)
	}
	if told.Unknown != "" {
		s.note("OLM's resolver was not asked what comes next: %s", told.Unknown)
	}
	if err := s.endAt(p, options.To); err != nil {
		return err
	}
	names := append([]string{csv.Name}, s.Way...)
	var bundles []*catalog.Bundle
	for _, name := range names {
		if b := p.Bundle(name); b != nil {
			bundles = append(bundles, b)
		}
	}
	if err := options.Pull(ctx, bundles); err != nil {
		return err
	}
	fbc, err := catalog.Excerpt(p, c.Name, names...)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(fbc) {
		s.Catalog = append(s.Catalog, json.RawMessage(bytes.TrimSpace(line)))
	}
	return nil
}

// endAt cuts the way of s after the bundle or version to.
func (s *Snapshot) endAt(p *catalog.Package, to string) error {
	if to == "" {
		return nil
	}
	i := slices.IndexFunc(s.Way, func(name string) bool {
		b := p.Bundle(name)
		return name == to || b != nil && b.Version.String() == strings.TrimPrefix(to, "v")
	})
	if i < 0 {
		return hint.With(fmt.Errorf("--to %s: OLM does not come there from %s in channel %s", to, s.Installed.Bundle, s.Installed.Channel),
			"choose one of those that it installs: %s", cmp.Or(strings.Join(s.Way, ", "), "none"))
	}
	s.Way = s.Way[:i+1]
	return nil
}
