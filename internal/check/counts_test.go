package check

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// TestCounts logs how many findings of each code there are in published data, for docs/checks/precision.md: in catalogs, and
// in bundles each for itself.
func TestCounts(t *testing.T) {
	root := published(t)
	glob := func(pattern string) []string {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s holds no %s: %v", root, pattern, err)
		}
		return found
	}
	type numbers struct{ catalogs, bundles int }
	counts := map[string]numbers{}
	count := func(findings []finding.Finding, add numbers) {
		for _, f := range findings {
			key := fmt.Sprintf("%s %s", f.Code, f.Severity)
			counts[key] = numbers{counts[key].catalogs + add.catalogs, counts[key].bundles + add.bundles}
		}
	}
	var total numbers
	judged := func(c *catalog.Catalog) {
		findings, _ := Catalog(c, Options{})
		count(findings, numbers{catalogs: 1})
		total.catalogs++
	}
	for _, dir := range glob("catalogs/*") {
		c, err := catalog.Load(t.Context(), nil, dir)
		if err != nil {
			t.Fatal(err)
		}
		judged(c)
	}
	packages := map[string]bool{}
	for _, dir := range glob("*/*/manifests") {
		packages[filepath.Dir(filepath.Dir(dir))] = true
		b, err := bundle.Read(filepath.Dir(dir))
		if err != nil {
			t.Fatal(err)
		}
		count(Bundle(b, nil), numbers{bundles: 1})
		total.bundles++
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		judged(publishedCatalog(t, dir))
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&text, "%-15s %8d %8d\n", key, counts[key].catalogs, counts[key].bundles)
	}
	t.Logf("findings in %d catalogs and %d bundles\n%s", total.catalogs, total.bundles, text.String())
}
