package check

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/suppress"
)

// families are the headings of the pages in docs/checks.
var families = []struct{ letters, title, intro string }{
	{"FBC", "Reading a catalog", "Parts of a file-based catalog that cannot be read."},
	{"CAT", "The catalog's documents", "Documents that opm and OLM refuse, and fields that they silently ignore."},
	{"GRA", "The upgrade graph", "Upgrades that OLM's resolver makes of the edges of the channels."},
	{"DEP", "Dependencies", "Packages and APIs that bundles require and provide. DEP009 is a finding of `olmkit upgrade plan --resolver olm`."},
	{"EDG", "Upgrades", "Changes of the ClusterServiceVersion in an upgrade. The checks look at every edge that OLM takes and at the replaces chain of each channel."},
	{"CRD", "Upgrades of CRDs", "Changes of CustomResourceDefinitions in an upgrade. The checks look at every edge that OLM takes and at the replaces chain of each channel."},
	{"CMP", "Against the previous catalog", "Changes that break users of the previous catalog. These checks run with `--against`."},
	{"TPL", "Against the template", "Differences between the catalog and its template. This check runs with `--template`."},
	{"SCH", "CustomResourceDefinitions", "CustomResourceDefinitions of one bundle. Their changes in an upgrade are on [another page](CRD.md)."},
	{"CSV", "The ClusterServiceVersion", "The ClusterServiceVersion and the other manifests of one bundle. `olmkit catalog validate` looks only at the newest bundles."},
	{"RBAC", "Permissions", "Permissions of the operator in one bundle."},
	{"WHK", "Webhooks", "Webhooks of one bundle."},
	{"IMG", "Images", "Images of one bundle. With `--images` the checks also ask the registries."},
	{"OLM", "OLM v1", "What OLM v1 (operator-controller v1.10.0) refuses and OLM v0 accepts. They are notes, and errors with `--olm v1`. What both refuse is in the other families."},
	{"ACC", "Suppressions", "Mistakes in [suppressions of findings](../suppress.md)."},
	{"API", "Upstream validators", "Results of the validators of operator-framework/api for one bundle."},
}

// documented are all checks, with those of suppressions.
func documented() []Check {
	all := Documented()
	for _, c := range suppress.Checks {
		all = append(all, Check{Code: c.Code, Severity: c.Severity, Title: c.Title, Cause: c.Cause, Fix: c.Fix})
	}
	return all
}

// TestDocs holds docs/checks against the checks; -update writes it anew.
func TestDocs(t *testing.T) {
	root := filepath.Join("..", "..", "docs", "checks")
	byFamily := map[string][]Check{}
	for _, c := range documented() {
		byFamily[Family(c.Code)] = append(byFamily[Family(c.Code)], c)
	}
	var index strings.Builder
	index.WriteString("# Checks\n\nWhat `olmkit catalog validate` and `olmkit bundle validate` look for. A code never changes its meaning.\n\nThe findings of `olmkit upgrade test` are on [another page](U.md). [Precision](precision.md) says how reliable the checks are.\n")
	for _, f := range families {
		checks := byFamily[f.letters]
		if len(checks) == 0 {
			t.Errorf("no check is of family %s", f.letters)
		}
		delete(byFamily, f.letters)
		slices.SortFunc(checks, func(a, b Check) int { return strings.Compare(a.Code, b.Code) })
		fmt.Fprintf(&index, "\n## [%s](%s.md)\n\n| code | severity | |\n|---|---|---|\n", f.title, f.letters)
		var page strings.Builder
		fmt.Fprintf(&page, "# %s: %s\n\n%s\n", f.letters, f.title, f.intro)
		for _, c := range checks {
			fmt.Fprintf(&index, "| [%s](%s.md#%s) | %s | %s |\n", c.Code, f.letters, strings.ToLower(c.Code), c.Severity, cell(c.Title))
			fmt.Fprintf(&page, "\n## %s\n\n**%s** (%s)\n\n%s\n\nFix: %s\n", c.Code, sentence(c.Title), c.Severity, sentence(c.Cause)+".", c.Fix+".")
			for _, r := range c.References {
				fmt.Fprintf(&page, "\n<%s>\n", r)
			}
			if e := exampleOf(c.Code); e != "" {
				page.WriteString("\n" + e)
			}
		}
		golden(t, filepath.Join(root, f.letters+".md"), page.String())
	}
	for letters := range byFamily {
		t.Errorf("family %s has no page", letters)
	}
	golden(t, filepath.Join(root, "README.md"), index.String())
}

// sentence begins with a capital letter, unless it begins with a name.
func sentence(s string) string {
	if first, _, _ := strings.Cut(s, " "); strings.ContainsAny(first, "./") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// exampleOf is the first example of a check as a difference, when it fits a page.
func exampleOf(code string) string {
	for _, e := range slices.Concat(catalogExamples, againstExamples, edgeExamples, templateExamples) {
		if e.code == code && e.old != "tea" {
			if text := difference("", e.old, e.new); text != "" {
				return text
			}
		}
	}
	for _, e := range bundleExamples {
		if e.code != code {
			continue
		}
		text := ""
		for c := &e.change; c != nil; c = c.also {
			part := difference(c.file, c.old, c.new)
			if part == "" {
				text = ""
				break
			}
			text += part
		}
		if text != "" {
			return text
		}
	}
	return ""
}

// difference shows what an example changes, unless it is too long for a page: without the lines passes, with them it fails.
func difference(file, old, new string) string {
	if len(old)+len(new) > 400 || old+new == "" {
		return ""
	}
	var b strings.Builder
	if file != "" {
		fmt.Fprintf(&b, "In `%s`:\n\n", file)
	}
	b.WriteString("```diff\n")
	indent := 100
	for _, l := range strings.Split(strings.Trim(old+"\n"+new, "\n"), "\n") {
		if l != "" {
			indent = min(indent, len(l)-len(strings.TrimLeft(l, " ")))
		}
	}
	for _, part := range []struct{ mark, text string }{{"-", old}, {"+", new}} {
		if part.text == "" {
			continue
		}
		for _, l := range strings.Split(strings.Trim(part.text, "\n"), "\n") {
			b.WriteString(strings.TrimRight(part.mark+" "+l[min(indent, len(l)):], " ") + "\n")
		}
	}
	b.WriteString("```\n")
	return b.String()
}
