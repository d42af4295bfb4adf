package document

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// slowly returns the JSON of the only document of text as yaml.v3 and the converter have it, and its place.
func slowly(text []byte) (json []byte, at position, ok bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var node, more yaml.Node
	if decoder.Decode(&node) != nil || blank(&node) || decoder.Decode(&more) == nil {
		return nil, position{}, false
	}
	c := converter{most: perByte*len(text) + maxGrown}
	c.value(&node, 0)
	return c.out, position{node.Content[0].Line - 1, node.Content[0].Column - 1}, c.err == nil
}

func compareBlocks(t *testing.T, text []byte) (read bool) {
	t.Helper()
	json, start, ok := readBlocks(text)
	if !ok {
		return false
	}
	want, at, sound := slowly(text)
	if !sound || !bytes.Equal(json, want) {
		t.Fatalf("%q:\n got %s\nwant %s, sound %v", text, json, want, sound)
	}
	if got := (&lineCounter{data: text}).at(start); got != at {
		t.Fatalf("%q: it begins at %v, want %v", text, got, at)
	}
	return true
}

var blockTexts = []string{
	"a: 1\nb:\n- x\n- y: z\n  w: [] # no\n-\n  - 1\n  -\n\nc:\n", "---\na: b\n", "--- # x\n# y\n- - a\n  - b: c\n    d: e\n- f\n",
	"a: one\n  two\n\n  three # no\nb: x\n", "a: one\n  two\n\n\n  three\nb: -1\n", "a:\n  one\n  two\nb: 0x1f\n", "a: it's #1 - \"x\"\nb: a:b\n",
	"a: |\n  one\n    two\n\n  three\n\n\nb: |-\n  x\n\nc: |+\n  y\n\nd: e\n", "a: |\n\n  x\n   \n  y\n# c\nb: 1\n", "a:\n- |\n  x\n- b\n",
	"a: \"x \\\"y\\\" \\\\ \\n\\\n  z\n\n  w \n  v\"\nb: 'it''s\n  \"two\"'\n", "'a b': 1\n\"c\": {}\n", "a: yes\nb: ~\nc: null\nd: 1.10\n", "- a\n- \"b\"\n",
	"a: 1\na: 2\n", "a: &x 1\nb: *x\n", "a: b: c\n", "a:\n b: 1\n  c: 2\n", "a: [1, 2]\n", "a: >\n  x\n", "a: \"\\u0041\"\n", "on: 1\n", "a:\tb\n", "a: 1\n b: 2\n", "- a\nb: c\n",
	"a: ä\u00a0ß\nb: \U0001F600\n", "a: - b\n", "a: x\n  - y\n", "a: 'x'y\n", "a: #x\n  b\n", "? a\n: b\n", "a:  b  \n", "a: b #c\n  d\n", "a: >\n  one\n  two\n\n  three\n\n\n    four\n    five\n  six\n   \n  seven\nb: >-\n  x\n  y\nc: >+\n\n  z\n\n\nd: e\n",
	"a: >\n  \tx\n  y\n \n  z\n# c\n", "a: |\n  \tx\n", "a: >2\n  x\n", "a: >\n   x\n  y\n", "- >\n x\n y\n- 1\n", "a:\n  b: 'x\n  y\n z'\n  c: \"1\n2\"\n", "a: 'x\n--- y'\n", "a: 'x\n\n\n  y'\n", "a: \"x\\\n\n  y\"\n", "a: |\n  x\n y\n",
	"a: \"x \\\n  \\ y\\  \n  z \\ \n  \\ \"\n", "a: \"x\n#y\"\n", "a:\n  - b\n c: d\n", "a: 'b' #c\nd: \"e\" # f\ng: 'h'#i\n",
}

func TestBlocks(t *testing.T) {
	read := 0
	for _, text := range blockTexts {
		if compareBlocks(t, []byte(text)) {
			read++
		}
	}
	if read < 23 {
		t.Errorf("only %d of the texts were read", read)
	}
}

// FuzzBlocks holds that what readBlocks reads is what yaml.v3 reads.
func FuzzBlocks(f *testing.F) {
	for _, text := range blockTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) < 1<<12 && len(split(text)) == 1 {
			compareBlocks(t, text)
		}
	})
}

// TestPublishedBlocks reads every file of real bundles both ways.
func TestPublishedBlocks(t *testing.T) {
	root := os.Getenv("OLMKIT_DATA")
	if root == "" {
		t.Skip("OLMKIT_DATA names no folder of published bundles")
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "*", "*", "*.y*ml"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	read, all := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range split(data) {
			all++
			if compareBlocks(t, part.text) {
				read++
			}
		}
	}
	t.Logf("%d of %d documents are read fast", read, all)
}

// BenchmarkBlocks reads the catalog of the memcached operator by readBlocks and by yaml.v3, document by document.
func BenchmarkBlocks(b *testing.B) {
	data, err := os.ReadFile(filepath.Join("..", "..", "catalog", "memcached-operator", "catalog.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	texts := bytes.Split(data, []byte("\n---\n"))
	for name, read := range map[string]func([]byte) bool{
		"blocks":  func(text []byte) bool { _, _, ok := readBlocks(text); return ok },
		"yaml.v3": func(text []byte) bool { _, _, ok := slowly(text); return ok },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				for _, text := range texts {
					if !read(text) {
						b.Fatalf("not read: %.80q", text)
					}
				}
			}
		})
	}
}
