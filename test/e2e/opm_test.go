//go:build linux

package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/document"
)

// Differences between what olmkit and opm print that do not matter, each with why they are there.
const (
	// opm sorts the images that a bundle needs by address only, and takes those of containers in no order.
	orderOfImages = "the order of relatedImages with the same address"
	// opm writes properties in the order in which it came across them, and fields of manifests by name; olmkit sorts the
	// first and keeps the author's order of the others.
	orderOfProperties = "the order of properties, and of fields in them"
	// opm reads the first document of each file of a bundle only (operator-registry v1.74.0, pkg/registry/parse.go).
	secondDocuments = "manifests that are not the first of their file"
	// opm takes numbers of manifests through floating point, and those of documents of other schemas in templates.
	writtenNumbers = "numbers as their authors wrote them"
)

// opm runs opm, which reaches registries without TLS, and returns what it prints.
func opm(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := tryOpm(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryOpm(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	home := t.TempDir()
	policy := filepath.Join(home, ".config", "containers", "policy.json")
	if err := os.MkdirAll(filepath.Dir(policy), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, policy, `{"default": [{"type": "insecureAcceptAnything"}]}`)
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "opm"), append(args, "--use-http")...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+home, "DOCKER_CONFIG="+home)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatalf("run opm: %v (build it with 'make bin/opm')", err)
		}
		return nil, fmt.Errorf("opm %.200s: %w\n%s", strings.Join(args, " "), err, errOut.String())
	}
	return out.Bytes(), nil
}

// compared counts what was held against opm.
type compared struct {
	documents, properties, manifests int
	differences                      map[string]int
}

// likeOpm fails the test unless both streams hold the same documents, and counts them. Order of documents says nothing.
func (c *compared) likeOpm(t *testing.T, what string, ours, theirs []byte) {
	t.Helper()
	got, want := documentsOf(t, ours), documentsOf(t, theirs)
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%s: %d documents, opm prints %d", what, len(got), len(want))
		return
	}
	for i := range want {
		c.documents++
		c.document(t, what, got[i], want[i])
	}
}

// documentsOf returns the documents of a stream, sorted by what they are.
func documentsOf(t *testing.T, stream []byte) []map[string]any {
	t.Helper()
	parsed, err := document.Parse("stream", stream)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for _, d := range parsed {
		all = append(all, decoded[map[string]any](t, d.JSON))
	}
	slices.SortStableFunc(all, func(a, b map[string]any) int { return strings.Compare(identity(a), identity(b)) })
	return all
}

func identity(d map[string]any) string {
	return fmt.Sprint(d["schema"], " ", d["package"], " ", d["name"])
}

// decoded reads JSON with numbers as they are written.
func decoded[T any](t *testing.T, raw []byte) T {
	t.Helper()
	var v T
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v in %.200s", err, raw)
	}
	return v
}

// printed renders v as text, in which fields are in order.
func printed(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// rounded renders v as text with all numbers as floating point holds them.
func rounded(v any) string {
	return printed(inexact(v))
}

func inexact(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			panic(err)
		}
		return f
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = inexact(v[i])
		}
		return list
	case map[string]any:
		fields := map[string]any{}
		for k := range v {
			fields[k] = inexact(v[k])
		}
		return fields
	}
	return v
}

func (c *compared) document(t *testing.T, what string, got, want map[string]any) {
	t.Helper()
	name := fmt.Sprintf("%s: %v %v", what, want["schema"], want["name"])
	if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
		t.Errorf("%s has the fields %v, from opm %v", name, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for field := range want {
		if printed(got[field]) == printed(want[field]) && field != "properties" {
			continue
		}
		switch {
		case field == "relatedImages" && slices.Equal(sortedTexts(got[field]), sortedTexts(want[field])):
			c.differences[orderOfImages]++
		case field == "properties" && want["schema"] == "olm.bundle":
			c.bundle(t, name, got[field], want[field])
		case rounded(got[field]) == rounded(want[field]):
			c.differences[writtenNumbers]++
		case printed(got[field]) != printed(want[field]):
			t.Errorf("%s: %s is %.500s, from opm %.500s", name, field, printed(got[field]), printed(want[field]))
		}
	}
}

func sortedTexts(list any) []string {
	items, _ := list.([]any)
	var texts []string
	for _, v := range items {
		texts = append(texts, printed(v))
	}
	slices.Sort(texts)
	return texts
}

// bundle compares the properties of a bundle.
func (c *compared) bundle(t *testing.T, name string, got, want any) {
	t.Helper()
	ours, ourManifests := propertiesOf(t, got)
	theirs, theirManifests := propertiesOf(t, want)
	c.properties += len(theirs)
	c.manifests += len(theirManifests)
	if printed(got) != printed(want) {
		c.differences[orderOfProperties]++
	}
	if !slices.Equal(ours, theirs) {
		t.Errorf("%s: properties %.1000s\nfrom opm %.1000s", name, ours, theirs)
	}
	for rough, exact := range theirManifests {
		mine, ok := ourManifests[rough]
		switch {
		case !ok:
			t.Errorf("%s lacks the manifest %.500s", name, exact)
		case mine != exact:
			c.differences[writtenNumbers]++
		}
	}
	c.differences[secondDocuments] += len(ourManifests) - len(theirManifests)
}

// propertiesOf returns a bundle's properties, sorted, and its manifests by how they are with rounded numbers.
func propertiesOf(t *testing.T, list any) (properties []string, manifests map[string]string) {
	t.Helper()
	items, _ := list.([]any)
	manifests = map[string]string{}
	for _, v := range items {
		p, _ := v.(map[string]any)
		if p["type"] != "olm.bundle.object" {
			properties = append(properties, printed(p))
			continue
		}
		value, _ := p["value"].(map[string]any)
		text, _ := value["data"].(string)
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		manifest := decoded[any](t, raw)
		manifests[rounded(manifest)] = printed(manifest)
	}
	slices.Sort(properties)
	return properties, manifests
}

// TestLikeOpm holds what olmkit renders of everything published to what opm renders of it, both as programs. In short it is one
// package of four.
func TestLikeOpm(t *testing.T) {
	t.Parallel()
	dir := unpackPublished(t)
	unpackArchive(t, dir, "real-catalogs.tar.xz")
	own, err := filepath.Glob(filepath.Join(root, "bundle", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	published := map[string][]string{"memcached-operator": own} // bundles by package
	folders, err := filepath.Glob(filepath.Join(dir, "*", "*", "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		bundle := filepath.Dir(f)
		published[filepath.Base(filepath.Dir(bundle))] = append(published[filepath.Base(filepath.Dir(bundle))], bundle)
	}
	var packages []string
	for i, pkg := range slices.Sorted(maps.Keys(published)) {
		if !testing.Short() || i%4 == 0 {
			packages = append(packages, pkg)
		}
	}
	host := startPlainRegistry(t)
	c := &compared{differences: map[string]int{}}
	defer func() {
		t.Logf("compared %d documents with %d properties and %d manifests; differences: %v", c.documents, c.properties, c.manifests, c.differences)
	}()

	t.Run("bundle directories", func(t *testing.T) {
		for _, pkg := range packages {
			for format, bundles := range map[string][]string{"json": published[pkg], "yaml": published[pkg][len(published[pkg])-1:]} {
				args := append([]string{"render", "-o", format}, bundles...)
				c.likeOpm(t, pkg+" as "+format, []byte(must(t, append([]string{"catalog"}, args...)...).out), opm(t, args...))
			}
		}
	})
	t.Run("a bundle that opm reads in part", func(t *testing.T) {
		bundle := filepath.Join(t.TempDir(), "bundle")
		if err := os.CopyFS(bundle, os.DirFS(own[0])); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(bundle, "manifests", "two.yaml"), `apiVersion: v1
kind: ConfigMap
metadata: {name: first}
data: {a: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: second}
data: {a: "1"}
`)
		write(t, filepath.Join(bundle, "manifests", "number.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: number}\ndata: {a: 9007199254740993.0}\n")
		before := maps.Clone(c.differences)
		c.likeOpm(t, bundle, []byte(must(t, "catalog", "render", bundle).out), opm(t, "render", bundle))
		for _, kind := range []string{secondDocuments, writtenNumbers} {
			if c.differences[kind] != before[kind]+1 {
				t.Errorf("%d differences in %s, want one", c.differences[kind]-before[kind], kind)
			}
		}
	})

	t.Run("catalogs", func(t *testing.T) {
		catalogs, err := filepath.Glob(filepath.Join(dir, "catalogs", "*"))
		if err != nil || len(catalogs) == 0 {
			t.Fatalf("no catalogs: %v", err)
		}
		for _, catalog := range append(catalogs, filepath.Join(root, "catalog")) {
			for _, format := range []string{"json", "yaml"} {
				args := []string{"render", "-o", format, catalog}
				c.likeOpm(t, catalog, []byte(must(t, append([]string{"catalog"}, args...)...).out), opm(t, args...))
			}
		}
	})

	// The oldest and the newest bundle of each package, as images.
	images := map[string][]string{}
	for _, pkg := range packages {
		for i, bundle := range []string{published[pkg][0], published[pkg][len(published[pkg])-1]} {
			reference := fmt.Sprintf("%s/%s:%d", host, pkg, i)
			must(t, "bundle", "push", bundle, reference)
			images[pkg] = append(images[pkg], reference)
		}
	}
	t.Run("images of bundles", func(t *testing.T) {
		for _, pkg := range packages {
			for _, level := range []string{"none", "bundle-object-to-csv-metadata"} {
				args := append([]string{"render", "--migrate-level", level}, images[pkg]...)
				c.likeOpm(t, pkg+", migration "+level, []byte(must(t, append([]string{"catalog"}, args...)...).out), opm(t, args...))
			}
		}
	})
	t.Run("layouts and archives, which opm does not read", func(t *testing.T) {
		for _, pkg := range packages {
			bundle := published[pkg][0]
			layout, archive := filepath.Join(t.TempDir(), "layout"), filepath.Join(t.TempDir(), "bundle.tar")
			must(t, "bundle", "push", bundle, "--oci-layout", layout, "--output", archive)
			theirs := opm(t, "render", bundle)
			for _, ref := range []string{layout, archive} {
				c.likeOpm(t, ref, []byte(must(t, "catalog", "render", ref).out), theirs)
			}
		}
	})
	t.Run("images of catalogs", func(t *testing.T) {
		catalogs, err := filepath.Glob(filepath.Join(dir, "catalogs", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for i, catalog := range append(catalogs, filepath.Join(root, "catalog")) {
			reference := fmt.Sprintf("%s/catalog:%d", host, i)
			must(t, "catalog", "push", catalog, reference)
			c.likeOpm(t, reference, []byte(must(t, "catalog", "render", reference).out), opm(t, "render", reference))
		}
	})

	t.Run("templates", func(t *testing.T) {
		// Each package's bundles in all three of semver's channels.
		for pkg, references := range images {
			for _, channels := range []string{"generateMajorChannels: true", "generateMajorChannels: true\ngenerateMinorChannels: true\ndefaultChannelTypePreference: minor"} {
				all, newest := "- image: "+strings.Join(references, "\n  - image: "), "- image: "+references[len(references)-1]
				compareTemplate(t, c, "schema: olm.semver\n"+channels+"\ncandidate:\n  bundles:\n  "+all+"\nfast:\n  bundles:\n  "+all+"\nstable:\n  bundles:\n  "+newest+"\n", pkg)
			}
			// A basic template has the channels of the package, written out.
			compareTemplate(t, c, `schema: olm.template.basic
entries:
- {schema: olm.package, name: `+pkg+`, defaultChannel: stable, description: "1e3"}
- {schema: olm.channel, package: `+pkg+`, name: stable, entries: [{name: a}, {name: b, replaces: a, skips: [c], skipRange: "<1.0.0"}]}
- {schema: olm.bundle, image: "`+strings.Join(references, `"}
- {schema: olm.bundle, image: "`)+`"}
- {schema: olm.deprecations, package: `+pkg+`, entries: [{reference: {schema: olm.channel, name: stable}, message: "No longer."}]}
- {schema: com.example.other, package: `+pkg+`, name: x, much: {more: [1, 2.50, 9007199254740993]}}
`, pkg)
		}
		// Every release of the memcached operator, by opm's rules.
		var references []string
		for i, bundle := range own {
			references = append(references, fmt.Sprintf("%s/memcached:all-%d", host, i))
			must(t, "bundle", "push", bundle, references[i])
		}
		all := "- image: " + strings.Join(references, "\n  - image: ")
		compareTemplate(t, c, "schema: olm.semver\ngenerateMajorChannels: true\ngenerateMinorChannels: true\ncandidate:\n  bundles:\n  "+all+"\nstable:\n  bundles:\n  "+all+"\n", "memcached-operator")
	})
}

// compareTemplate builds a template's catalog with both programs. The one may refuse what the other refuses.
func compareTemplate(t *testing.T, c *compared, template, what string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "template.yaml")
	write(t, file, template)
	theirs, err := tryOpm(t, "alpha", "render-template", file, "-o", "yaml")
	ours := run(t, nil, "catalog", "build", file)
	if err != nil || ours.code != 0 {
		if err == nil || ours.code == 0 {
			t.Errorf("%s: olmkit says %d\n%s\nopm says %v\n%s", what, ours.code, ours.errOut, err, template)
		}
		return
	}
	c.likeOpm(t, what, []byte(ours.out), theirs)
}
