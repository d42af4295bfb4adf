//go:build linux

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/test/support/trace"
)

// What 'upgrade test' is given in the cases below. The scripts of test/script show what other commands say of such input.
const (
	teaHead = `
schema: olm.package
name: tea
defaultChannel: stable
---
schema: olm.channel
package: tea
name: stable
entries:
- name: tea.v0.1.0
- name: tea.v0.2.0
  replaces: tea.v0.1.0
`
	teaCycle = `
schema: olm.package
name: tea
defaultChannel: stable
---
schema: olm.channel
package: tea
name: stable
entries:
- name: tea.v0.1.0
  replaces: tea.v0.2.0
- name: tea.v0.2.0
  replaces: tea.v0.1.0
`
	// A ConfigMap is all that these bundles hold.
	teaWithoutCSV = teaHead + `---
schema: olm.bundle
package: tea
name: tea.v0.1.0
properties:
- type: olm.package
  value: {packageName: tea, version: 0.1.0}
- type: olm.bundle.object
  value: {data: eyJhcGlWZXJzaW9uIjoidjEiLCJraW5kIjoiQ29uZmlnTWFwIiwibWV0YWRhdGEiOnsibmFtZSI6InRlYSJ9fQ==}
---
schema: olm.bundle
package: tea
name: tea.v0.2.0
properties:
- type: olm.package
  value: {packageName: tea, version: 0.2.0}
- type: olm.bundle.object
  value: {data: eyJhcGlWZXJzaW9uIjoidjEiLCJraW5kIjoiQ29uZmlnTWFwIiwibWV0YWRhdGEiOnsibmFtZSI6InRlYSJ9fQ==}
`
	// As catalogs are published: the manifests are in an image only.
	teaInImages = teaHead + `---
schema: olm.bundle
package: tea
name: tea.v0.1.0
image: 127.0.0.1:1/tea:0.1.0
properties:
- type: olm.package
  value: {packageName: tea, version: 0.1.0}
---
schema: olm.bundle
package: tea
name: tea.v0.2.0
image: 127.0.0.1:1/tea:0.2.0
properties:
- type: olm.package
  value: {packageName: tea, version: 0.2.0}
`
)

// TestBadInput gives 'upgrade test' what it cannot walk. It has to say so before it does any work, with a fix.
func TestBadInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	head, cycle := file("head.yaml", teaHead), file("cycle.yaml", teaCycle)
	noCSV, inImages := file("nocsv.yaml", teaWithoutCSV), file("images.yaml", teaInImages)
	sample := file("sample.yaml", "kind: Memcached\n")
	const catalog = "catalog"
	for name, test := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"a catalog that is not there": {
			[]string{filepath.Join(dir, "nowhere")}, 1,
			[]string{"error: read catalog: ", "nowhere: no such file or directory", "fix: name a directory or file"},
		},
		"no catalog":                    {nil, 2, []string{"takes at least one CATALOG", "fix: see 'olmkit upgrade test --help'"}},
		"a package that is not there":   {[]string{catalog, "-p", "coffee"}, 2, []string{"holds no package coffee", "fix: choose one of memcached-operator"}},
		"a choice of packages":          {[]string{catalog, inImages}, 2, []string{"memcached-operator", "tea", "--package"}},
		"a channel that is not there":   {[]string{catalog, "--channel", "fast"}, 2, []string{"fast", "fix: choose one of candidate, stable"}},
		"a version that is not there":   {[]string{catalog, "--from", "9.9.9"}, 2, []string{"9.9.9", "fix: choose one of memcached-operator.v0.1.0"}},
		"a cycle":                       {[]string{cycle}, 3, []string{"error GRA001", "cycle.yaml:10:3", "cycle.yaml:12:3", "has a cycle", "fix:"}},
		"a bundle that is not there":    {[]string{head}, 3, []string{"tea.v0.1.0", "which the catalog does not have", "fix: add the bundle to the catalog"}},
		"a bundle without a CSV":        {[]string{noCSV}, 3, []string{"nocsv.yaml:14:1", "tea.v0.1.0", "has no ClusterServiceVersion", "fix: add the ClusterServiceVersion"}},
		"a bundle that is only named":   {[]string{inImages}, 1, []string{"pull bundle tea.v0.1.0", "images.yaml:14:1", "fix: see whether the registry 127.0.0.1:1 can be reached"}},
		"an unknown flag":               {[]string{catalog, "--egdes", "all"}, 2, []string{"unknown flag: --egdes", "fix: did you mean --edges? see 'olmkit upgrade test --help'"}},
		"edges of no kind":              {[]string{catalog, "--edges", "some"}, 2, []string{"must be chain, next, all or switch"}},
		"fewer hops than none":          {[]string{catalog, "--max-hops", "-1"}, 2, []string{"--max-hops -1"}},
		"no duration":                   {[]string{catalog, "--timeout", "soon"}, 2, []string{`"soon"`, "--timeout"}},
		"a part that is not one":        {[]string{catalog, "--shard", "2/2"}, 2, []string{"2/2", "INDEX"}},
		"another kind of cluster":       {[]string{catalog, "--cluster", "cloud"}, 2, []string{"--cluster cloud", "embedded"}},
		"an image without its program":  {[]string{catalog, "--image", "example.com/tea:1"}, 2, []string{"REF=PROGRAM", "fix: write for example example.com"}},
		"a program that is not there":   {[]string{catalog, "--image", "example.com/tea:1=" + dir + "/manager"}, 1, []string{"manager: no such file or directory", "fix: build the program first"}},
		"a sample that is not there":    {[]string{catalog, "--sample", filepath.Join(dir, "none.yaml")}, 1, []string{"--sample", "none.yaml: no such file"}},
		"a sample that is no object":    {[]string{catalog, "--sample", sample}, 2, []string{"--sample", "sample.yaml", "without apiVersion, kind or metadata.name"}},
		"a report of no kind":           {[]string{catalog, "--report", "x=y"}, 2, []string{"--report x=y", "fix: write for example --report junit=report.xml"}},
		"a severity that is none":       {[]string{catalog, "--fail-on", "trouble"}, 2, []string{"--fail-on trouble: must be error, warning or never"}},
		"an output of no kind":          {[]string{catalog, "-o", "pdf"}, 2, []string{"--output pdf"}},
		"an argument that is no folder": {[]string{filepath.Join(root, "go.mod")}, 1, []string{"go.mod", "fix:"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := trace.New(t)
			r := run(t, []string{before.Env()}, append([]string{"upgrade", "test"}, test.args...)...)
			said := r.out + r.errOut
			if r.code != test.code {
				t.Errorf("exit code %d, want %d", r.code, test.code)
			}
			for _, want := range test.says {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
			if strings.Contains(said, "cluster:") || strings.Contains(said, "goroutine ") {
				t.Errorf("it started a cluster, or broke:\n%s", said)
			}
			before.Check(t)
		})
	}
}
