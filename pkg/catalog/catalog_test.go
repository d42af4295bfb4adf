package catalog_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/pkg/catalog"
)

func load(t *testing.T, refs ...string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Load(t.Context(), refs...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What Write writes is what Load read.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, format := range catalog.Formats {
		var first, second bytes.Buffer
		if err := load(t, "testdata/catalog").Write(&first, format); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "catalog."+format)
		if err := os.WriteFile(file, first.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := load(t, file).Write(&second, format); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first.String(), second.String()); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}
}

// The memcached operator's template makes its catalog, which has no errors that are not published.
func TestMemcachedOperator(t *testing.T) {
	t.Parallel()
	published := load(t, "../../catalog/memcached-operator")
	built, err := catalog.Build(t.Context(), "../../catalog/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := published.Packages()
	if err != nil {
		t.Fatal(err)
	}
	got, err := built.Packages()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	findings, err := built.Validate(catalog.ValidateOptions{Previous: published})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Severity == catalog.Error && !f.Published {
			t.Error(f)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("schema: olm.package\nname: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tea := load(t, "testdata/catalog")
	var dense strings.Builder
	dense.WriteString("{schema: olm.package, name: tea, defaultChannel: stable}\n---\nschema: olm.channel\npackage: tea\nname: stable\nentries:\n")
	for i := range 110 {
		fmt.Fprintf(&dense, "- {name: tea.v%d, replaces: tea.v%d, skipRange: <9.0.0}\n", i, i-1)
	}
	many := filepath.Join(t.TempDir(), "many.yaml")
	if err := os.WriteFile(many, []byte(dense.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		f    func() error
		want string
	}{
		"nothing there": {func() error { _, err := catalog.Load(t.Context(), "testdata/none"); return err }, "testdata/none"},
		"no template":   {func() error { _, err := catalog.Build(t.Context(), "testdata/none"); return err }, "testdata/none"},
		"broken":        {func() error { _, err := load(t, broken).Packages(); return err }, broken},
		"broken graph":  {func() error { _, err := load(t, broken).Graph("", ""); return err }, broken},
		"broken write":  {func() error { return load(t, broken).Write(&bytes.Buffer{}, "json") }, broken},
		"format":        {func() error { return tea.Write(&bytes.Buffer{}, "xml") }, `the format "xml" is not one of json, yaml`},
		"check":         {func() error { _, err := tea.Validate(catalog.ValidateOptions{Only: []string{"XYZ"}}); return err }, "no check is called XYZ"},
		"package":       {func() error { _, err := tea.Validate(catalog.ValidateOptions{Packages: []string{"x"}}); return err }, "the catalog holds no package x: it holds tea-operator"},
		"channel":       {func() error { _, err := tea.Graph("", "beta"); return err }, `the package tea-operator has no channel "beta": it has stable`},
		"edges":         {func() error { _, err := tea.Plan(catalog.PlanOptions{Edges: "some"}); return err }, "they are chain, next or all"},
		"version":       {func() error { _, err := tea.Plan(catalog.PlanOptions{From: "9.9.9"}); return err }, "9.9.9"},
		"too many hops": {func() error { _, err := load(t, many).Plan(catalog.PlanOptions{Edges: "all"}); return err }, "there are 11990 hops or more, and a plan has at most 10000"},
		"no order":      {func() error { _, err := load(t, "testdata/stranded.yaml").Plan(catalog.PlanOptions{}); return err }, "heads"},
		"two packages": {func() error {
			_, err := load(t, "testdata/catalog", "../../catalog/memcached-operator").Graph("", "")
			return err
		}, "the catalog holds 2 packages: name one of them (memcached-operator, tea-operator)"},
		"drawing": {func() error {
			g, err := tea.Graph("", "")
			if err != nil {
				return err
			}
			return g.Draw(&bytes.Buffer{}, "png")
		}, `the format "png" is not one of`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := test.f(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
	// What is broken is a finding with its place.
	findings, err := load(t, broken).Validate(catalog.ValidateOptions{})
	if err != nil || len(findings) != 1 || findings[0].Severity != catalog.Error || findings[0].File != broken || findings[0].Line == 0 {
		t.Errorf("%v, %v", findings, err)
	}
}
