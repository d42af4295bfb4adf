package catalog

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// inlineBundle is a bundle's document, with these olm.bundle.object properties beside that of its package.
func inlineBundle(n int, properties ...string) string {
	all := append([]string{fmt.Sprintf(`{"type": "olm.package", "value": {"packageName": "p", "version": "1.0.%d"}}`, n)}, properties...)
	return fmt.Sprintf("{\n  \"schema\": \"olm.bundle\", \"package\": \"p\", \"name\": \"p.v1.0.%d\", \"image\": \"\",\n  \"unknown\": {\"olm.bundle.object\": 1},\n  \"properties\": [\n    %s\n  ]\n}\n",
		n, strings.Join(all, ",\n    "))
}

// asYAML is a catalog as olmkit and opm write it in YAML.
func asYAML(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	if err := Write(&out, "yaml", Parse("f", []byte(text)).Documents); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// inlineObject is a property that holds a ConfigMap of about so many bytes.
func inlineObject(name string, size int) string {
	manifest := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %q}, "data": {"text": %q}}`, name, strings.Repeat("text ", size/5))
	return fmt.Sprintf(`{"type": "olm.bundle.object", "value": {"data": %q}}`, base64.StdEncoding.EncodeToString([]byte(manifest)))
}

// seenOf is all that is told of a catalog, and of its bundles the manifests, whatever is held.
func seenOf(t *testing.T, c *Catalog) (lines []string) {
	t.Helper()
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, p := range c.Problems {
		say("%s %s %s", p.Code, p.Location, p.Message)
	}
	for _, d := range c.Documents {
		say("%s %s %s at %s: %d bytes, %s, twice %v", d.Schema, d.Package, d.Name, d.At, d.Size(), d.Place("properties", 2, "value", "data"), d.Source.Duplicates())
	}
	for _, p := range c.Packages {
		for _, b := range p.Bundles {
			say("%s %s %d properties, at %s, texts", b.Name, b.Version, len(b.Properties), b.Document.Place("properties", 1))
			for _, text := range b.Texts() {
				say("%d bytes", text.Size)
			}
			for _, property := range b.Properties {
				say("%s", property.Type)
			}
			objects, err := b.Objects()
			say("%v", err)
			for _, o := range objects {
				say("%s", o)
			}
			for number := range 5 {
				objects, err := b.ObjectsAt(number)
				say("property %d: %v, %s", number, err, objects)
			}
			for i := range b.Properties {
				say("property %d has its data at %s", i, b.PlaceOfData(i))
			}
		}
	}
	return lines
}

// A sparse catalog says all that the whole one does, and holds little of it.
func TestLoadSparse(t *testing.T) {
	t.Parallel()
	big := inlineObject("big", 300_000)
	for name, test := range map[string]struct {
		text  string
		holds int // bytes at most
	}{
		"as opm writes it": {inlineBundle(1, big, inlineObject("small", 10)) + inlineBundle(2, big) + inlineBundle(3, big), 3_000},
		"in one line":      {strings.ReplaceAll(inlineBundle(1, big, big)+inlineBundle(2, big), "\n", " "), 3_000},
		"with its channels": {
			`{"schema": "olm.package", "name": "p", "defaultChannel": "stable"}` + inlineBundle(1, big, big, big) +
				`{"schema": "olm.channel", "package": "p", "name": "stable", "entries": [{"name": "p.v1.0.1"}]} {"name": "none"}`, 3_000,
		},
		"a key twice":         {inlineBundle(1, big, strings.Replace(big, `"type"`, `"type": "x", "type"`, 1)) + inlineBundle(2, big), 2_000_000},
		"no base64":           {inlineBundle(1, big, big, strings.Replace(big, `"data": "e`, `"data": "!`, 1)), 1_000_000},
		"another field":       {inlineBundle(1, big, big, strings.Replace(big, `"data"`, `"ref": "x", "data"`, 1)), 1_000_000},
		"data is no text":     {inlineBundle(1, big, big, big, `{"type": "olm.bundle.object", "value": {"data": 1}}`), 3_000},
		"properties are none": {inlineBundle(1, big, big, big, `1, "x", null, []`), 3_000},
		"of another type":     {inlineBundle(1, big, big, strings.Replace(big, "olm.bundle.object", "olm.bundle.objects", 1)), 1_000_000},
		"YAML":                {asYAML(t, inlineBundle(1, big, inlineObject("small", 10))+inlineBundle(2, big)+inlineBundle(3, big)+`{"schema": "olm.package", "name": "p"}`), 3_000},
		"YAML by hand":        {"# as YAML\n" + asYAML(t, inlineBundle(1, big)) + "# next\n" + asYAML(t, inlineBundle(2, big, big)), 3_000},
		"YAML in one line":    {"# as YAML\n" + inlineBundle(1, big, big, big), 3_000_000},
		"broken":              {inlineBundle(1, big, big, big) + "}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "catalog.json"), []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if len(test.text) < leastSparse {
				t.Fatalf("it has only %d bytes", len(test.text))
			}
			for _, ref := range []string{dir, filepath.Join(dir, "catalog.json")} {
				whole, err := Load(t.Context(), nil, ref)
				if err != nil {
					t.Fatal(err)
				}
				c, err := Loader{}.LoadSparse(t.Context(), ref)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(seenOf(t, whole), seenOf(t, c)); diff != "" {
					t.Error(diff)
				}
				if err := c.Changed(); err != nil {
					t.Error(err)
				}
				held := 0
				for _, d := range c.Documents {
					held += cap(d.JSON)
				}
				if held > test.holds {
					t.Errorf("%d bytes are held", held)
				}
			}
		})
	}
}

// changed returns the sparse catalog of a file with text, which change changes after it was read.
func changed(t *testing.T, text string, change func(file string) error) *Catalog {
	t.Helper()
	file := filepath.Join(t.TempDir(), "catalog.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Loader{}.LoadSparse(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if err := change(file); err != nil {
		t.Fatal(err)
	}
	return c
}

// Of a file that changed, nothing is told that is not so.
func TestSparseChanged(t *testing.T) {
	t.Parallel()
	text := inlineBundle(1, inlineObject("big", 800_000)) + inlineBundle(2)
	for name, change := range map[string]func(file string) error{
		"written anew": func(file string) error {
			return os.WriteFile(file, []byte(strings.Replace(text, `"data": "eyJhcGl`, `"data": "eyJhcGk`, 1)), 0o600)
		},
		"cut": func(file string) error { return os.Truncate(file, 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := changed(t, text, change)
			b := c.Packages[0].Bundle("p.v1.0.1")
			if err := c.Changed(); err != nil {
				t.Errorf("nobody asked yet, and it says %v", err)
			}
			if objects, err := b.Objects(); err == nil {
				t.Errorf("it still has %d objects", len(objects))
			}
			if at := b.Document.Place("properties", 1); at != b.At {
				t.Errorf("the property is at %s", at)
			}
			if err := c.Changed(); err == nil || !strings.Contains(err.Error(), "catalog.json changed while it was read") {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// What another file replaces is read as it was.
func TestSparseReplaced(t *testing.T) {
	t.Parallel()
	text := inlineBundle(1, inlineObject("big", 800_000))
	for name, replace := range map[string]func(file string) error{
		"by another file": func(file string) error {
			return errors.Join(os.WriteFile(file+".new", []byte("{}"), 0o600), os.Rename(file+".new", file))
		},
		"by a pipe":  func(file string) error { return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)) },
		"by nothing": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := changed(t, text, replace)
			if objects, err := c.Packages[0].Bundles[0].Objects(); err != nil || len(objects) != 1 || c.Changed() != nil {
				t.Errorf("%d objects (%v, %v)", len(objects), err, c.Changed())
			}
		})
	}
}

// What stdin says is held.
func TestSparseElsewhere(t *testing.T) {
	t.Parallel()
	text := inlineBundle(1, inlineObject("big", 800_000))
	c, err := Loader{Stdin: strings.NewReader(text)}.LoadSparse(context.Background(), "-")
	if err != nil {
		t.Fatal(err)
	}
	if objects, err := c.Packages[0].Bundles[0].Objects(); err != nil || len(objects) != 1 {
		t.Errorf("%d objects (%v)", len(objects), err)
	}
}

func FuzzSparse(f *testing.F) {
	f.Add([]byte(inlineBundle(1, inlineObject("a", 10))))
	f.Add([]byte(`{"schema": "olm.bundle", "properties": [{"type": "olm.bundle.object", "value": {"data": "e30="}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) || !bytes.HasPrefix(text, []byte("{")) {
			return
		}
		short, held := withoutData(text)
		if !json.Valid(short) {
			t.Fatalf("%q became %q", text, short)
		}
		whole, rest := parseFile("f", text), parseFile("f", short)
		lost := slices.ContainsFunc(held, func(one heldText) bool { return one.Size > 0 })
		if (len(short) < len(text)) != lost {
			t.Fatalf("%q became %q, of which is told %v", text, short, held)
		}
		messages := func(p parsed) (all []string) {
			for _, one := range p.problems {
				all = append(all, one.Message)
			}
			return all
		}
		if diff := cmp.Diff(messages(whole), messages(rest)); diff != "" {
			t.Fatal(diff)
		}
	})
}
