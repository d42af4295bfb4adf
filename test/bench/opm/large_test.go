package opm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/olmkit/olmkit/test/bench/large"
)

// BenchmarkLarge validates packages with large CRDs: with an empty cache, again when nothing changed, and with one more release. It renders
// their bundle directories, too.
func BenchmarkLarge(b *testing.B) {
	for _, l := range []large.Package{large.Many, large.Few} {
		dir := b.TempDir()
		root, out, cache := filepath.Join(dir, "catalog"), filepath.Join(dir, "out"), filepath.Join(dir, "cache")
		size := l.Write(b, root, l.Bundles)
		validate := func() cost {
			return run(b, cache, out, olmkit, "catalog", "validate", "--fail-on", "never", "-o", "json", root)
		}
		theirs := run(b, "off", filepath.Join(dir, "opm"), opm, "validate", root)
		what := fmt.Sprintf("%s: %d bundles, %d MB", l.Name, l.Bundles, size>>20)
		report(b, what+", cold", theirs, best(2, func() cost {
			if err := os.RemoveAll(cache); err != nil {
				b.Fatal(err)
			}
			return validate()
		}))
		report(b, what+", again", theirs, best(5, validate))
		l.Write(b, root, l.Bundles+1)
		report(b, what+", one more", theirs, validate())
		dirs := l.WriteBundles(b, filepath.Join(dir, "bundles"), l.Bundles)
		renderBoth(b, fmt.Sprintf("%s: render %d bundles", l.Name, l.Bundles), dirs)
	}
}
