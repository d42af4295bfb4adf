package bundle

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/blang/semver/v4"
	"go.yaml.in/yaml/v3"

	"github.com/olmkit/olmkit/internal/document"
)

// FuzzText: a string that is written as YAML is the same string to the Kubernetes tools, whatever it looks like.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"", "yes", "on", "y", "0x1f", "1_000", "1.5", "1e3", "~", "null", ".inf", "-", "- a", "a: b", "# c", "'", "\"", "|", ">", "a\nb", "a\n", " a ",
		"2020-01-01", "1:30", "012", "0o7", "<<", "=", "é", "a\tb", "a #b", "{a}", "[a]", "&a", "*a", "!a", "%a", "@a", "`a", "?", "? a", "---", "...", "--- a", "\ufeffa", "a\rb", "\x7f",
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
