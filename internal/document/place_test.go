package document

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestBlockSpots: places in ordinary YAML are those that yaml.v3 says, in the YAML of the repository and in odd texts.
func TestBlockSpots(t *testing.T) {
	texts := map[string]string{
		"lists":    "- - a\n  - b: 1\n    \"c\": [] # comment\n-\n  x: {}\n- 'quoted'\n",
		"literals": "a: |\n  text\n  more\nb:\n- 1\n- |-\n  x\nc: \"folded\n  here\"\nd: é\né: ü\n",
		"marker":   "--- # comment\n# another\n\nkey:\n  deep:\n    - name: x\n      value: y\n",
	}
	err := filepath.WalkDir("../..", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{"bin", ".git"}, entry.Name()) {
			return filepath.SkipDir // which is built or unpacked there
		}
		if err == nil && !entry.IsDir() && filepath.Ext(file) == ".yaml" {
			data, err := os.ReadFile(file)
			texts[file] = string(data)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for name, text := range texts {
		documents, err := Parse(name, []byte(text))
		if err != nil {
			continue
		}
		for _, d := range documents {
			if !d.yaml || !d.unique {
				continue
			}
			got := d.blockSpots(d.text)
			var node yaml.Node
			if yaml.Unmarshal(d.text, &node) != nil {
				t.Fatal(name)
			}
			if want := d.yamlSpots(node.Content[0], 0); got != nil && !reflect.DeepEqual(*got, want) {
				t.Errorf("%s: places differ:\n%v\n%v", name, *got, want)
			}
			if got != nil {
				compared++
			}
		}
	}
	if compared < 20 {
		t.Errorf("only %d documents were compared", compared)
	}
}

// TestFind: a place that is looked up on its own is the one that is found among all.
func TestFind(t *testing.T) {
	documents, err := Parse("f", []byte("{\"a\": [1, {\"b\": {\"é\": 2}, \"c\": 3},\n 4], \"d\": {}, \"d\": {\"e\": 5}}\n{\"x\": 1}"))
	if err != nil || len(documents) != 2 {
		t.Fatal(documents, err)
	}
	d := documents[0]
	d.asked.Store(fewPlaces)
	for _, path := range [][]any{{}, {"a"}, {"a", 0}, {"a", 1, "b", "é"}, {"a", 1, "c", "none"}, {"a", 2}, {"a", 3}, {"d", "e"}, {"none"}, {"a", "b"}, {"d", 0}, {0}} {
		if found, want := d.find(d.text, path), d.Place(path...); found != want {
			t.Errorf("%v: found at %s, stands at %s", path, found, want)
		}
	}
	if twice := d.Duplicates(); len(twice) != 1 || twice[0].Key != "d" || twice[0].At.String() != "f:2:15" {
		t.Errorf("twice: %v", twice)
	}
	if twice := documents[1].Duplicates(); twice != nil || documents[1].spots != nil {
		t.Errorf("twice: %v, and places were found that nobody asked for", twice)
	}
	if all, none, mapping := d.Items("a"), d.Items("none"), d.Items("d"); len(all) != 3 || none != nil || mapping != nil {
		t.Errorf("items: %v of a list, %v of nothing, %v of a mapping", all, none, mapping)
	}
	for i, at := range d.Items("a") {
		if want := d.Place("a", i); at != want {
			t.Errorf("item %d: %s, not %s", i, at, want)
		}
	}
}
