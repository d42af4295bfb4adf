// Package leftover finds what walks left on a cluster that stays, or what 'bundle run' installed there, and removes it. What a walk makes carries its label; what OLM
// made for that is found by the namespace that it was made for. Nothing else is touched.
package leftover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

// Object is something that a walk left.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Walk      string `json:"walk"` // its id

	key      key
	metadata metav1.PartialObjectMetadata
	labelled bool // made by the walk; the others OLM made for it
	ofOLM    bool // part of an OLM that the walk installed
}

// key tells objects apart.
type key struct {
	schema.GroupKind
	client.ObjectKey
}

// String names the object as findings do.
func (o Object) String() string {
	return o.Kind + "/" + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// Cleaner finds and removes what walks left on one cluster.
type Cleaner struct {
	olm *olmv0.Client
	// kinds lists what the API server serves; with an error also what it could find out.
	kinds func() ([]schema.GroupVersionKind, error)
	// label is what tells whose an object is: cluster.WalkLabel, or cluster.RunLabel.
	label string
	// remake is how long an OLM that stays has to make definitions once more of what it was at work on.
	remake time.Duration
}

// OfRuns returns a Cleaner of what 'bundle run' installed: what it says of walks and their ids holds for runs and their
// packages. Custom resources are the user's there, and stay.
func (c *Cleaner) OfRuns() *Cleaner {
	runs := *c
	runs.label = cluster.RunLabel
	return &runs
}

// ofRuns tells whether c is for what 'bundle run' installed.
func (c *Cleaner) ofRuns() bool { return c.label == cluster.RunLabel }

// New returns a Cleaner for the cluster that config reaches.
func New(config *rest.Config) (*Cleaner, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := olmv0.Connect(config)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return &Cleaner{olm: c, label: cluster.WalkLabel, remake: remakeLimit, kinds: func() ([]schema.GroupVersionKind, error) { return servedKinds(d) }}, nil
}

// servedKinds lists the kinds whose objects can be listed and deleted, each in the version that the API server prefers.
func servedKinds(d discovery.DiscoveryInterface) ([]schema.GroupVersionKind, error) {
	lists, err := d.ServerPreferredResources()
	var kinds []schema.GroupVersionKind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("read what the API server serves: %w", err)
		}
		for _, r := range list.APIResources {
			// Endpoints have the labels of their Service, and go with it.
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && r.Name != "endpoints" {
				kinds = append(kinds, version.WithKind(r.Kind))
			}
		}
	}
	return kinds, err
}

// Found is what Find found.
type Found struct {
	Objects []Object
	// Unread says of which kinds it is not known whether there are any.
	Unread []string
	homes  map[string]*home
}

// Names are those of the objects.
func (f Found) Names() []string {
	var names []string
	for _, o := range f.Objects {
		names = append(names, o.String())
	}
	return names
}

// Walks are the ids of the walks that left something, sorted.
func (f Found) Walks() []string {
	var walks []string
	for _, o := range f.Objects {
		walks = append(walks, o.Walk)
	}
	slices.Sort(walks)
	return slices.Compact(walks)
}

// concurrentLists is how many kinds are listed at a time.
const concurrentLists = 8

// Find finds what walk left, any walk if that is "". An error means that this is not known at all.
func (c *Cleaner) Find(ctx context.Context, walk string) (Found, error) {
	return c.find(ctx, walk, map[string]*home{})
}

// find finds what walk left, also in homes that are gone by now, and adds to homes those that it finds.
func (c *Cleaner) find(ctx context.Context, walk string, homes map[string]*home) (Found, error) {
	f := Found{homes: homes}
	kinds, err := document.Until(ctx, c.kinds)
	if ctx.Err() != nil {
		return f, ctx.Err()
	}
	if len(kinds) == 0 && err != nil {
		return f, fmt.Errorf("ask the API server what it serves: %w", err)
	}
	if err != nil {
		f.Unread = append(f.Unread, err.Error())
	}
	listed := make([][]metav1.PartialObjectMetadata, len(kinds))
	failures := make([]error, len(kinds))
	var group errgroup.Group
	group.SetLimit(concurrentLists)
	for i, kind := range kinds {
		group.Go(func() error {
			listed[i], failures[i] = c.list(ctx, kind, c.labelOf(walk))
			return nil
		})
	}
	_ = group.Wait()
	if ctx.Err() != nil {
		return f, ctx.Err()
	}
	for i := range kinds {
		if failures[i] != nil {
			f.Unread = append(f.Unread, failures[i].Error())
		}
		for _, m := range listed[i] {
			// What has an owner goes with it, and has the label from there.
			if len(m.OwnerReferences) == 0 {
				f.add(newObject(m, m.Labels[c.label], true))
			}
		}
	}
	parts, err := c.installed(ctx, walk)
	if err != nil {
		return f, err
	}
	for i, o := range f.Objects {
		f.Objects[i].ofOLM = slices.ContainsFunc(parts, func(p client.Object) bool { return keyOf(p) == o.key })
	}
	f.findHomes()
	if err := c.findMade(ctx, &f); err != nil {
		return f, err
	}
	if err := c.findOwned(ctx, &f); err != nil {
		return f, err
	}
	slices.SortFunc(f.Objects, func(a, b Object) int { return strings.Compare(a.String(), b.String()) })
	return f, nil
}

// installed are the parts of an OLM that walk installed; a run installs none.
func (c *Cleaner) installed(ctx context.Context, walk string) (olmv0.Installation, error) {
	if c.ofRuns() {
		return nil, nil
	}
	return c.olm.Installed(ctx, walk)
}

// labelOf selects what carries the label of walk, of any walk if that is "".
func (c *Cleaner) labelOf(walk string) client.ListOption {
	if walk == "" {
		return client.HasLabels{c.label}
	}
	return client.MatchingLabels{c.label: walk}
}

// list lists the metadata of a kind's objects.
func (c *Cleaner) list(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.olm.List(ctx, &list, options...); err != nil && !absent(err) {
		return nil, hint.With(fmt.Errorf("list %s: %w", kind.GroupKind(), err), "use an account with the role cluster-admin")
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind)
	}
	return list.Items, nil
}

func newObject(m metav1.PartialObjectMetadata, walk string, labelled bool) Object {
	return Object{Kind: m.Kind, Namespace: m.Namespace, Name: m.Name, Walk: walk, key: keyOf(&m), metadata: m, labelled: labelled}
}

func keyOf(o client.Object) key {
	return key{o.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(o)}
}

// add adds o unless it is there.
func (f *Found) add(o Object) {
	if !slices.ContainsFunc(f.Objects, func(known Object) bool { return known.key == o.key }) {
		f.Objects = append(f.Objects, o)
	}
}
