package resolver_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/resolver"
)

// bundle is an olm.bundle of pkg with properties besides its version.
func bundle(pkg string, version int, properties ...string) string {
	all := append([]string{fmt.Sprintf(`{"type":"olm.package","value":{"packageName":"%s","version":"%d.0.0"}}`, pkg, version)}, properties...)
	return fmt.Sprintf(`{"schema":"olm.bundle","package":"%s","name":"%[1]s.v%d","image":"example.com/%[1]s:v%[2]d","properties":[%s]}`, pkg, version, strings.Join(all, ",")) + "\n"
}

// chain is a package with a channel in which each of its bundles replaces the one before.
func chain(pkg string, bundles ...string) string {
	entries := make([]string, len(bundles))
	for i := range bundles {
		entries[i] = fmt.Sprintf(`{"name":"%s.v%d","replaces":"%[1]s.v%[3]d"}`, pkg, i+1, i)
	}
	return fmt.Sprintf(`{"schema":"olm.package","name":"%s","defaultChannel":"stable"}
{"schema":"olm.channel","package":"%[1]s","name":"stable","entries":[%s]}
`, pkg, strings.Join(entries, ",")) + strings.Join(bundles, "")
}

func requires(pkg, versions string) string {
	return fmt.Sprintf(`{"type":"olm.package.required","value":{"packageName":"%s","versionRange":"%s"}}`, pkg, versions)
}

func api(property string) string {
	return `{"type":"` + property + `","value":{"group":"example.com","version":"v1","kind":"Kettle"}}`
}

func constraint(value string) string {
	return `{"type":"olm.constraint","value":{"failureMessage":"it needs water",` + value + `}}`
}

// TestFrom: what OLM takes is what satisfies all that is installed, and what must come along comes along.
func TestFrom(t *testing.T) {
	pot := chain("pot", bundle("pot", 1), bundle("pot", 2), bundle("pot", 3))
	water := func(versions string) string {
		return constraint(`"any":{"constraints":[{"package":{"packageName":"well","versionRange":">=1.0.0"}},{"package":{"packageName":"pot","versionRange":"` + versions + `"}}]}`)
	}
	for name, test := range map[string]struct {
		catalog string
		from    string
		planned string
		want    resolver.Answer // less what the resolver says
		why     string          // part of that
		missing string          // likewise
	}{
		"nothing is required": {
			catalog: chain("tea", bundle("tea", 1), bundle("tea", 2)), from: "tea.v1", planned: "tea.v2", want: resolver.Answer{To: "tea.v2"},
		},
		"the head is installed": {
			catalog: chain("tea", bundle("tea", 1), bundle("tea", 2)), from: "tea.v2",
		},
		"a dependency is installed with the upgrade": {
			catalog: chain("tea", bundle("tea", 1), bundle("tea", 2, requires("pot", "<2.0.0"))) + pot, from: "tea.v1", planned: "tea.v2",
			want: resolver.Answer{To: "tea.v2", Along: []resolver.Change{{Package: "pot", To: "pot.v1"}}},
		},
		"a dependency is upgraded with the upgrade": {
			catalog: chain("tea", bundle("tea", 1, requires("pot", "<2.0.0")), bundle("tea", 2, requires("pot", ">=2.0.0 <3.0.0"))) + pot, from: "tea.v1", planned: "tea.v2",
			want: resolver.Answer{To: "tea.v2", Along: []resolver.Change{{Package: "pot", From: "pot.v1", To: "pot.v2"}}},
		},
		"a dependency is two upgrades away": {
			catalog: chain("tea", bundle("tea", 1, requires("pot", "<2.0.0")), bundle("tea", 2, requires("pot", ">=3.0.0"))) + pot, from: "tea.v1", planned: "tea.v2",
			why: "pot",
		},
		"an API that nothing provides": {
			catalog: chain("tea", bundle("tea", 1), bundle("tea", 2, api("olm.gvk.required"))) + pot, from: "tea.v1", planned: "tea.v2",
			why: "Kettle",
		},
		"an API that a package provides": {
			catalog: chain("tea", bundle("tea", 1), bundle("tea", 2, api("olm.gvk.required"))) + chain("kettle", bundle("kettle", 1, api("olm.gvk"))), from: "tea.v1", planned: "tea.v2",
			want: resolver.Answer{To: "tea.v2", Along: []resolver.Change{{Package: "kettle", To: "kettle.v1"}}},
		},
		"an API that the dependency provides as well": {
			catalog: chain("tea", bundle("tea", 1, requires("kettle", ">=1.0.0")), bundle("tea", 2, requires("kettle", ">=1.0.0"), api("olm.gvk"))) + chain("kettle", bundle("kettle", 1, api("olm.gvk"))), from: "tea.v1", planned: "tea.v2",
			why: "installed kettle.v1, stable/kettle.v1 and stable/tea.v2 provide Kettle (example.com/v1)",
		},
		"a constraint that is satisfied": {
			catalog: chain("tea", bundle("tea", 1), bundle("tea", 2, water(">=3.0.0"))) + pot, from: "tea.v1", planned: "tea.v2",
			want: resolver.Answer{To: "tea.v2", Along: []resolver.Change{{Package: "pot", To: "pot.v3"}}},
		},
		"a constraint that nothing satisfies": {
			catalog: chain("tea", bundle("tea", 1), bundle("tea", 2, water(">=4.0.0"))) + pot, from: "tea.v1", planned: "tea.v2",
			why: "well and with version in range: >=1.0.0 or with package: pot",
		},
		"the base requires what is gone": {
			catalog: chain("tea", bundle("tea", 1, requires("mug", ">=1.0.0")), bundle("tea", 2)), from: "tea.v1", planned: "tea.v2",
			want: resolver.Answer{To: "tea.v2"}, missing: "mug",
		},
		"a new Subscription to a head that cannot be": {
			catalog: chain("tea", bundle("tea", 1), bundle("tea", 2), bundle("tea", 3, requires("mug", ">=1.0.0"))), planned: "tea.v3",
			want: resolver.Answer{To: "tea.v2"}, why: "mug",
		},
		"a forbidden bundle": {
			catalog: chain("tea", bundle("tea", 1), bundle("tea", 2, `{"type":"olm.deprecated","value":{}}`)), from: "tea.v1", planned: "tea.v2",
			why: "tea.v2 is deprecated",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := catalog.Parse("catalog.json", []byte(test.catalog))
			if err := c.Err(); err != nil {
				t.Fatal(err)
			}
			olm, err := resolver.Open(t.Context(), c, "tea", "stable")
			if err != nil {
				t.Fatal(err)
			}
			var got resolver.Answer
			if test.from == "" {
				got = olm.New(test.planned)
			} else {
				got = olm.From(test.from, test.planned)
			}
			if (test.why == "") != (got.Why == "") || !strings.Contains(got.Why, test.why) || (test.missing == "") != (got.Missing == "") || !strings.Contains(got.Missing, test.missing) {
				t.Errorf("it says why %q, and what is missing %q", got.Why, got.Missing)
			}
			if got.Why, got.Missing = "", ""; !reflect.DeepEqual(got, test.want) {
				t.Errorf("OLM takes %+v, not %+v", got, test.want)
			}
		})
	}
}
