package document

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string // place and JSON of each document
	}{
		{"nothing", "", nil},
		{"comments alone", "# nothing\n---\n# here\n", nil},
		{"JSON stream", "{\"a\": 1}\n {\"b\":2}", []string{`f:1:1 {"a": 1}`, `f:2:2 {"b":2}`}},
		{"YAML stream", "a: 1\n---\n# b\nb: 2\n--- {c: 3}\n", []string{`f:1:1 {"a":1}`, `f:4:1 {"b":2}`, `f:5:5 {"c":3}`}},
		{"flow YAML", "{a: 1}\n---\n{b: [x, y]}", []string{`f:1:1 {"a":1}`, `f:3:1 {"b":["x",true]}`}},
		{"separator in a literal is a separator only at the margin", "a: |\n  ---\n  x\n---\nb: 1\n", []string{`f:1:1 {"a":"---\nx\n"}`, `f:5:1 {"b":1}`}},
		{"directive", "%YAML 1.1\n---\na: 1\n", []string{`f:3:1 {"a":1}`}},
		{"byte order mark", "\xef\xbb\xbfa: 1", []string{`f:1:1 {"a":1}`}},
		{"carriage returns", "a: 1\r\n---\r\nb: 2\r\n", []string{`f:1:1 {"a":1}`, `f:3:1 {"b":2}`}},
		{"exact integers", "a: 9223372036854775807\nb: 18446744073709551616\nc: -9007199254740993", []string{`f:1:1 {"a":9223372036854775807,"b":18446744073709551616,"c":-9007199254740993}`}},
		{"numbers as written", "a: 1.10\nb: 1e3\nc: 0x1F\nd: 010\ne: 1_000\nf: .5\ng: +3\nh: 08\ni: 0b101\nj: 1.", []string{`f:1:1 {"a":1.10,"b":1e3,"c":31,"d":8,"e":1000,"f":0.5,"g":3,"h":8,"i":5,"j":1}`}},
		{"words", "a: yes\nb: Off\nc: ~\nd:\ne: \"yes\"\nf: !!str 1\ng: 2001-01-01\nh: v1", []string{`f:1:1 {"a":true,"b":false,"c":null,"d":null,"e":"yes","f":"1","g":"2001-01-01","h":"v1"}`}},
		{"keys that are no strings", "1: a\ntrue: b\n1.5: c", []string{`f:1:1 {"1":"a","true":"b","1.5":"c"}`}},
		{"aliases and merges", "x: &x {a: 1, b: 2}\nw: {<<: *x, b: 3}\nz: *x", []string{`f:1:1 {"x":{"a":1,"b":2},"w":{"b":3,"a":1},"z":{"a":1,"b":2}}`}},
		{"the last of two equal keys counts", "a: 1\na: 2", []string{`f:1:1 {"a":2}`}},
		{"unknown tag", "a: !Ref b", []string{`f:1:1 {"a":"b"}`}},
		{"binary", "a: !!binary aGVs\n  bG8=", []string{`f:1:1 {"a":"hello"}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			documents, err := Parse("f", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range documents {
				got = append(got, d.At.String()+" "+string(d.JSON))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for _, c := range "bcdefgh" {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+p+",", 10), ",") + "]\n"
	}
	for _, test := range []struct{ name, text, want string }{
		{"JSON", "{\"a\": 1}\n{\"b\": }", "f:2:7: invalid character '}' looking for beginning of value"},
		{"JSON cut short", "{\"a\": 1,\n", "f:2:1: unexpected EOF"},
		{"YAML in a later document", "a: 1\n---\nb: 1\n c: d\n", "f:4:2: mapping values are not allowed in this context"},
		{"tab", "a:\n\tb: 1\n", "f:2:1: found character that cannot start any token"},
		{"far below where its block begins", "spec:\n  a: 1\n" + strings.Repeat("  b:\n    c: 1\n", 500) + "   d: 1\n  e: 1\n", "f:1003:4: did not find expected key"},
		{"after a text of several lines", "a: |\n  b: 'c\nd: \"e\n  f\"\ng: 1\n h: 1\n", "f:6:2: mapping values are not allowed in this context"},
		{"not closed", "schema: \"olm.package\nname: tea\ndefaultChannel: stable\n", "f:1:1: found unexpected end of stream"},
		{"carriage returns", "\xef\xbb\xbfa: 1\r\nb: 1\r\n  c: 1\r\n", "f:3:3: mapping values are not allowed in this context"},
		{"control character", "a: 1\nb: 2\nc: \x01\nd: 1\n", "f:3:1: control characters are not allowed"},
		{"infinity", "a: 1\n---\nb:\n  - .inf", "f:4:5: JSON has no .inf"},
		{"alias of itself", "a: &a [*a]", "f:1:4: values are nested more than 1000 deep"},
		{"aliases that explode", bomb, "aliases repeat more than 1000000 values"},
		{"aliases that repeat a long text", "a: &a " + strings.Repeat("x", 1<<16) + "\nb: [" + strings.Repeat("*a,", 4096) + "]\n", "aliases repeat more than 67108864 bytes"},
		{"merges that explode", "a: &a {x: [" + strings.Repeat("xxxxxxxxxxxxxxxx,", 4096) + "]}\nb:\n" + strings.Repeat("- {<<: *a}\n", 4096), "aliases repeat more than 67108864 bytes"},
		{"many documents that explode", strings.Repeat("a: &a "+strings.Repeat("x", 1<<14)+"\nb: ["+strings.Repeat("*a,", 1024)+"]\n---\n", 32), "aliases repeat more than 67108864 bytes"},
		{"unknown alias", "a: *b", "f:1:4: the alias *b has no anchor"},
		{"JSON that is not UTF-8", "{\"a\":\n \"é\xff\"}", "f:2:4: it is not UTF-8"},
		{"YAML that is not UTF-8", "a: 1\nb: \xff\n", "f:2:4: it is not UTF-8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("f", []byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestParseBounded shows that what explodes is refused before it has grown.
func TestParseBounded(t *testing.T) {
	text := []byte("a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 100_000) + "]\n") // 100 GB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Parse("f", text); err == nil {
		t.Fatal("no error")
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 {
		t.Errorf("%d MB allocated", used>>20)
	}
}

// TestParseMany shows that streams of very many documents are read to the end.
func TestParseMany(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		count int
	}{
		"JSON": {"{\"a\": 1}\n", 1_000_000},
		"YAML": {"---\na: 1\n", 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := Parse("f", []byte(strings.Repeat(test.text, test.count)))
			if err != nil || len(documents) != test.count {
				t.Fatalf("%d documents, error %v", len(documents), err)
			}
			last := documents[test.count-1]
			if want := test.count * strings.Count(test.text, "\n"); last.At.Line != want || string(last.JSON) != `{"a": 1}` && string(last.JSON) != `{"a":1}` {
				t.Errorf("the last is %s at %s, want line %d", last.JSON, last.At, want)
			}
		})
	}
}

func TestPlace(t *testing.T) {
	text := "# a catalog\n---\nname: x\nentries:\n- name: a\n  replaces: b\n- {name: ü, skips: [c, d]}\n"
	asJSON := "\n {\"name\": \"ü\", \"x\": [1, {\"y\":\n 2}],\n\"x2\": 1, \"x\": 3 }"
	for _, test := range []struct {
		text string
		path []any
		want string
	}{
		{text, nil, "f:3:1"},
		{text, []any{"entries", 0, "replaces"}, "f:6:3"},
		{text, []any{"entries", 1, "skips", 1}, "f:7:24"},
		{text, []any{"entries", 1, "nothing"}, "f:7:3"},
		{text, []any{"entries", 9}, "f:4:1"},
		{asJSON, nil, "f:2:2"},
		{asJSON, []any{"x2"}, "f:4:1"},
		{asJSON, []any{"name"}, "f:2:3"},
		{asJSON, []any{"x"}, "f:4:10"},
	} {
		documents, err := Parse("f", []byte(test.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := documents[0].Place(test.path...).String(); got != test.want {
			t.Errorf("place of %v: got %s, want %s", test.path, got, test.want)
		}
	}
	documents, err := Parse("f", []byte(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	if twice := documents[0].Duplicates(); len(twice) != 1 || twice[0].At.String() != "f:4:10" || twice[0].Key != "x" {
		t.Errorf("duplicates: %v", twice)
	}
}

// FuzzParse holds Parse against sigs.k8s.io/yaml, by which kubectl and opm read YAML.
func FuzzParse(f *testing.F) {
	f.Add("a: 1\nb: [x, yes, 0x10, 1_0]\nc: |\n  text\n")
	f.Add("{\"a\": [1, 2.5, \"x\\u2028\"]}")
	f.Add("<<: {a: 1}\na: 2")
	f.Add("a: &x {b: 1}\nc: {<<: *x}")
	f.Add("? a\n: b\n")
	f.Add("-0:")
	f.Fuzz(func(t *testing.T, text string) {
		documents, err := Parse("f", []byte(text))
		if err != nil {
			return
		}
		for _, d := range documents {
			if !json.Valid(d.JSON) {
				t.Fatalf("not JSON: %s", d.JSON)
			}
			d.Place("a", 0, "b")
			d.Duplicates()
		}
		// yaml.v3 does not tell a scalar with the tag "!" from a plain one; nobody writes it.
		if len(documents) != 1 || strings.Contains(text, "!") || strings.Contains(text, "---") || strings.Contains(text, "...") {
			return
		}
		theirs, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return
		}
		var want, got any
		if json.Unmarshal(theirs, &want) != nil || json.Unmarshal(documents[0].JSON, &got) != nil {
			return
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%q\n got %s\nwant %s", text, documents[0].JSON, theirs)
		}
	})
}

// TestPublishedManifests holds Parse against sigs.k8s.io/yaml on every file of real bundles.
func TestPublishedManifests(t *testing.T) {
	root := os.Getenv("OLMKIT_DATA")
	if root == "" {
		t.Skip("OLMKIT_DATA names no folder of published bundles")
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "*", "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents, err := Parse(file, data)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, d := range documents {
			theirs, err := yaml.YAMLToJSON(data)
			if err != nil {
				t.Logf("%s: they say %v", d.At, err)
				continue
			}
			var want, got any
			if json.Unmarshal(theirs, &want) != nil || json.Unmarshal(d.JSON, &got) != nil {
				t.Errorf("%s: not JSON", d.At)
				continue
			}
			if !reflect.DeepEqual(want, got) && len(documents) == 1 {
				t.Errorf("%s: %s", d.At, cmp.Diff(want, got))
			}
		}
	}
	t.Logf("%d files", len(files))
}
