package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// withMaximum returns teaRelease with another bound, and with what else changes.
func withMaximum(n int, changes ...string) string {
	return strings.NewReplacer(append(changes, "maximum: 10", fmt.Sprintf("maximum: %d", n))...).Replace(teaRelease)
}

// marks are the findings with the codes, each with whether it is about what is published.
func marks(findings []finding.Finding, codes ...string) []string {
	var list []string
	for _, f := range findings {
		if slices.Contains(codes, f.Code) {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s>%s %v", f.Code, strings.TrimPrefix(f.Subject.From, "tea."), strings.TrimPrefix(f.Subject.To, "tea."), f.Published)))
		}
	}
	slices.Sort(list)
	return list
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPublishedWithoutPrevious(t *testing.T) {
	t.Parallel()
	text := releasesText(t, withMaximum(10), withMaximum(9), withMaximum(8))
	findings, _ := Catalog(catalog.Parse("f", []byte(text)), Options{Only: []string{"CRD006"}})
	same(t, marks(findings, "CRD006"), []string{"CRD006 v1.0.0>v2.0.0 true", "CRD006 v2.0.0>v3.0.0 false"})

	// The head of a channel that is not the default one is a head, too.
	text += "---\n{schema: olm.channel, package: tea, name: old, entries: [{name: tea.v2.0.0, replaces: tea.v1.0.0}]}\n"
	findings, _ = Catalog(catalog.Parse("f", []byte(text)), Options{Only: []string{"CRD006"}})
	same(t, marks(findings, "CRD006"), []string{"CRD006 v1.0.0>v2.0.0 false", "CRD006 v2.0.0>v3.0.0 false"})

	// What a bundle is called nobody changes any more; the graph and the catalog everybody can.
	text = `{schema: olm.package, name: tea, defaultChannel: stable}
---
{schema: olm.channel, package: tea, name: stable, entries: [{name: tea.v9.0.0, replaces: tee.v0.9.0}, {name: tea.v8.0.0, replaces: tea.v9.0.0, skipRange: "<0.1.0 >0.2.0"}]}
---
{schema: olm.bundle, package: tea, name: tea.v9.0.0, image: i, properties: [{type: olm.package, value: {packageName: tea, version: 1.0.0}}]}
---
{schema: olm.bundle, package: tea, name: tea.v8.0.0, image: i, properties: [{type: olm.package, value: {packageName: tea, version: 2.0.0}}]}
---
{schema: olm.bundle, package: tea, name: tea.v7.0.0, image: i, properties: [{type: olm.package, value: {packageName: tea, version: 3.0.0}}]}
`
	findings, _ = Catalog(catalog.Parse("f", []byte(text)), Options{})
	same(t, marks(findings, "GRA013", "GRA007", "CAT021", "CAT009"), []string{
		"CAT009 v7.0.0> false", "CAT021 v8.0.0> false", "GRA007 tee.v0.9.0>v9.0.0 false",
		"GRA013 v7.0.0> false", "GRA013 v8.0.0> false", "GRA013 v9.0.0> true",
	})
}

// Where OLM cannot order a channel, no entry that may be its head is taken for an older one.
func TestPublishedWithoutOrder(t *testing.T) {
	t.Parallel()
	text := releasesText(t, withMaximum(10), withMaximum(9), withMaximum(8))
	text += "---\n{schema: olm.channel, package: tea, name: beta, entries: [{name: tea.v1.0.0}, {name: tea.v2.0.0, replaces: tea.v1.0.0}, {name: tea.v3.0.0, replaces: tea.v1.0.0}]}\n"
	findings, _ := Catalog(catalog.Parse("f", []byte(text)), Options{Only: []string{"CRD006"}})
	same(t, marks(findings, "CRD006"), []string{"CRD006 v1.0.0>v2.0.0 false", "CRD006 v2.0.0>v3.0.0 false"})
}

func TestPublishedAgainst(t *testing.T) {
	t.Parallel()
	crd := []string{"CRD006"}
	three := releasesText(t, withMaximum(10), withMaximum(9), withMaximum(8))
	for _, test := range []struct {
		what, previous, now string
		want                []string
	}{
		{"all of it is published", three, three, []string{"CRD006 v1.0.0>v2.0.0 true", "CRD006 v2.0.0>v3.0.0 true"}},
		{"a release is new", releasesText(t, withMaximum(10), withMaximum(9)), three, []string{"CRD006 v1.0.0>v2.0.0 true", "CRD006 v2.0.0>v3.0.0 false"}},
		{"a release is another", releasesText(t, withMaximum(10), withMaximum(7), withMaximum(8)), three, []string{"CRD006 v1.0.0>v2.0.0 false", "CRD006 v2.0.0>v3.0.0 false"}},
		{"the package is new", "{schema: olm.package, name: other}\n", three, []string{"CRD006 v1.0.0>v2.0.0 false", "CRD006 v2.0.0>v3.0.0 false"}},
		{
			"an upgrade between published releases is new", three,
			strings.Replace(three, "name: tea.v3.0.0, replaces: tea.v2.0.0", "name: tea.v3.0.0, replaces: tea.v1.0.0, skips: [tea.v2.0.0]", 1),
			[]string{"CRD006 v1.0.0>v2.0.0 true", "CRD006 v1.0.0>v3.0.0 false", "CRD006 v2.0.0>v3.0.0 true"},
		},
	} {
		findings, _ := Catalog(catalog.Parse("f", []byte(test.now)), Options{Only: crd, Previous: catalog.Parse("g", []byte(test.previous))})
		got := marks(findings, crd...)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.what, diff)
		}
	}
}

// A finding on a published upgrade is new all the same when it comes of something that is new.
func TestPublishedDepends(t *testing.T) {
	t.Parallel()
	requires := func(of string) string {
		return `{schema: olm.package, name: tea, defaultChannel: stable}
---
{schema: olm.channel, package: tea, name: stable, entries: [{name: tea.v1.0.0}, {name: tea.v2.0.0, replaces: tea.v1.0.0}]}
---
{schema: olm.bundle, package: tea, name: tea.v1.0.0, image: i, properties: [{type: olm.package, value: {packageName: tea, version: 1.0.0}}, {type: olm.package.required, value: {packageName: cup, versionRange: ">=1.0.0 <2.0.0"}}]}
---
{schema: olm.bundle, package: tea, name: tea.v2.0.0, image: i, properties: [{type: olm.package, value: {packageName: tea, version: 2.0.0}}, {type: olm.package.required, value: {packageName: cup, versionRange: ">=3.0.0"}}]}
---
{schema: olm.package, name: cup, defaultChannel: stable}
---
{schema: olm.channel, package: cup, name: stable, entries: [{name: cup.v1.0.0}]}
---
{schema: olm.bundle, package: cup, name: cup.v1.0.0, image: i, properties: [{type: olm.package, value: {packageName: cup, version: ` + of + `}}]}
`
	}
	for version, want := range map[string][]string{
		"1.0.0": {"DEP001 v1.0.0> false", "DEP001 v2.0.0> true"}, // cup 1.0.0 is gone
		"4.0.0": {"DEP001 v1.0.0> true", "DEP001 v2.0.0> false"},
		"2.5.0": {"DEP001 v1.0.0> true", "DEP001 v2.0.0> true"},
	} {
		findings, _ := Catalog(catalog.Parse("f", []byte(requires("2.5.0"))), Options{Only: []string{"DEP001"}, Previous: catalog.Parse("g", []byte(requires(version)))})
		t.Log(version)
		same(t, marks(findings, "DEP001"), want)
	}
}

// The upgrades to a release on which a check finds the same are one finding as far as all are published, or none.
func TestPublishedAlike(t *testing.T) {
	t.Parallel()
	before := releasesText(t, withMaximum(10), withMaximum(10), withMaximum(10), withMaximum(8))
	after := strings.Replace(before, "name: tea.v4.0.0, replaces: tea.v3.0.0", "name: tea.v4.0.0, replaces: tea.v3.0.0, skips: [tea.v2.0.0, tea.v1.0.0]", 1)
	findings, _ := Catalog(catalog.Parse("f", []byte(after)), Options{Only: []string{"CRD006"}, Previous: catalog.Parse("g", []byte(before))})
	same(t, marks(findings, "CRD006"), []string{"CRD006 v2.0.0>v4.0.0 false", "CRD006 v3.0.0>v4.0.0 true"})
	for _, f := range findings {
		if f.Subject.From == "tea.v2.0.0" && !strings.HasSuffix(f.Message, "; also from tea.v1.0.0") {
			t.Errorf("message: %s", f.Message)
		}
	}
}

// What stands in a head is new unless the head is published. What registries lack is never history.
func TestPublishedHead(t *testing.T) {
	t.Parallel()
	one := releasesText(t, strings.Replace(teaRelease, "image: i}", "image: example.com/tea:1}", 1))
	only := []string{"RBAC", "CSV", "IMG005"}
	for what, previous := range map[string]*catalog.Catalog{"no previous": nil, "published": catalog.Parse("g", []byte(one))} {
		findings, _ := Catalog(catalog.Parse("f", []byte(one)), Options{Only: only, Previous: previous, Registry: Registry{"example.com/tea:1": nil}})
		for _, code := range []string{"IMG005", "CSV030"} {
			if len(marks(findings, code)) == 0 {
				t.Fatalf("nothing is found of %s: %v", code, findings)
			}
		}
		for _, f := range findings {
			if want := previous != nil && f.Code != "IMG005"; f.Published != want {
				t.Errorf("%s: %s is published: %v", what, f.Code, f.Published)
			}
		}
	}
}
