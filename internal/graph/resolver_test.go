package graph_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver/cache"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/sirupsen/logrus"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/graph"
)

// resolved asks OLM's own resolver what it installs for a subscription to channel c of p where installed is installed.
// It returns "" for nothing new.
func resolved(t *testing.T, p *catalog.Package, c *catalog.Channel, installed string) (string, error) {
	t.Helper()
	const namespace = "ns"
	source := cache.SourceKey{Name: "catalog", Namespace: namespace}
	virtual := cache.NewVirtualSourceKey(namespace)
	var available, present []*cache.Entry
	sub := &v1alpha1.Subscription{Spec: &v1alpha1.SubscriptionSpec{
		CatalogSource: source.Name, CatalogSourceNamespace: namespace, Package: p.Name, Channel: c.Name,
	}}
	sub.Name, sub.Namespace = "sub", namespace
	sub.Status.InstalledCSV = installed
	for _, e := range c.Entries {
		version := p.Bundle(e.Name).Version
		value, err := json.Marshal(map[string]string{"packageName": p.Name, "version": version.String()})
		if err != nil {
			t.Fatal(err)
		}
		properties := []*api.Property{{Type: "olm.package", Value: string(value)}}
		entry := &cache.Entry{
			Name: e.Name, Replaces: e.Replaces, Skips: e.Skips, Version: &version, Properties: properties,
			SourceInfo: &cache.OperatorSourceInfo{Package: p.Name, Channel: c.Name, Catalog: source, DefaultChannel: true},
		}
		for _, property := range p.Bundle(e.Name).Properties {
			if property.Type == "olm.deprecated" {
				entry.Properties = append(entry.Properties, &api.Property{Type: property.Type, Value: string(property.Value)})
			}
		}
		if r, err := semver.ParseRange(e.SkipRange); err == nil {
			entry.SkipRange = r
		}
		available = append(available, entry)
		if e.Name == installed {
			present = append(present, &cache.Entry{
				Name: e.Name, Version: &version, Properties: properties,
				SourceInfo: &cache.OperatorSourceInfo{Catalog: virtual, Subscription: sub},
			})
		}
	}
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	entries, err := resolver.NewDefaultResolver(cache.New(cache.StaticSourceProvider{
		source:  &cache.Snapshot{Entries: available},
		virtual: &cache.Snapshot{Entries: present},
	}), logger).Resolve([]string{namespace}, []*v1alpha1.Subscription{sub})
	if err != nil {
		return "", err
	}
	switch len(entries) {
	case 0:
		return "", nil
	case 1:
		return entries[0].Name, nil
	}
	return "", fmt.Errorf("%d operators for one package", len(entries))
}

// compare holds what a Channel says against OLM's resolver, for every entry of every channel of p.
func compare(t *testing.T, p *catalog.Package) (hops int) {
	t.Helper()
	for _, c := range p.Channels {
		next := map[string]string{}
		g := graph.New(p, c)
		for e := range g.All() {
			if e.Next {
				next[e.From] = e.To
			}
		}
		orderErr := g.Err()
		for _, e := range c.Entries {
			got, err := resolved(t, p, c, e.Name)
			switch {
			case (err != nil) != (orderErr != nil):
				t.Errorf("channel %s, from %s: OLM says %v, we say %v%s", c.Name, e.Name, err, orderErr, dump(c))
			case got == e.Name && next[e.Name] == "": // OLM chose again what is installed
			case got != next[e.Name]:
				t.Errorf("channel %s, from %s: OLM takes %q, we say %q%s", c.Name, e.Name, got, next[e.Name], dump(c))
			default:
				hops++
			}
		}
	}
	return hops
}

func dump(c *catalog.Channel) string {
	var b strings.Builder
	for _, e := range c.Entries {
		fmt.Fprintf(&b, "\n  %s replaces %q skips %v skipRange %q", e.Name, e.Replaces, e.Skips, e.SkipRange)
	}
	return b.String()
}

// resolverCases is how many packages are generated.
func resolverCases(t *testing.T) int {
	t.Helper()
	s := os.Getenv("OLMKIT_RESOLVER_CASES")
	if s == "" {
		return 3000
	}
	cases, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// TestResolver holds our successor rule against OLM's resolver over generated channels. OLMKIT_RESOLVER_CASES sets how
// many.
func TestResolver(t *testing.T) {
	cases := resolverCases(t)
	orderable, hops := 0, 0
	for seed := range cases {
		p := generate(rand.New(rand.NewPCG(uint64(seed), 7)))
		if graph.New(p, p.Channels[0]).Err() == nil {
			orderable++
		}
		hops += compare(t, p)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if orderable < cases/4 {
		t.Errorf("only %d of %d generated channels can be ordered, which tests little", orderable, cases)
	}
	t.Logf("%d channels, %d of them orderable, %d entries compared", cases, orderable, hops)
}

// generate makes a package with one channel, mostly sane: a chain with skips, skip ranges, dangling names, deprecated
// bundles, and now and then what no author should write.
func generate(r *rand.Rand) *catalog.Package {
	n := 1 + r.IntN(8)
	p := &catalog.Package{Name: "p", DefaultChannel: "c"}
	c := &catalog.Channel{Name: "c"}
	p.Channels = []*catalog.Channel{c}
	wild := r.IntN(3) == 0
	name := func(i int) string { return fmt.Sprintf("p.v%d", i) }
	for i := range n {
		v := semver.Version{Major: uint64(i), Minor: uint64(r.IntN(3))}
		if r.IntN(6) == 0 {
			v.Pre = []semver.PRVersion{{VersionStr: "rc"}}
		}
		b := &catalog.Bundle{Name: name(i), Package: "p", Version: v}
		if r.IntN(12) == 0 {
			b.Properties = []catalog.Property{{Type: "olm.deprecated", Value: json.RawMessage("{}")}}
		}
		p.Bundles = append(p.Bundles, b)
		e := catalog.Entry{Name: name(i)}
		switch {
		case wild && r.IntN(3) == 0:
			e.Replaces = name(r.IntN(n + 1))
		case i > 0 && r.IntN(8) > 0:
			e.Replaces = name(i - 1 - r.IntN(min(i, 2)))
		case r.IntN(4) == 0:
			e.Replaces = "p.gone"
		}
		if e.Replaces == name(i-2) {
			e.Skips = append(e.Skips, name(i-1))
		}
		for r.IntN(5) == 0 {
			if wild {
				e.Skips = append(e.Skips, name(r.IntN(n+1)))
			} else if i > 0 {
				e.Skips = append(e.Skips, name(r.IntN(i)))
			}
		}
		switch r.IntN(8) {
		case 0:
			e.SkipRange = fmt.Sprintf("<%d.0.0", r.IntN(n+1))
		case 1:
			e.SkipRange = fmt.Sprintf(">=%d.0.0 <%s", r.IntN(n), v)
		case 2:
			e.SkipRange = []string{"no range", ">=0.0.0", ">=1.0.0-0 <3.1.0 || 4.0.0"}[r.IntN(3)]
		}
		c.Entries = append(c.Entries, e)
	}
	r.Shuffle(len(c.Entries), func(i, j int) { c.Entries[i], c.Entries[j] = c.Entries[j], c.Entries[i] })
	return p
}
