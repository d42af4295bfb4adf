package check

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
)

var update = flag.Bool("update", false, "write the golden files anew")

// published returns the folder with published bundles, unpacked, that OLMKIT_DATA names.
func published(t testing.TB) string {
	root := os.Getenv("OLMKIT_DATA")
	if root == "" {
		t.Skip("OLMKIT_DATA names no folder of published bundles")
	}
	return root
}

// publishedCatalog makes the catalog of a package out of its bundle directories: a channel for each that the bundles'
// annotations name, with the edges that the CSVs state. Where that gives no order, as with releases that rely on the
// catalog's author, the channel is a plain chain.
func publishedCatalog(t testing.TB, dir string) *catalog.Catalog {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(dir, "*", "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	var documents []*catalog.Document
	channels := map[string][]map[string]any{}
	name, byDefault := "", ""
	for _, d := range dirs {
		b, err := bundle.Read(filepath.Dir(d))
		if err != nil {
			t.Fatal(err)
		}
		document, err := catalog.Render(b, "")
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document)
		var csv struct {
			Metadata struct{ Annotations map[string]string }
			Spec     struct {
				Replaces string
				Skips    []string
			}
		}
		if err := json.Unmarshal(b.CSV().JSON, &csv); err != nil {
			t.Fatal(err)
		}
		name = b.Package()
		e := map[string]any{"name": document.Name}
		if csv.Spec.Replaces != "" {
			e["replaces"] = csv.Spec.Replaces
		}
		if len(csv.Spec.Skips) > 0 {
			e["skips"] = csv.Spec.Skips
		}
		if r := csv.Metadata.Annotations["olm.skipRange"]; r != "" {
			e["skipRange"] = r
		}
		for _, c := range strings.Split(b.Annotations[bundle.AnnotationChannels], ",") {
			c = strings.TrimSpace(c)
			channels[c] = append(channels[c], maps.Clone(e))
			byDefault = c
		}
		if c := b.Annotations[bundle.AnnotationDefaultChannel]; c != "" {
			byDefault = c
		}
	}
	if err := catalog.Write(&out, "json", documents); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&out, `{"schema":"olm.package","name":%q,"defaultChannel":%q}`+"\n", name, byDefault)
	write := func(c string, entries []map[string]any) {
		raw, err := json.Marshal(map[string]any{"schema": "olm.channel", "package": name, "name": c, "entries": entries})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(raw, '\n'))
	}
	bundles := catalog.Parse("", out.Bytes()).Find(name)
	for c, entries := range channels {
		slices.SortFunc(entries, func(a, b map[string]any) int {
			x, y := bundles.Bundle(a["name"].(string)), bundles.Bundle(b["name"].(string))
			if n := x.Version.Compare(y.Version); n != 0 {
				return n
			}
			return strings.Compare(x.Name, y.Name)
		})
		raw, err := json.Marshal(map[string]any{"schema": "olm.channel", "package": name, "name": c, "entries": entries})
		if err != nil {
			t.Fatal(err)
		}
		one := catalog.Parse("", raw).Find(name)
		plain := graph.New(one, one.Channels[0]).Err() != nil
		if !plain {
			cut := false
			cutOff(&subject{packages: []*catalog.Package{one}}, func(hit) { cut = true })
			plain = cut
		}
		for i, e := range entries {
			if plain {
				delete(e, "replaces")
				delete(e, "skips")
				if i > 0 {
					e["replaces"] = entries[i-1]["name"]
				}
			}
		}
		write(c, entries)
	}
	return catalog.Parse(filepath.Base(dir), out.Bytes())
}

// TestPublished runs every check over published packages and compares the findings with those that were read and found
// right, which stand in testdata.
func TestPublished(t *testing.T) {
	root := published(t)
	packages, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		if !p.IsDir() || p.Name() == "catalogs" {
			continue
		}
		t.Run(p.Name(), func(t *testing.T) {
			findings, _ := Catalog(publishedCatalog(t, filepath.Join(root, p.Name())), Options{})
			golden(t, filepath.Join("testdata", "published", p.Name()+".txt"), summary(findings))
		})
	}
	catalogs, err := filepath.Glob(filepath.Join(root, "catalogs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range catalogs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c, err := catalog.Load(t.Context(), nil, dir)
			if err != nil {
				t.Fatal(err)
			}
			findings, _ := Catalog(c, Options{})
			golden(t, filepath.Join("testdata", "published", filepath.Base(dir)+".txt"), summary(findings))
		})
	}
}

// summary is a line for each finding that is more than a note, sorted, without places, which change with the rendering,
// and the number of notes of each code.
func summary(findings []finding.Finding) string {
	var lines []string
	notes := map[string]int{}
	for _, f := range findings {
		if f.Severity == finding.Info {
			notes[f.Code]++
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %s [%s %s %s %s] %s\n", f.Severity, f.Code, f.Subject.Channel, f.Subject.From, f.Subject.To, f.Subject.Object, f.Message))
	}
	for code, n := range notes {
		lines = append(lines, fmt.Sprintf("info %s: %d\n", code, n))
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; write it anew with -update):\n%s", file, diff)
	}
}
