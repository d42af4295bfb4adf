package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/safetext"
)

const example = `---
schema: olm.package
name: example
defaultChannel: stable
x-unknown: 9007199254740993
---
schema: olm.channel
package: example
name: stable
entries:
- name: example.v1.0.0
- name: example.v1.1.0
  replaces: example.v1.0.0
  skips: [example.v1.0.1]
  skipRange: ">=1.0.0 <1.1.0"
---
{"schema": "olm.bundle", "package": "example", "name": "example.v1.1.0", "image": "i", "properties": [
  {"type": "olm.package", "value": {"packageName": "example", "version": "1.1.0"}}]}
---
schema: olm.bundle
package: example
name: example.v1.0.0
image: registry.example.com/example@sha256:0123456789012345678901234567890123456789012345678901234567890123
properties:
- type: olm.package
  value: {packageName: example, version: 1.0.0}
---
schema: olm.deprecations
package: example
entries:
- reference: {schema: olm.bundle, name: example.v1.0.0}
  message: old
`

func TestLoadModel(t *testing.T) {
	c := Parse("catalog.yaml", []byte(example))
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	p := c.Find("example")
	if p == nil || p.DefaultChannel != "stable" || p.At.String() != "catalog.yaml:2:1" {
		t.Fatalf("package: %+v", p)
	}
	e := p.Channel("stable").Entry("example.v1.1.0")
	want := Entry{Name: "example.v1.1.0", Replaces: "example.v1.0.0", Skips: []string{"example.v1.0.1"}, SkipRange: ">=1.0.0 <1.1.0", Index: 1, At: e.At}
	if diff := cmp.Diff(want, *e); diff != "" {
		t.Error(diff)
	}
	for _, place := range []struct{ got, want string }{
		{e.At.String(), "catalog.yaml:12:3"},
		{p.Channel("stable").Document.Place("entries", 1, "skipRange").String(), "catalog.yaml:15:3"},
		{p.Bundle("example.v1.1.0").At.String(), "catalog.yaml:17:1"},
		{p.Bundle("example.v1.1.0").Document.Place("properties", 0, "value", "version").String(), "catalog.yaml:18:63"},
		{p.Deprecations[0].At.String(), "catalog.yaml:31:3"},
		{p.Document.Place("x-unknown").String(), "catalog.yaml:5:1"},
	} {
		if place.got != place.want {
			t.Errorf("place: got %s, want %s", place.got, place.want)
		}
	}
	if p.Bundles[0].Version.String() != "1.0.0" || p.Bundles[1].Version.String() != "1.1.0" {
		t.Errorf("bundles are not by version: %s, %s", p.Bundles[0].Name, p.Bundles[1].Name)
	}
}

// TestWriteRoundTrip writes a catalog in each format and reads it back to the same documents.
func TestWriteRoundTrip(t *testing.T) {
	tricky := `{"schema":"olm.package","name":"p","defaultChannel":"c","x":{"yes":"yes","n":"no","i":"012","o":"0o14","u":"1_000","e":"1e3","d":"2001-01-01","t":"a\nb\n","s":" lead","c":"a: b # c","q":"'\"","b":true,"z":null,"f":1.10,"big":18446744073709551617,"neg":-9223372036854775808,"l":[],"m":{},"nl":"\n","tab":"a\tb","uni":"ü\u0007","hex":"0x10","sex":"1:20","tilde":"~","dot":".5","inf":".inf","merge":{"<<":"x"}}}` + "\n"
	for _, text := range []string{example, tricky} {
		want := Parse("want", []byte(text))
		if err := want.Err(); err != nil {
			t.Fatal(err)
		}
		for _, format := range Formats {
			var b bytes.Buffer
			if err := Write(&b, format, want.Documents); err != nil {
				t.Fatal(err)
			}
			got := Parse("got", b.Bytes())
			if err := got.Err(); err != nil {
				t.Fatalf("%v\n%s", err, b.String())
			}
			for i, d := range want.Documents {
				if a, b := compact(t, d.JSON), compact(t, got.Documents[i].JSON); a != b {
					t.Errorf("%s: %s", format, cmp.Diff(a, b))
				}
			}
		}
	}
}

func compact(t *testing.T, raw []byte) string {
	t.Helper()
	object, err := readObject(raw)
	if err != nil {
		t.Fatal(err)
	}
	out, err := writeObject(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestSorted(t *testing.T) {
	c := Parse("f", []byte(`{"schema":"zz.other"}
{"schema":"olm.deprecations","package":"a"}
{"schema":"olm.bundle","package":"b","name":"b.v1"}
{"schema":"olm.bundle","package":"a","name":"a.v10","properties":[{"type":"olm.package","value":{"version":"10.0.0"}}]}
{"schema":"olm.bundle","package":"a","name":"a.v9","properties":[{"type":"olm.package","value":{"version":"9.0.0"}}]}
{"schema":"my.schema","package":"a","name":"m"}
{"schema":"olm.channel","package":"a","name":"z"}
{"schema":"olm.channel","package":"a","name":"c"}
{"schema":"olm.package","name":"a"}`))
	var got []string
	for _, d := range c.Sorted() {
		got = append(got, d.Package+" "+d.Schema+" "+d.Name)
	}
	want := []string{"a olm.package a", "a olm.channel c", "a olm.channel z", "a olm.bundle a.v9", "a olm.bundle a.v10", "a my.schema m", "a olm.deprecations ", "b olm.bundle b.v1", " zz.other "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLoadDirectory(t *testing.T) {
	file := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("schema: x.y\nname: " + name + "\n")}
	}
	fsys := fstest.MapFS{
		"a.yaml":                &fstest.MapFile{Data: []byte("schema: x.y\nname: a1\n---\nschema: x.y\nname: a2\n")},
		"sub/b.json":            &fstest.MapFile{Data: []byte(`{"schema":"x.y","name":"b"}`)},
		"sub/.hidden/c.yaml":    file("c"),
		".indexignore":          &fstest.MapFile{Data: []byte("# not these\n*.md\n/ignored\ntemplate.yaml\n!kept/template.yaml\n")},
		"README.md":             &fstest.MapFile{Data: []byte("# {not a catalog")},
		"ignored/x.yaml":        file("x"),
		"sub/ignored/y.yaml":    file("why"),
		"template.yaml":         file("template"),
		"sub/template.yaml":     file("template"),
		"kept/template.yaml":    file("kept"),
		"nested/.indexignore":   &fstest.MapFile{Data: []byte("z.yaml\n")},
		"nested/z.yaml":         file("z"),
		"other/z.yaml":          file("z"),
		"empty.yaml":            &fstest.MapFile{},
		"comment.yaml":          &fstest.MapFile{Data: []byte("# nothing\n---\n")},
		"nested/deep/down.yaml": file("down"),
	}
	t.Chdir(t.TempDir())
	if err := os.CopyFS("cat", fsys); err != nil {
		t.Fatal(err)
	}
	c, err := Load(t.Context(), nil, "cat")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range c.Documents {
		got = append(got, d.Name+" "+d.At.String())
	}
	want := []string{
		"a1 cat/a.yaml:1:1", "a2 cat/a.yaml:4:1", "kept cat/kept/template.yaml:1:1", "down cat/nested/deep/down.yaml:1:1",
		"z cat/other/z.yaml:1:1", "c cat/sub/.hidden/c.yaml:1:1", "b cat/sub/b.json:1:1", "why cat/sub/ignored/y.yaml:1:1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty/.keep": "", "bundle/manifests/x.yaml": "kind: X\nmetadata: {name: x}\n", "bundle/metadata/annotations.yaml": "annotations: {operators.operatorframework.io.bundle.package.v1: p}\n"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "large.yaml"), bytes.Repeat([]byte("---\n"), leastSparse/3), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.CopyFS(filepath.Join(dir, "linked"), os.DirFS(filepath.Join(dir, "bundle"))), os.Symlink(filepath.Join(dir, "large.yaml"), filepath.Join(dir, "linked/manifests/y.yaml"))); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, ref, want string }{
		{"nothing there", "missing", "no such file"},
		{"no documents", "empty", "it holds no documents"},
		{"bundle without CSV", "bundle", "holds no ClusterServiceVersion"},
		{"a large file without documents", "large.yaml", "it holds no documents"},
		{"a link out of a bundle", "linked", "leads out of its folder"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Load(t.Context(), nil, filepath.Join(dir, test.ref))
			if err == nil || !strings.Contains(err.Error(), test.want) || hint.Of(err) == "" {
				t.Errorf("got %v (fix %q), want %s", err, hint.Of(err), test.want)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"syntax", "schema: x\n a: b\n", "FBC001 f:2:2 the file is neither YAML nor JSON: mapping values are not allowed in this context"},
		{"no schema", "---\nname: x\n", "FBC002 f:2:1 the document has no schema"},
		{"not a mapping", "- a\n", "FBC003 f:1:1 the document is a list where a mapping belongs"},
		{"schema is a number", "name: x\nschema: 1\n", "FBC003 f:2:1 schema is a number where a string belongs"},
		{"entry's field", "schema: olm.channel\npackage: p\nname: c\nentries:\n- name: a\n- name: b\n  skips: a\n", "FBC003 f:7:3 skips is a string where a list belongs"},
		{"entries", "schema: olm.channel\npackage: p\nname: c\nentries: x\n", "FBC003 f:4:1 entries is a string where a list belongs"},
		{"version is a number", "schema: olm.bundle\npackage: p\nname: b\nimage: 1\n", "FBC003 f:4:1 image is a number where a string belongs"},
		{"deprecation", "schema: olm.deprecations\npackage: p\nentries:\n- message: [a]\n", "FBC003 f:3:1 entries.message is a list where a string belongs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Parse("f", []byte(test.text))
			if len(c.Problems) != 1 {
				t.Fatalf("%d problems: %v", len(c.Problems), c.Problems)
			}
			p := c.Problems[0]
			if got := p.Code + " " + p.Location.String() + " " + p.Message; got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
			if c.Err() == nil || hint.Of(c.Err()) == "" {
				t.Errorf("no error with a fix: %v", c.Err())
			}
		})
	}
}

// FuzzParse: no text makes the loader panic, and what it loads it writes, so that terminals only show it, and reads back the
// same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(`{"schema":"olm.channel","package":"p","entries":[{"skips":null}]}`))
	f.Add([]byte("schema: olm.bundle\npackage: p\nproperties: [{type: olm.bundle.object, value: {data: e30=}}]"))
	f.Add([]byte(`{"schema":"olm.package","name":"p\u202e","description":"a \u200b\u2028\n ::error::x\n##[error]y\ufeff","x":["\u001b[2J","\udb40\udc41"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := Parse("f", data)
		for _, p := range c.Packages {
			for _, b := range p.Bundles {
				_, _ = b.Objects()
				_, _ = b.CSV()
				_, _ = b.CRDs()
			}
			for _, ch := range p.Channels {
				for _, e := range ch.Entries {
					_, _ = Trim(p, ch.Name, e.Name)
				}
			}
		}
		if c.Err() != nil {
			return
		}
		for _, format := range Formats {
			var b bytes.Buffer
			if err := Write(&b, format, c.Sorted()); err != nil {
				t.Fatal(err)
			}
			checkShown(t, b.String())
			again := Parse("g", b.Bytes())
			if len(again.Documents) != len(c.Documents) {
				t.Fatalf("%d documents written as %s, %d read", len(c.Documents), format, len(again.Documents))
			}
			for i, d := range c.Sorted() {
				var want, got any
				if json.Unmarshal(d.JSON, &want) != nil || json.Unmarshal(again.Documents[i].JSON, &got) != nil || !reflect.DeepEqual(got, want) {
					t.Fatalf("%s was written as %s and read as %s:\n%s", d.JSON, format, again.Documents[i].JSON, b.Bytes())
				}
			}
		}
	})
}

// checkShown fails the test if a terminal or a CI server would do anything with text but show it.
func checkShown(t *testing.T, text string) {
	t.Helper()
	if strings.ContainsFunc(text, func(r rune) bool { return !safetext.Shown(r) }) || strings.Contains(text, "##[") {
		t.Errorf("it is not harmless: %q", text)
	}
	for line := range strings.Lines(text) {
		if safetext.Text(strings.TrimSpace(line)) != strings.TrimSpace(line) && strings.HasPrefix(strings.TrimSpace(line), "::") {
			t.Errorf("a CI server obeys %q", line)
		}
	}
}

// FuzzBuild: no template makes the builder panic, and what it builds is a catalog without errors of form.
func FuzzBuild(f *testing.F) {
	f.Add([]byte("schema: olmkit.template\npackage: p\nbundles: [b]\nchannels: {c: [0.1.0, {version: 0.2.0, skips: [0.1.0], replaces: \"\"}]}\n"))
	f.Add([]byte("schema: olmkit.template\npackage: p\nicon: ../a.svg\nchannels: {c: [], d: [{}]}\ndeprecations: [{bundle: x, message: y}]\n"))
	f.Add([]byte("schema: olm.semver\ngenerateMajorChannels: true\nstable: {bundles: [{image: ./b}]}\n"))
	f.Add([]byte("schema: olm.template.basic\nentries: [{schema: olm.package, name: p}, {schema: olm.bundle, image: ./b}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "template.yaml")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if strings.Contains(string(data), "image") || strings.Contains(string(data), ".") {
			cancel() // it may name a registry
		}
		defer cancel()
		c, err := Build(ctx, file)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := Write(&b, "yaml", c.Documents); err != nil {
			t.Fatal(err)
		}
	})
}
