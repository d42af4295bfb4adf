package graph_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/graph"
)

// v1Case is what tools/olmv1/resolver resolves with operator-controller's own code, a line of JSON each.
type v1Case struct {
	Catalog       []json.RawMessage `json:"catalog"`
	Channel       string            `json:"channel,omitempty"`
	Installed     string            `json:"installed,omitempty"`
	Version       string            `json:"version,omitempty"`
	SelfCertified bool              `json:"selfCertified,omitempty"`
}

// TestV1Resolver holds what we say that OLM v1 takes against operator-controller's own resolution over generated packages.
// OLMKIT_RESOLVER_CASES sets of how many.
func TestV1Resolver(t *testing.T) {
	if os.Getenv("OLMKIT_RESOLVER_CASES") == "" {
		t.Skip("it builds operator-controller's resolution; 'make resolver' runs it")
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", ".")
	cmd.Dir = "../../tools/olmv1resolver"
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	upgrades, seeds := 0, resolverCases(t)
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		p := generateV1(r)
		for _, c := range v1Cases(p, r) {
			line, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := in.Write(append(line, '\n')); err != nil || !answers.Scan() {
				t.Fatalf("ask operator-controller: %v\n%s", err, stderr.String())
			}
			var version semver.Version
			if c.Version != "" {
				version = semver.MustParse(c.Version)
			}
			got, want := graph.NewV1(p, c.Channel).Next(c.Installed, version, c.SelfCertified), answers.Text()
			if got != want {
				t.Fatalf("seed %d, channel %q, installed %q, self-certified %t: OLM v1 takes %q, we say %q%s%s", seed, c.Channel, c.Installed, c.SelfCertified, want, got, dump(p.Channels[0]), dump(p.Channels[1]))
			}
			if got != "" && got != c.Installed {
				upgrades++
			}
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if upgrades < seeds {
		t.Errorf("only %d installations and upgrades in %d packages, which tests little", upgrades, seeds)
	}
}

// v1Cases asks from each bundle, and from nothing, for one channel and for all, with either policy.
func v1Cases(p *catalog.Package, r *rand.Rand) []v1Case {
	var fbc []json.RawMessage
	add := func(v any) {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		fbc = append(fbc, data)
	}
	add(map[string]any{"schema": "olm.package", "name": p.Name})
	var deprecated []any
	for _, d := range p.Deprecations {
		deprecated = append(deprecated, map[string]any{"reference": map[string]any{"schema": d.Schema, "name": d.Name}, "message": "m"})
	}
	if deprecated != nil {
		add(map[string]any{"schema": "olm.deprecations", "package": p.Name, "entries": deprecated})
	}
	for _, c := range p.Channels {
		var entries []any
		for _, e := range c.Entries {
			entries = append(entries, map[string]any{"name": e.Name, "replaces": e.Replaces, "skips": e.Skips, "skipRange": e.SkipRange})
		}
		add(map[string]any{"schema": "olm.channel", "package": p.Name, "name": c.Name, "entries": entries})
	}
	for _, b := range p.Bundles {
		add(map[string]any{"schema": "olm.bundle", "package": p.Name, "name": b.Name, "image": "i", "properties": []any{
			map[string]any{"type": "olm.package", "value": map[string]any{"packageName": p.Name, "version": b.Version.String()}},
		}})
	}
	cases := []v1Case{{Catalog: fbc}, {Catalog: fbc, Channel: "c"}}
	for _, b := range p.Bundles {
		cases = append(cases, v1Case{
			Catalog: fbc, Channel: []string{"", "c", "d"}[r.IntN(3)], Installed: b.Name, Version: b.Version.String(), SelfCertified: r.IntN(4) == 0,
		})
	}
	return cases
}

// generateV1 makes a package with two channels that share bundles, some deprecated, some of a version's second release.
func generateV1(r *rand.Rand) *catalog.Package {
	p := generate(r)
	for i, b := range p.Bundles {
		b.Properties = nil
		if r.IntN(4) == 0 {
			b.Version.Build = []string{fmt.Sprint(r.IntN(3))}
		}
		if i > 0 && r.IntN(6) == 0 { // the release before, built again
			b.Version = p.Bundles[i-1].Version
			b.Version.Build = []string{fmt.Sprint(10 + i)}
		}
		if r.IntN(5) == 0 {
			p.Deprecations = append(p.Deprecations, catalog.Deprecation{Schema: catalog.SchemaBundle, Name: b.Name})
		}
	}
	d := &catalog.Channel{Name: "d"}
	for _, e := range generate(r).Channels[0].Entries {
		if p.Bundle(e.Name) != nil && r.IntN(3) > 0 {
			d.Entries = append(d.Entries, e)
		}
	}
	p.Channels = append(p.Channels, d)
	return p
}

// Of the 42 ordered pairs in channel candidate OLM v1 takes 8.
func TestV1Plan(t *testing.T) {
	c, err := catalog.Load(t.Context(), nil, "../../catalog")
	if err != nil {
		t.Fatal(err)
	}
	p := c.Find("memcached-operator")
	for mode, want := range map[graph.Mode]int{graph.Chain: 5, graph.All: 8} {
		plan, err := graph.NewPlan(p, graph.Options{Channel: "candidate", Mode: mode, OLMv1: true})
		if err != nil || len(plan.Hops) != want || plan.Head != "memcached-operator.v0.6.0-rc.1" {
			t.Errorf("%s: %d hops to %s, %v; want %d", mode, len(plan.Hops), plan.Head, err, want)
		}
		for _, e := range plan.Hops {
			if !e.Effective {
				t.Errorf("%s: %v", mode, e)
			}
		}
	}
	all, err := graph.NewPlan(p, graph.Options{Mode: graph.Next, OLMv1: true, From: "0.5.0"})
	if err != nil || !slices.ContainsFunc(all.Hops, func(e graph.Edge) bool { return e.To == "memcached-operator.v0.6.0-rc.1" }) {
		t.Errorf("without a channel, all of them count: %v, %v", all.Hops, err)
	}
	if _, err := graph.NewPlan(p, graph.Options{Channel: "nightly", Mode: graph.Next, OLMv1: true}); err == nil {
		t.Error("a channel that is not there")
	}
}
