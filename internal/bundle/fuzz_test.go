package bundle

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/olmkit/olmkit/internal/document"
)

// FuzzText: a string that is written as YAML is the same string to the Kubernetes tools, whatever it looks like.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"", "yes", "on", "y", "0x1f", "1_000", "1.5", "1e3", "~", "null", ".inf", "-", "- a", "a: b", "# c", "'", "\"", "|", ">", "a\nb", "a\n", " a ",
		"2020-01-01", "1:30", "012", "0o7", "<<", "=", "é", "a\tb", "a #b", "{a}", "[a]", "&a", "*a", "!a", "%a", "@a", "`a", "?", "? a", "---", "...", "--- a", "\ufeffa", "a\rb", "\x7f", "\t\n", "\n \ta\nb", "a\n\tb",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return // JSON and YAML are UTF-8, and so is all that was read
		}
		written := encode(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{text("key"), text(s), text("other"), text("x")}})
		documents, err := document.Parse("f", written)
		if err != nil || len(documents) != 1 {
			t.Fatalf("%q is written as %q: %v", s, written, err)
		}
		var got struct{ Key string }
		if err := json.Unmarshal(documents[0].JSON, &got); err != nil || got.Key != s {
			t.Fatalf("%q is written as %q and read as %q (%v)", s, written, got.Key, err)
		}
	})
}

// FuzzGenerate: no manifests make the generator panic, and what it makes can be read.
func FuzzGenerate(f *testing.F) {
	inputs, err := Inputs("testdata/cafe/config/manifests", nil)
	if err != nil {
		f.Fatal(err)
	}
	var all bytes.Buffer
	for _, input := range inputs {
		written := encode(nodeOfJSON(input.JSON))
		f.Add(written)
		all.WriteString("---\n")
		all.Write(written)
	}
	f.Add(all.Bytes())
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[null,{},[]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := Inputs("-", bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, conversion := range []Conversion{ConversionKeep, ConversionStrip} {
			made, err := Generate(found, nil, Options{Package: "p", Version: semver.MustParse("1.0.0"), Conversion: conversion})
			if err != nil {
				continue
			}
			for name, content := range made.Files {
				if name == "bundle.Dockerfile" {
					continue
				}
				if _, err := document.Parse(name, content); err != nil {
					t.Errorf("%s cannot be read: %v\n%s", name, err, content)
				}
			}
		}
	})
}

// FuzzRead: a bundle of any bytes is read or refused.
func FuzzRead(f *testing.F) {
	made, err := Inputs("testdata/cafe/bundle/manifests/cafe-operator.clusterserviceversion.yaml", nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encode(nodeOfJSON(made[0].JSON)), []byte("annotations:\n  "+AnnotationPackage+": cafe\ndependencies: [{type: olm.gvk, value: {kind: A}}]\n"))
	f.Add([]byte("kind: ClusterServiceVersion\n---\nkind: ClusterServiceVersion\n"), []byte(`{"annotations": {"a": 1, "b": null}}`))
	f.Add([]byte("metadata: []\nkind: x"), []byte("annotations: []"))
	f.Fuzz(func(t *testing.T, manifest, metadata []byte) {
		b, err := ReadFS(fstest.MapFS{
			"manifests/a.yaml": {Data: manifest}, "manifests/b.txt": {Data: manifest}, "metadata/annotations.yaml": {Data: metadata},
		}, "bundle")
		if err != nil {
			return
		}
		b.CSV()
		for _, m := range b.Manifests {
			m.Document.Place("spec", "install", 0)
			m.Document.Duplicates()
		}
	})
}

// FuzzMergeAnnotations: whatever annotations.yaml holds, it keeps what is not ours, says what is, and stays so.
func FuzzMergeAnnotations(f *testing.F) {
	const ours = "annotations:\n  " + AnnotationPackage + ": cafe\n  " + AnnotationChannels + ": stable\n"
	f.Add([]byte("# ours\nannotations:\n  com.example.versions: v4.12 # kept\n  " + AnnotationPackage + ": old\n"))
	f.Add([]byte("annotations: &a {x: *a}\n"))
	f.Add([]byte("annotations:\n- a\n"))
	f.Add([]byte("{annotations: {a: b}, other: [1]}"))
	f.Fuzz(func(t *testing.T, old []byte) {
		merged, err := mergeAnnotations(old, []byte(ours))
		if err != nil {
			return
		}
		again, err := mergeAnnotations(merged, []byte(ours))
		if err != nil {
			t.Fatalf("%q becomes %q, which cannot be read: %v", old, merged, err)
		}
		if diff := cmp.Diff(string(merged), string(again)); diff != "" {
			t.Errorf("the second time it is another (-first +second):\n%s", diff)
		}
		if !strings.Contains(string(merged), AnnotationPackage) {
			t.Errorf("the package is not there: %q", merged)
		}
	})
}
