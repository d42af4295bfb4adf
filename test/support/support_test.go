// Package support_test holds docs/support.md to what is released: its tables are made of the bundles and the catalog.
package support_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/graph"
)

var update = flag.Bool("update", false, "write the tables anew")

const (
	page      = "../../docs/support.md"
	changelog = "../../CHANGELOG.md"
	bundles   = "../../bundle/memcached-operator"
	catalogs  = "../../catalog"
	name      = "memcached-operator"
)

// release is what a bundle says.
type release struct {
	version  string
	minKube  string
	channels []string
	api      map[string]apiextensions.CustomResourceDefinitionVersion
}

// load reads the package from the catalog, and its releases' bundles, from the oldest to the newest.
func load(t *testing.T) (*catalog.Package, []release) {
	t.Helper()
	c, err := catalog.Load(t.Context(), nil, catalogs)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Find(name)
	var releases []release
	for _, b := range p.Bundles { // by version
		r := release{version: b.Version.String(), api: map[string]apiextensions.CustomResourceDefinitionVersion{}}
		for _, channel := range p.Channels {
			if channel.Entry(b.Name) != nil {
				r.channels = append(r.channels, channel.Name)
			}
		}
		made, err := bundle.Read(filepath.Join(bundles, r.version))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made.Manifests {
			switch m.Kind {
			case "ClusterServiceVersion":
				var csv operators.ClusterServiceVersion
				if err := json.Unmarshal(m.JSON, &csv); err != nil {
					t.Fatal(err)
				}
				r.minKube = csv.Spec.MinKubeVersion
			case "CustomResourceDefinition":
				var crd apiextensions.CustomResourceDefinition
				if err := json.Unmarshal(m.JSON, &crd); err != nil {
					t.Fatal(err)
				}
				for _, v := range crd.Spec.Versions {
					r.api[v.Name] = v
				}
			}
		}
		releases = append(releases, r)
	}
	return p, releases
}

var apiVersions = []string{"v1alpha1", "v1beta1", "v1"}

func table(header []string, rows [][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat("---|", len(header)))
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}

// byRelease is what each release serves, stores and asks of the cluster.
func byRelease(releases []release) string {
	var rows [][]string
	for _, r := range releases {
		row := []string{r.version, strings.Join(r.channels, ", "), r.minKube}
		for _, version := range apiVersions {
			v, ok := r.api[version]
			var says []string
			switch {
			case !ok:
				says = append(says, "–")
			case !v.Served:
				says = append(says, "not served")
			case v.Deprecated:
				says = append(says, "deprecated")
			default:
				says = append(says, "served")
			}
			if v.Storage {
				says = append(says, "**stored**")
			}
			row = append(row, strings.Join(says, ", "))
		}
		rows = append(rows, row)
	}
	return table(slices.Concat([]string{"release", "channels", "Kubernetes from"}, apiVersions), rows)
}

// byStored is who writes and who understands what is stored in each version.
func byStored(releases []release) string {
	var rows [][]string
	for _, version := range apiVersions {
		var writes, reads []string
		for _, r := range releases {
			v, ok := r.api[version]
			if ok {
				reads = append(reads, r.version)
			}
			if v.Storage {
				writes = append(writes, r.version)
			}
		}
		if len(writes) > 0 {
			rows = append(rows, []string{version, strings.Join(writes, ", "), strings.Join(reads, ", ")})
		}
	}
	return table([]string{"stored as", "written by", "CRD of"}, rows)
}

// paths is every upgrade that OLM takes, and every other one that the catalog declares.
func paths(p *catalog.Package, releases []release) string {
	version := func(bundle string) string { return p.Bundle(bundle).Version.String() }
	rank := map[string]int{}
	for i, r := range releases {
		rank[r.version] = i
	}
	type path struct{ from, to string }
	taken, kinds := map[path][]string{}, map[path]string{}
	for _, channel := range p.Channels {
		for e := range graph.New(p, channel).All() {
			at := path{version(e.From), version(e.To)}
			kinds[at] = string(e.Kind)
			if e.Next {
				taken[at] = append(taken[at], channel.Name)
			}
		}
	}
	all := make([]path, 0, len(kinds))
	for at := range kinds {
		all = append(all, at)
	}
	slices.SortFunc(all, func(a, b path) int { return (rank[a.from]-rank[b.from])*100 + rank[a.to] - rank[b.to] })
	var rows [][]string
	for _, at := range all {
		in := "only on an older catalog, whose head it was"
		if len(taken[at]) > 0 {
			in = strings.Join(taken[at], ", ")
		}
		rows = append(rows, []string{at.from, at.to, kinds[at], in})
	}
	return table([]string{"from", "to", "by", "OLM takes it in"}, rows)
}

var section = regexp.MustCompile(`(?s)(<!-- made: (\S+) -->\n)(.*?)(<!-- end -->)`)

func TestDocs(t *testing.T) {
	p, releases := load(t)
	tables := map[string]string{
		"releases": byRelease(releases), "paths": paths(p, releases), "stored": byStored(releases),
		"tested": fmt.Sprintf("- Kubernetes %s\n- OLM %s\n", embedded.KubernetesVersion, embedded.OLMVersion),
	}
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := section.ReplaceAllStringFunc(string(raw), func(old string) string {
		parts := section.FindStringSubmatch(old)
		made, ok := tables[parts[2]]
		if !ok {
			t.Errorf("%s: there is no table %s", page, parts[2])
		}
		delete(tables, parts[2])
		return parts[1] + "\n" + made + "\n" + parts[4]
	})
	for missing := range tables {
		t.Errorf("%s has no place for the table %s", page, missing)
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(raw) != want {
		t.Errorf("%s is not up to date: run 'make catalog'", page)
	}
}

// What an administrator does is said for every release that OLM upgrades to, and for nothing else.
func TestEveryUpgradeIsExplained(t *testing.T) {
	p, _ := load(t)
	want := map[string]bool{}
	for _, channel := range p.Channels {
		for e := range graph.New(p, channel).All() {
			if e.Next {
				want[p.Bundle(e.To).Version.String()] = true
			}
		}
	}
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^### To (\S+)$`).FindAllStringSubmatch(string(raw), -1) {
		if !want[found[1]] {
			t.Errorf("%s explains the upgrade to %s, which there is not", page, found[1])
		}
		delete(want, found[1])
	}
	for version := range want {
		t.Errorf("%s does not explain the upgrade to %s", page, version)
	}
}

// The changelog has every release with its date, from the newest to the oldest.
func TestChangelog(t *testing.T) {
	_, releases := load(t)
	raw, err := os.ReadFile(changelog)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, found := range regexp.MustCompile(`(?m)^## \[(\S+)\] - \d{4}-\d{2}-\d{2}$`).FindAllStringSubmatch(string(raw), -1) {
		got = append(got, found[1])
	}
	var want []string
	for _, r := range slices.Backward(releases) {
		want = append(want, r.version)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s has %v, and released are %v", changelog, got, want)
	}
}

// What the catalog deprecates, docs/policy.md says, with the same date.
func TestDeprecations(t *testing.T) {
	p, releases := load(t)
	raw, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	deprecated := 0
	for _, r := range releases {
		message := p.Deprecation("olm.bundle", name+".v"+r.version)
		if message == "" {
			continue
		}
		deprecated++
		if !regexp.MustCompile(`(?m)^\| releases? .*` + regexp.QuoteMeta(r.version)).Match(raw) {
			t.Errorf("docs/policy.md does not list %s as deprecated", r.version)
		}
		if date := regexp.MustCompile(`\d{4}-\d{2}-\d{2}`).FindString(message); date == "" && !strings.Contains(message, "withdrawn") || !strings.Contains(string(raw), date) {
			t.Errorf("%s is deprecated without a date that docs/policy.md has: %s", r.version, message)
		}
	}
	if deprecated != 3 {
		t.Errorf("%d releases are deprecated", deprecated)
	}
}
