package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// partsIn returns what is kept of bundles: how many parts there are, and those of before that are used once more.
func partsIn(t *testing.T, folder string, before map[string]json.RawMessage) (parts map[string]json.RawMessage, again int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(folder, "verdicts-by-bundle"), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		_, data, _ = bytes.Cut(data, []byte("\n"))
		return json.Unmarshal(data, &parts)
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range parts {
		if before[name] != nil {
			again++
		}
	}
	return parts, again
}

// documentsOf returns the documents of this repository's catalog.
func documentsOf(t *testing.T) (documents []map[string]any) {
	t.Helper()
	data, err := os.ReadFile("../../catalog/memcached-operator/catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(strings.TrimPrefix(string(data), "---\n"), "---\n") {
		var d map[string]any
		if err := yaml.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		documents = append(documents, d)
	}
	return documents
}

// writeDocuments writes a catalog of them, as JSON or as YAML.
func writeDocuments(t *testing.T, dir, format string, documents []map[string]any) {
	t.Helper()
	var text bytes.Buffer
	for _, d := range documents {
		out, err := json.MarshalIndent(d, "", " ")
		if format == "yaml" {
			text.WriteString("---\n")
			out, err = yaml.Marshal(d)
		}
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(out, '\n'))
	}
	if err := os.WriteFile(filepath.Join(dir, "catalog."+format), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// manifestsOf returns the values of the properties that hold the manifests of a bundle.
func manifestsOf(document map[string]any) (values []map[string]any) {
	properties, _ := document["properties"].([]any)
	for _, p := range properties {
		if property, _ := p.(map[string]any); property["type"] == "olm.bundle.object" {
			values = append(values, property["value"].(map[string]any))
		}
	}
	return values
}

// changeManifest changes something of a manifest of a bundle, anywhere.
func changeManifest(t *testing.T, random *rand.Rand, document map[string]any) string {
	t.Helper()
	values := manifestsOf(document)
	value := values[random.IntN(len(values))]
	raw, err := base64.StdEncoding.DecodeString(value["data"].(string))
	if err != nil {
		t.Fatal(err)
	}
	var manifest any
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	what := changeOne(random, manifest)
	if raw, err = json.Marshal(manifest); err != nil {
		t.Fatal(err)
	}
	value["data"] = base64.StdEncoding.EncodeToString(raw)
	return fmt.Sprint(document["name"], what)
}

// changeOne deletes a field that it finds at random, or changes its value.
func changeOne(random *rand.Rand, v any) string {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return ""
		}
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		name := names[random.IntN(len(names))]
		switch field := v[name].(type) {
		case map[string]any, []any:
			if random.IntN(8) > 0 {
				return "." + name + changeOne(random, field)
			}
			delete(v, name)
		case string:
			v[name] = field + "x"
		case bool:
			v[name] = !field
		case float64:
			v[name] = field + 1
		default:
			delete(v, name)
		}
		return "." + name
	case []any:
		if len(v) > 0 {
			return "[]" + changeOne(random, v[random.IntN(len(v))])
		}
	}
	return ""
}

// TestBundleVerdicts: whatever changes in a package and around it, the verdict is the one that judging all of it gives.
func TestBundleVerdicts(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			random := rand.New(rand.NewPCG(19, 0))
			dir, folder := t.TempDir(), t.TempDir()
			documents := documentsOf(t)
			bundles := slices.DeleteFunc(slices.Clone(documents), func(d map[string]any) bool { return len(manifestsOf(d)) == 0 })
			another := map[string]any{"schema": "olm.package", "name": "another"}
			for round := range 12 {
				what := "nothing"
				if round%3 > 0 {
					what = changeManifest(t, random, bundles[random.IntN(len(bundles))])
				} else { // only what stands before it
					another["notes"] = make([]int, round)
				}
				if round%4 == 3 { // what did not change stands elsewhere
					slices.Reverse(documents)
				}
				writeDocuments(t, dir, format, append([]map[string]any{another}, documents...))
				t.Setenv("OLMKIT_CACHE", "off")
				want := validateCatalog(t, dir, "--all")
				t.Setenv("OLMKIT_CACHE", folder)
				if got := validateCatalog(t, dir, "--all"); got != want {
					t.Fatalf("round %d, %s: the verdict is another one:\n%s\nnot\n%s", round, what, got, want)
				}
			}
		})
	}
}

// TestPartsJudged: of a package in which one bundle changed, only that one is judged, and the upgrades from it and to it.
func TestPartsJudged(t *testing.T) {
	dir, folder := t.TempDir(), t.TempDir()
	t.Setenv("OLMKIT_CACHE", folder)
	documents := documentsOf(t)
	named := func(version string) map[string]any {
		i := slices.IndexFunc(documents, func(d map[string]any) bool { return d["name"] == "memcached-operator."+version })
		return documents[i]
	}
	var before map[string]json.RawMessage
	for _, step := range []struct {
		name   string
		change func()
		new    int
	}{
		// Of each of the 7 bundles what it is, and facts; the upgrades to 6; two heads.
		{"all", func() {}, 7 + 7 + 6 + 2},
		{"another description of the package", func() { documents[0]["description"] = "Another." }, 0},
		{"a release in the middle", func() { named("v0.3.1")["image"] = "example.com/one:v1" }, 2 + 2},
		{"the newest", func() { named("v0.6.0-rc.1")["image"] = "example.com/two:v1" }, 2 + 1 + 1},
		{"an edge", func() {
			entries := documents[1]["entries"].([]any)
			entries[4].(map[string]any)["skipRange"] = ">=0.2.0 <0.4.0"
		}, 1},
		{"another order", func() { slices.Reverse(documents) }, 0},
	} {
		step.change()
		writeDocuments(t, dir, "json", documents)
		validateCatalog(t, dir)
		parts, again := partsIn(t, folder, before)
		if got := len(parts) - again; got != step.new {
			t.Errorf("%s: %d parts are judged, not %d", step.name, got, step.new)
		}
		if len(parts) != 22 {
			t.Errorf("%s: %d parts are kept, not 22", step.name, len(parts))
		}
		before = parts
	}
}
