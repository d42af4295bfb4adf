package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
)

// sane is a catalog in which no check finds anything but notes.
const sane = `schema: olm.package
name: tea
defaultChannel: stable
---
schema: olm.channel
package: tea
name: stable
entries:
- name: tea.v1.0.0
- name: tea.v1.1.0
  replaces: tea.v1.0.0
- name: tea.v1.2.0
  replaces: tea.v1.1.0
---
schema: olm.channel
package: tea
name: candidate
entries:
- name: tea.v1.2.0
---
schema: olm.bundle
package: tea
name: tea.v1.0.0
image: registry.example.com/tea:1.0.0
properties:
- {type: olm.package, value: {packageName: tea, version: 1.0.0}}
- {type: olm.csv.metadata, value: {}}
---
schema: olm.bundle
package: tea
name: tea.v1.1.0
image: registry.example.com/tea:1.1.0
properties:
- {type: olm.package, value: {packageName: tea, version: 1.1.0}}
- {type: olm.csv.metadata, value: {}}
---
schema: olm.bundle
package: tea
name: tea.v1.2.0
image: registry.example.com/tea:1.2.0
properties:
- {type: olm.package, value: {packageName: tea, version: 1.2.0}}
- {type: olm.csv.metadata, value: {}}
relatedImages:
- {name: a, image: registry.example.com/a}
---
schema: olm.deprecations
package: tea
entries:
- reference: {schema: olm.bundle, name: tea.v1.0.0}
  message: Use 1.2.0.
`

// example is the smallest change to a sane catalog that a check must find.
type example struct {
	code, old, new string
	place          string // "" for any
	message        string // a part of it
}

var catalogExamples = []example{
	{"CAT001", "name: candidate", "name: stable", "f:15:1", "channel stable is defined a second time; the first is at f:5:1"},
	{"CAT001", "name: tea.v1.1.0\nimage", "name: tea.v1.0.0\nimage", "f:29:1", "bundle tea.v1.0.0 is defined a second time"},
	{"CAT001", "schema: olm.deprecations", "schema: olm.deprecations\npackage: tea\n---\nschema: olm.deprecations", "", "deprecations of package tea is defined a second time"},
	{"CAT002", "package: tea\nname: candidate", "name: candidate", "f:15:1", "has no package"},
	{"CAT002", "package: tea\nname: candidate\n", "package: tea\n", "f:15:1", "has no name"},
	{"CAT003", "schema: olm.package\nname: tea\ndefaultChannel: stable\n---\n", "", "f:1:1", `no document defines package "tea"`},
	{"CAT004", "tea", "Tea", "f:2:1", `package name "Tea"`},
	{"CAT005", "schema: olm.channel", "schema: x.channel", "f:1:1", "package tea has no channel"},
	{"CAT006", "defaultChannel: stable\n", "", "f:1:1", "its channels are candidate, stable"},
	{"CAT006", "defaultChannel: stable", "defaultChannel: fast", "f:3:1", "the default channel fast of package tea is not one of its channels"},
	{"CAT007", "name: candidate\nentries:\n- name: tea.v1.2.0", "name: candidate\nentries: []", "f:15:1", "channel candidate has no entries"},
	{"CAT008", "name: candidate\nentries:\n- name: tea.v1.2.0", "name: candidate\nentries:\n- name: tea.v1.3.0", "f:19:3", "no bundle tea.v1.3.0"},
	{"CAT009", "- name: tea.v1.0.0\n- name: tea.v1.1.0\n  replaces: tea.v1.0.0\n", "- name: tea.v1.1.0\n", "", "bundle tea.v1.0.0 is in no channel"},
	{"CAT010", "- name: tea.v1.1.0\n", "- name: tea.v1.0.0\n- name: tea.v1.1.0\n", "f:10:3", "the first is at f:9:3"},
	{"CAT010", "- name: tea.v1.1.0\n", "- replaces: x\n- name: tea.v1.1.0\n", "f:10:3", "has no name"},
	{"CAT011", "image: registry.example.com/tea:1.0.0", "image: ''", "f:24:1", "bundle tea.v1.0.0 has no image"},
	{"CAT012", "{packageName: tea, version: 1.0.0}", "{packageName: coffee, version: 1.0.0}", "f:26:23", `has a property with package "coffee"`},
	{"CAT012", "version: 1.0.0}", "version: v1.0}", "f:26:23", `the version "v1.0"`},
	{"CAT012", "- {type: olm.package, value: {packageName: tea, version: 1.0.0}}\n", "", "f:25:1", "has 0 properties of type olm.package"},
	{"CAT012", "version: 1.0.0}", "version: 1.0.0, release: '1_'}", "", `the release "1_"`},
	{"CAT012", "version: 1.0.0}", "version: 1.0.0+b, release: '1'}", "", "build metadata"},
	{"CAT012", "version: 1.0.0}", "version: 1.0.0, release: '1'}", "", "its name must be tea-v1.0.0-1"},
	{"CAT013", "{type: olm.csv.metadata, value: {}}", "{type: olm.gvk, value: [1]}", "f:27:3", "property 1 (olm.gvk) of bundle tea.v1.0.0"},
	{"CAT013", "{type: olm.csv.metadata, value: {}}", "{type: x}", "f:27:3", "the value is missing"},
	{"CAT013", "{type: olm.csv.metadata, value: {}}", "{value: x}", "f:27:3", "the type is missing"},
	{"CAT013", "{type: olm.csv.metadata, value: {}}", "{type: olm.package.required, value: {packageName: p, versionRange: x}}", "f:27:3", `version range "x"`},
	{"CAT014", "registry.example.com/tea:1.0.0", "registry.example.com/Tea:1.0.0", "f:24:1", "the image"},
	{"CAT014", "registry.example.com/a}", "registry.example.com/a@sha256:12}", "f:45:13", "has invalid related images (1)"},
	{"CAT015", "version: 1.1.0}", "version: 1.0.0}", "f:29:1", "both have version 1.0.0"},
	{"CAT016", "name: tea.v1.0.0}\n", "name: tea.v9.0.0}\n", "f:50:3", `the package has no bundle "tea.v9.0.0"`},
	{"CAT016", "{schema: olm.bundle, name: tea.v1.0.0}", "{schema: olm.channel, name: x}", "f:50:3", `the package has no channel "x"`},
	{"CAT016", "{schema: olm.bundle, name: tea.v1.0.0}", "{schema: olm.package, name: tea}", "f:50:3", "must have no name"},
	{"CAT016", "{schema: olm.bundle, name: tea.v1.0.0}", "{schema: x}", "f:50:3", `documents of schema "x" cannot be deprecated`},
	{"CAT016", "{schema: olm.bundle, name: tea.v1.0.0}", "{name: x}", "f:50:3", "reference has no schema"},
	{"CAT016", "  message: Use 1.2.0.\n", "", "f:50:3", "the message is missing"},
	{"CAT016", "  message: Use 1.2.0.\n", "  message: a\n- reference: {schema: olm.bundle, name: tea.v1.0.0}\n  message: b\n", "f:52:3", "a second time"},
	{"CAT017", "  replaces: tea.v1.0.0", "  replace: tea.v1.0.0", "f:11:3", `"replaces" is known`},
	{"CAT017", "defaultChannel", "defaultChanel", "f:3:1", `"defaultChannel" is known`},
	{"CAT018", "name: candidate", "name: candidate\nowner: me", "f:18:1", `field "owner"`},
	{"CAT019", "schema: olm.deprecations", "schema: olm.deprecation", "f:47:1", `"olm.deprecation"`},
	{"CAT020", "  replaces: tea.v1.0.0", "  replaces: tea.v1.0.0\n  replaces: tea.v1.0.0", "f:12:3", `key "replaces"`},
	{"CAT021", "version: 1.2.0}}\n- {type: olm.csv.metadata, value: {}}\n", "version: 1.2.0}}\n", "f:37:1", "bundle tea.v1.2.0, the head of channel candidate, has only an image"},
	{"CAT022", "tea.v1.2.0", "tea.v1.2.0-a-very-long-name-that-somebody-thought-of-for-the-release", "", "characters"},

	{"GRA001", "  replaces: tea.v1.1.0\n", "", "f:8:1", "has 2 heads"},
	{"GRA001", "- name: tea.v1.0.0\n", "- name: tea.v1.0.0\n  replaces: tea.v1.2.0\n", "f:8:1", "has a cycle: tea.v1.0.0 (f:9:3) replaces tea.v1.2.0 (f:13:3) replaces tea.v1.1.0 (f:11:3) replaces tea.v1.0.0"},
	{"GRA001", "- name: tea.v1.0.0\n", "- name: tea.v1.0.0\n  skips: [tea.v1.2.0]\n", "f:8:1", "has no head"},
	{"GRA002", "  replaces: tea.v1.0.0\n- name: tea.v1.2.0\n  replaces: tea.v1.1.0\n", "  replaces: tea.v1.0.0\n- name: tea.v1.2.0\n  skips: [tea.v1.1.0]\n", "f:9:3", "tea.v1.0.0 is not on the replaces chain"},
	{"GRA003", "replaces: tea.v1.1.0\n", "skips: [tea.v1.1.0]\n", "f:9:3", "from tea.v1.0.0 no upgrade path leads to tea.v1.2.0"},
	{"GRA004", "  replaces: tea.v1.1.0\n", "  replaces: tea.v1.1.0\n  skipRange: <v1.2.0\n", "f:14:3", `"<v1.2.0"`},
	{"GRA005", "  replaces: tea.v1.1.0\n", "  replaces: tea.v1.1.0\n  skips: ['']\n", "f:14:11", "skips an empty name"},
	{"GRA005", "  replaces: tea.v1.1.0\n", "  replaces: tea.v1.1.0\n  skips: [tea.v1.2.0]\n", "f:14:11", "skips itself"},
	{"GRA005", "- name: tea.v1.0.0\n", "- name: tea.v1.0.0\n  replaces: tea.v1.0.0\n", "f:10:3", "replaces itself"},
	{"GRA006", "- name: tea.v1.0.0\n", "- name: tea.v1.0.0\n  replaces: tea.v0.9.0\n", "f:10:3", "replaces tea.v0.9.0, which the catalog does not contain"},
	{"GRA007", "- name: tea.v1.0.0\n", "- name: tea.v1.0.0\n  replaces: tee.v0.9.0\n", "f:10:3", "tee.v0.9.0"},
	{"GRA007", "  replaces: tea.v1.1.0\n", "  replaces: tea.v1.1.0\n  skips: [te.v1.1.1]\n", "f:14:11", "te.v1.1.1"},
	{"GRA008", "version: 1.1.0}", "version: 1.3.0}", "f:13:3", "which is lower"},
	{"GRA009", "  replaces: tea.v1.1.0\n", "  replaces: tea.v1.1.0\n  skipRange: <=1.2.0\n", "f:14:3", "covers its own version"},
	{"GRA010", "  replaces: tea.v1.1.0\n", "  replaces: tea.v1.1.0\n  skipRange: <1.2.0\n", "f:7:1", "tea.v1.0.0 → tea.v1.1.0"},
	{"GRA011", "  replaces: tea.v1.1.0\n", "  replaces: tea.v1.1.0\n  skipRange: <1.2.0\n", "f:7:1", "tea.v1.0.0 → tea.v1.2.0"},
	{"GRA012", "defaultChannel: stable", "defaultChannel: old\n---\nschema: olm.channel\npackage: tea\nname: old\nentries: [{name: tea.v1.0.0}]", "f:3:1", "the head of default channel old is 1.0.0, the head of channel stable is 1.2.0"},
	{"DEP001", "{type: olm.csv.metadata, value: {}}", "{type: olm.package.required, value: {packageName: tea, versionRange: '>9.0.0'}}", "f:27:3", "no bundle of it has such a version"},
	{"DEP002", "{type: olm.csv.metadata, value: {}}", "{type: olm.package.required, value: {packageName: milk, versionRange: '>9.0.0'}}", "f:27:3", "requires package milk >9.0.0"},
	{"DEP002", "{type: olm.csv.metadata, value: {}}", "{type: olm.gvk.required, value: {group: g, version: v1, kind: K}}", "f:27:3", "requires kind K of g/v1"},
	{"DEP003", "{type: olm.csv.metadata, value: {}}", "{type: olm.constraint, value: {failureMessage: m, cel: {rule: '1 +'}}}", "f:27:3", "the constraint of tea.v1.0.0 is invalid"},
	{"DEP003", "{type: olm.csv.metadata, value: {}}", "{type: olm.constraint, value: {failureMessage: m, all: {constraints: [{failureMessage: m, package: {packageName: p, versionRange: x}}]}}}", "f:27:3", "the constraint of tea.v1.0.0 is invalid"},
	{"DEP004", "{type: olm.csv.metadata, value: {}}", "{type: olm.gvk, value: {group: g, version: v1, kind: K}}\n---\n{schema: olm.bundle, package: milk, name: milk.v1, properties: [{type: olm.gvk, value: {group: g, version: v1, kind: K}}]}\n---\n{schema: x.y}\n---\nschema: x.z\nproperties:\n- {type: olm.csv.metadata, value: {}}", "", "milk, tea provide K (g/v1)"},
	{"GRA013", "version: 1.0.0}", "version: 1.0.1}", "f:23:1", "bundle tea.v1.0.0 has version 1.0.1"},
	{"GRA014", "  replaces: tea.v1.1.0\n", "  replaces: tea.v1.1.0\n  skipRange: '>=1.2.0 <1.0.0'\n", "f:14:3", `the skipRange ">=1.2.0 <1.0.0" of tea.v1.2.0 covers no version`},
	{"GRA015", "- name: tea.v1.1.0\n", "- name: tea.v1.1.0\n  skipRange: '>=1.0.0'\n", "f:11:3", `the skipRange ">=1.0.0" of tea.v1.1.0 covers newer releases, and OLM downgrades their users: tea.v1.2.0`},
	{"GRA016", "- name: tea.v1.0.0\n- name: tea.v1.1.0\n  replaces: tea.v1.0.0\n- name: tea.v1.2.0\n", "- name: tea.v1.0.0\n  skips: [tea.v1.1.0]\n- name: tea.v1.1.0\n  replaces: tea.v1.0.0\n- name: tea.v1.2.0\n  skips: [tea.v1.0.0]\n", "f:9:3", "tea.v1.0.0, tea.v1.1.0 replace or skip each other in a cycle"},
	{"GRA018", "name: candidate\nentries:\n- name: tea.v1.2.0", "name: candidate\nentries:\n- {name: tea.v1.2.0, replaces: tea.v1.1.0}", "f:17:1", "no entry of channel candidate upgrades tea.v1.0.0 (channel stable)"},
	{"GRA019", "name: candidate\nentries:\n- name: tea.v1.2.0", "name: candidate\nentries:\n- {name: tea.v1.0.0, skips: [tea.v1.2.0]}", "f:17:1", "a switch to channel candidate downgrades tea.v1.2.0 (channel stable) to tea.v1.0.0"},
	{"GRA020", "name: candidate\nentries:\n- name: tea.v1.2.0", "name: candidate\nentries:\n- {name: tea.v1.2.0, replaces: tea.v1.0.0}\n- name: tea.v1.0.0", "f:19:22", "tea.v1.2.0 replaces tea.v1.0.0 here and tea.v1.1.0 in channel stable: users of tea.v1.1.0 who switch to channel candidate are not upgraded"},
	{"GRA021", "name: tea.v1.0.0}\n", "name: tea.v1.2.0}\n", "f:50:3", "tea.v1.2.0, the head of channel stable, is deprecated"},
	{"CAT023", "{type: olm.csv.metadata, value: {}}", "{type: olm.gvk.requierd, value: {group: g, kind: K, version: v1}}", "f:27:4", `"olm.gvk.required" is known`},
	{"CAT023", "{type: olm.csv.metadata, value: {}}", "{type: olm.package.required, value: {packageNam: p, versionRange: '>=1.0.0'}}", "f:27:40", `"packageName" is known`},
	{"CAT024", "tea.v1.2.0", "tea_v1.2.0", "f:39:1", `bundle name "tea_v1.2.0"`},
	{"CAT027", "{type: olm.csv.metadata, value: {}}", "{type: olm.bundle.object, value: {data: e30=}}", "f:21:1", "1 bundles of package tea have both an image and manifests: tea.v1.0.0"},
	{"DEP001", "{type: olm.csv.metadata, value: {}}", "{type: olm.constraint, value: {failureMessage: m, all: {constraints: [{failureMessage: m, package: {packageName: tea, versionRange: '>9.0.0'}}]}}}", "f:27:3", "requires by a constraint package tea >9.0.0, but no bundle has such a version"},
	{"DEP002", "{type: olm.csv.metadata, value: {}}", "{type: olm.constraint, value: {failureMessage: m, any: {constraints: [{failureMessage: m, gvk: {group: g, version: v1, kind: K}}, {failureMessage: m, package: {packageName: milk, versionRange: '>9.0.0'}}]}}}", "f:27:3", "requires by a constraint K (g/v1) or package milk >9.0.0"},
	{"DEP005", "{packageName: tea, version: 1.0.0}}\n- {type: olm.csv.metadata, value: {}}", "{packageName: tea, version: 1.0.0}}\n- {type: olm.package.required, value: {packageName: milk, versionRange: <2.0.0}}" + milk, "", "tea.v1.0.0 requires milk <2.0.0, tea.v1.1.0 requires >=2.0.0, and no upgrade path of milk satisfies both version ranges"},
	{"DEP006", "{packageName: tea, version: 1.1.0}}\n", "{packageName: tea, version: 1.1.0}}\n- {type: olm.gvk.required, value: {group: g, version: v1, kind: K}}\n- {type: olm.package.required, value: {packageName: milk, versionRange: '>9.0.0'}}\n", "f:33:1", "tea.v1.1.0 adds dependencies that tea.v1.0.0 did not have: package milk >9.0.0, K (g/v1)"},
	{"DEP007", "{packageName: tea, version: 1.0.0}}\n- {type: olm.csv.metadata, value: {}}", "{packageName: tea, version: 1.0.0}}\n- {type: olm.gvk, value: {group: g, version: v1, kind: K}}\n---\n{schema: olm.bundle, package: milk, name: milk.v1, properties: [{type: olm.gvk.required, value: {group: g, version: v1, kind: K}}]}", "", "tea.v1.1.0 no longer provides K (g/v1), which milk requires"},
	{"DEP008", "{packageName: tea, version: 1.0.0}}\n- {type: olm.csv.metadata, value: {}}", "{packageName: tea, version: 1.0.0}}\n- {type: olm.gvk, value: {group: g, version: v1, kind: K}}\n---\n{schema: olm.bundle, package: milk, name: milk.v1, properties: [{type: olm.gvk, value: {group: g, version: v1, kind: K}}]}", "", "tea.v1.1.0 no longer provides K (g/v1), which milk provides"},
}

// milk is a package of which tea requires one version after the other, with no upgrade between them.
const milk = `
---
{schema: olm.package, name: milk, defaultChannel: stable}
---
{schema: olm.channel, package: milk, name: stable, entries: [{name: milk.v1.0.0}, {name: milk.v1.5.0, replaces: milk.v1.0.0}, {name: milk.v2.0.0, skips: [milk.v1.5.0]}]}
---
{schema: olm.bundle, package: milk, name: milk.v1.0.0, image: example.com/a, properties: [{type: olm.package, value: {packageName: milk, version: 1.0.0}}]}
---
{schema: olm.bundle, package: milk, name: milk.v2.0.0, image: example.com/b, properties: [{type: olm.package, value: {packageName: milk, version: 2.0.0}}]}
---
schema: olm.bundle
package: tea
name: tea.v1.1.0
image: registry.example.com/tea:1.1.0
properties:
- {type: olm.package, value: {packageName: tea, version: 1.1.0}}
- {type: olm.package.required, value: {packageName: milk, versionRange: '>=2.0.0'}}
`

func TestCatalogExamples(t *testing.T) {
	if found := errorsIn(catalog.Parse("f", []byte(sane))); len(found) > 0 {
		t.Fatalf("the sane catalog is found fault with: %v", found)
	}
	holdExamples(t, catalog.Parse("f", []byte(sane)), catalogExamples, func(e example) *catalog.Catalog {
		changed := strings.Replace(sane, e.old, e.new, 1)
		if slices.Contains([]string{"CAT004", "CAT005", "CAT022", "CAT024"}, e.code) {
			changed = strings.ReplaceAll(sane, e.old, e.new)
		}
		if changed == sane {
			t.Fatalf("%s: the example changes nothing", e.code)
		}
		return catalog.Parse("f", []byte(changed))
	}, catalogChecks, graphChecks, channelChecks, dependencyChecks)
}

// TestLongWays: ten releases in a row.
func TestLongWays(t *testing.T) {
	c := releases(t, slices.Repeat([]string{teaRelease}, longWay+1)...)
	findings, _ := Catalog(c, Options{Only: []string{"GRA017"}})
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "from tea.v1.0.0 to tea.v11.0.0 OLM takes 10 upgrades; from 1 of the 11 entries of channel stable it takes 10 or more; the replaces chain has 11 entries") {
		t.Error(findings)
	}
	if findings, _ := Catalog(releases(t, slices.Repeat([]string{teaRelease}, longWay)...), Options{Only: []string{"GRA017"}}); len(findings) > 0 {
		t.Error(findings)
	}
}

// TestSize: a catalog is told large when it is.
func TestSize(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\ndata:\n  words: " + strings.Repeat("wordy ", largeCatalog/8) + "\n---\n" + teaRelease
	findings, _ := Catalog(releases(t, teaRelease, text, text), Options{Only: []string{"CAT028"}})
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "largest packages: tea") || strings.Contains(findings[0].Message, "duplicate manifests: 0.0 MiB") {
		t.Error(findings)
	}
	if findings, _ := Catalog(releases(t, teaRelease), Options{Only: []string{"CAT028"}}); len(findings) > 0 {
		t.Error(findings)
	}
}

// holdExamples finds in each example what its check must find and does not find in base, and that every check has an example.
func holdExamples(t *testing.T, base *catalog.Catalog, examples []example, parse func(example) *catalog.Catalog, families ...[]Check) {
	t.Helper()
	passing := map[string]bool{}
	if base != nil {
		findings, _ := Catalog(base, Options{})
		for _, f := range findings {
			passing[f.Code+f.Message] = true
		}
	}
	for _, e := range examples {
		t.Run(e.code, func(t *testing.T) {
			findings, _ := Catalog(parse(e), Options{})
			for _, f := range findings {
				if f.Code == e.code && !passing[f.Code+f.Message] && strings.Contains(f.Message, e.message) && (e.place == "" || f.Location != nil && f.Location.String() == e.place) {
					if f.Cause == "" || f.Fix == "" {
						t.Errorf("no cause or no fix: %+v", f)
					}
					return
				}
			}
			t.Errorf("not found at %q: %s", e.place, e.message)
			for _, f := range findings {
				t.Logf("  %s %s %s", f.Code, f.Location, f.Message)
			}
		})
	}
	for _, c := range slices.Concat(families...) {
		if !slices.ContainsFunc(examples, func(e example) bool { return e.code == c.Code }) && !slices.Contains(elsewhere, c.Code) {
			t.Errorf("check %s (%s) has no example", c.Code, c.Title)
		}
	}
}

// elsewhere are the checks that have a test of their own, or an example among the upgrades.
var elsewhere = []string{"CAT025", "CAT026", "CAT028", "CRD021", "EDG013", "GRA017", "GRA022", "OLM001", "OLM002", "OLM003", "OLM004", "OLM005", "OLM008"}

func errorsIn(c *catalog.Catalog) []string {
	findings, _ := Catalog(c, Options{})
	var list []string
	for _, f := range findings {
		if f.Severity != finding.Info {
			list = append(list, f.Code+" "+f.Message)
		}
	}
	return list
}

// TestCodes: a code is released once, and never used for anything else.
func TestCodes(t *testing.T) {
	seen := map[string]bool{catalog.CodeSyntax: true, catalog.CodeSchema: true, catalog.CodeType: true}
	for _, c := range All() {
		if seen[c.Code] {
			t.Errorf("code %s is used twice", c.Code)
		}
		seen[c.Code] = true
		if c.Title == "" || c.Cause == "" || c.Fix == "" || Family(c.Code) == c.Code {
			t.Errorf("check %s is not explained", c.Code)
		}
		for _, text := range []string{c.Title, c.Cause, c.Fix} {
			if strings.HasSuffix(text, ".") {
				t.Errorf("check %s: %q ends in a full stop", c.Code, text)
			}
		}
	}
}

// TestNothingThatOpmRefusesPasses damages the sane catalog at random and holds us against opm: what opm refuses must have
// an error here too.
func TestNothingThatOpmRefusesPasses(t *testing.T) {
	refused, passed, seeds := 0, 0, unhurried(4000)
	for seed := range seeds {
		text := damage(rand.New(rand.NewPCG(uint64(seed), 3)))
		config, err := declcfg.LoadReader(bytes.NewReader(text))
		if err == nil {
			_, err = declcfg.ConvertToModel(*config)
		}
		if err == nil {
			passed++
			continue
		}
		refused++
		findings, _ := Catalog(catalog.Parse("f", text), Options{})
		if worst, any := finding.Worst(findings); !any || worst != finding.Error {
			t.Fatalf("seed %d: opm says %v, we say %v\n%s", seed, err, findings, text)
		}
	}
	if refused < seeds/4 || passed < seeds/20 {
		t.Errorf("%d refused by opm, %d passed: the test says little", refused, passed)
	}
	t.Logf("%d refused by opm, %d passed", refused, passed)
}

// damage changes a few values of the sane catalog's JSON.
func damage(r *rand.Rand) []byte {
	documents, err := document.Parse("", []byte(sane))
	if err != nil {
		panic(err)
	}
	var out bytes.Buffer
	hurt := r.IntN(len(documents))
	for i, d := range documents {
		var v any
		if err := json.Unmarshal(d.JSON, &v); err != nil {
			panic(err)
		}
		if i == hurt {
			if r.IntN(12) == 0 {
				continue
			}
			for range 1 + r.IntN(2) {
				v = damaged(r, v)
			}
		}
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		out.Write(append(raw, '\n'))
		if i == hurt && r.IntN(20) == 0 {
			out.Write(append(raw, '\n'))
		}
	}
	return out.Bytes()
}

func damaged(r *rand.Rand, v any) any {
	words := []any{"tea.v1.0.0", "tea.v1.1.0", "tea.v1.2.0", "tea.v9.9.9", "", "1.0.0", "x y", "olm.bundle", "olm.channel", "olm.package", "stable", 3, nil, true, []any{}, map[string]any{}}
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		if len(keys) == 0 || r.IntN(10) == 0 {
			v[[]string{"skips", "skipRange", "replaces", "entries", "properties", "icon", "name"}[r.IntN(7)]] = words[r.IntN(len(words))]
			return v
		}
		k := keys[r.IntN(len(keys))]
		if r.IntN(8) == 0 {
			delete(v, k)
			return v
		}
		v[k] = damaged(r, v[k])
		return v
	case []any:
		if len(v) == 0 {
			return append(v, words[r.IntN(len(words))])
		}
		i := r.IntN(len(v))
		switch r.IntN(8) {
		case 0:
			return slices.Delete(v, i, i+1)
		case 1:
			return append(v, v[i])
		}
		v[i] = damaged(r, v[i])
		return v
	default:
		return words[r.IntN(len(words))]
	}
}

// againstExamples are changes of the sane catalog that its users must be told of.
var againstExamples = []example{
	{"CMP001", "tea", "coffee", "was:1:1", "the catalog no longer has package tea"},
	{"CMP002", "name: candidate", "name: preview", "f:1:1", "no longer has channel candidate"},
	{"CMP003", "- name: tea.v1.0.0\n- name: tea.v1.1.0\n  replaces: tea.v1.0.0\n", "- name: tea.v1.1.0\n", "f:8:1", "channel stable dropped tea.v1.0.0, and no entry upgrades it"},
	{"CMP004", "- name: tea.v1.2.0\n  replaces: tea.v1.1.0\n", "", "f:8:1", "the head of channel stable is lower than before: it was tea.v1.2.0 and is tea.v1.1.0"},
	{"CMP005", "registry.example.com/tea:1.0.0", "registry.example.com/tea:1.0.1", "f:21:1", "bundle tea.v1.0.0 changed: image"},
	{"CMP005", "version: 1.0.0}", "version: 1.0.1}", "f:21:1", "olm.package"},
	{"CMP006", "defaultChannel: stable", "defaultChannel: candidate", "f:3:1", "is candidate; before it was stable"},
	{"CMP007", "  replaces: tea.v1.0.0\n- name: tea.v1.2.0\n  replaces: tea.v1.1.0\n", "- name: tea.v1.2.0\n  replaces: tea.v1.1.0\n  skips: [tea.v1.0.0]\n", "f:8:1", "channel stable no longer declares: tea.v1.0.0 → tea.v1.1.0"},
	{"CMP008", "name: tea.v1.0.0}\n", "name: tea.v1.2.0}\n", "f:8:1", "tea.v1.2.0, the head of channel stable, is now deprecated"},
}

func TestAgainst(t *testing.T) {
	previous := catalog.Parse("was", []byte(sane))
	if findings, _ := Catalog(previous, Options{Previous: previous, Only: []string{"CMP"}}); len(findings) > 0 {
		t.Errorf("a catalog differs from itself: %v", findings)
	}
	for _, e := range againstExamples {
		t.Run(e.code, func(t *testing.T) {
			changed := strings.Replace(sane, e.old, e.new, 1)
			if e.code == "CMP001" {
				changed = strings.ReplaceAll(sane, e.old, e.new)
			}
			findings, _ := Catalog(catalog.Parse("f", []byte(changed)), Options{Previous: previous, Only: []string{"CMP"}})
			if !slices.ContainsFunc(findings, func(f finding.Finding) bool {
				return f.Code == e.code && f.Location.String() == e.place && strings.Contains(f.Message, e.message)
			}) {
				t.Errorf("not found at %s: %s; only %v", e.place, e.message, findings)
			}
		})
	}
	for _, c := range againstChecks {
		if !slices.ContainsFunc(againstExamples, func(e example) bool { return e.code == c.Code }) {
			t.Errorf("check %s (%s) has no example", c.Code, c.Title)
		}
	}
}

// TestOwnRange: that a skipRange covers its own version is one warning of one code, for a bundle and, once for all its
// releases, for a package.
func TestOwnRange(t *testing.T) {
	ranges := func(text string, count int) string {
		for _, version := range []string{"1", "2"}[:count] {
			entry := "- name: tea.v1." + version + ".0\n"
			text = strings.Replace(text, entry, entry+"  skipRange: <=1."+version+".0\n", 2) // in both channels
		}
		return text
	}
	for count, want := range []string{
		"",
		`f:11:3 stable tea.v1.1.0 the skipRange "<=1.1.0" of tea.v1.1.0 covers its own version`,
		"f:22:3   the skipRanges of 2 releases each cover their own version: tea.v1.2.0, tea.v1.1.0",
	} {
		findings, _ := Catalog(catalog.Parse("f", []byte(ranges(sane, count))), Options{Only: []string{"GRA009"}})
		var got []string
		for _, f := range findings {
			got = append(got, fmt.Sprintf("%s %s %s %s", f.Location, f.Subject.Channel, f.Subject.To, f.Message))
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%d releases: %q, and it should be %q", count, got, want)
		}
	}
	csv := strings.SplitN(teaRelease, "---", 2)[0]
	inBundle := strings.Replace(csv, "  annotations:\n", "  annotations:\n    olm.skipRange: <=VERSION\n", 1)
	if findings, _ := Catalog(releases(t, inBundle), Options{Only: []string{"GRA009", "CSV008"}}); len(findings) > 0 {
		t.Errorf("in a catalog the channel's range counts: %v", findings)
	}
	files := soundFiles(t)
	inCSV("'>=1.0.0 <1.2.0'", "'>=1.0.0'").apply(t, files)
	for _, f := range judge(t, files) {
		if (f.Code == "GRA009" || f.Code == "CSV008") && f.Severity != finding.Warning {
			t.Errorf("%s is %s: %s", f.Code, f.Severity, f.Message)
		}
	}
}
