package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/safetext"
)

// Change is one difference between two catalogs.
type Change struct {
	Kind    string `json:"kind"` // added, removed or changed
	Package string `json:"package"`
	Channel string `json:"channel,omitempty"`
	Bundle  string `json:"bundle,omitempty"` // with a channel, an entry of it
	Field   string `json:"field,omitempty"`  // of what changed
	Old     string `json:"old,omitempty"`
	New     string `json:"new,omitempty"`
}

// Kinds of changes.
const (
	ChangeAdded   = "added"
	ChangeRemoved = "removed"
	ChangeChanged = "changed"
)

// Diff returns what changed from before to after: packages, then channels and their entries with their edges, bundles and
// deprecations, each by name. Of a package or channel that came or went only that is said.
func Diff(before, after *Catalog) []Change {
	changes := []Change{}
	were, are := map[string]*Package{}, map[string]*Package{}
	for _, p := range before.Packages {
		were[p.Name] = p
	}
	for _, p := range after.Packages {
		are[p.Name] = p
	}
	for _, name := range union(were, are) {
		d := differ{Package: name}
		if d.presence(were[name] != nil, are[name] != nil) {
			d.packages(were[name], are[name])
			d.others(before, after)
		}
		changes = append(changes, d.changes...)
	}
	return changes
}

// others compares the package's documents of schemas that olmkit does not know, and its fields that it does not know.
func (d *differ) others(before, after *Catalog) {
	were, are := d.opaque(before), d.opaque(after)
	for _, name := range union(were, are) {
		was, is := were[name], are[name]
		switch {
		case was == "":
			d.add(Change{Kind: ChangeAdded, Field: name})
		case is == "":
			d.add(Change{Kind: ChangeRemoved, Field: name})
		case was != is:
			d.add(Change{Kind: ChangeChanged, Field: name})
		}
	}
}

// compared are the fields of documents whose changes are told one by one.
var compared = map[string][]string{
	SchemaPackage:      {"schema", "name", "defaultChannel"},
	SchemaChannel:      {"schema", "package", "name", "entries"},
	SchemaBundle:       {"schema", "package", "name", "image", "properties", "relatedImages"},
	SchemaDeprecations: {"schema", "package", "name", "entries"},
}

// opaque returns what is in the package's documents that is told of by its name only, by that name.
func (d *differ) opaque(c *Catalog) map[string]string {
	all := map[string]string{}
	for _, document := range c.Documents {
		if document.Package != d.Package {
			continue
		}
		known, ok := compared[document.Schema]
		if !ok {
			all[strings.TrimSpace("document "+document.Schema+" "+document.Name)] += canonical(document.JSON)
			continue
		}
		fields, err := readObject(document.JSON)
		if err != nil {
			continue // no object: a problem of the catalog
		}
		for _, f := range fields {
			if slices.Contains(known, f.name) {
				continue
			}
			name := f.name
			if document.Schema != SchemaPackage {
				name = fmt.Sprintf("%s of %s", f.name, strings.TrimPrefix(document.Schema, "olm.")+" "+document.Name)
			}
			all[name] += canonical(f.value)
		}
	}
	return all
}

// canonical renders JSON without space and with fields in order.
func canonical(raw json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return string(raw)
	}
	text, err := encode(v)
	if err != nil {
		return string(raw)
	}
	return string(text)
}

func union[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// differ gathers the changes of one package; Package, Channel and Bundle are where it is.
type differ struct {
	Package, Channel, Bundle string
	changes                  []Change
}

func (d *differ) add(c Change) {
	c.Package, c.Channel, c.Bundle = d.Package, d.Channel, d.Bundle
	d.changes = append(d.changes, c)
}

// presence reports whether the thing is in both catalogs.
func (d *differ) presence(was, is bool) bool {
	switch {
	case was && !is:
		d.add(Change{Kind: ChangeRemoved})
	case is && !was:
		d.add(Change{Kind: ChangeAdded})
	}
	return was && is
}

func (d *differ) field(name, old, new string) {
	if old != new {
		d.add(Change{Kind: ChangeChanged, Field: name, Old: old, New: new})
	}
}

func (d *differ) packages(old, new *Package) {
	d.field("defaultChannel", old.DefaultChannel, new.DefaultChannel)
	d.field("deprecation", old.Deprecation(SchemaPackage, ""), new.Deprecation(SchemaPackage, ""))
	were, are := map[string]*Channel{}, map[string]*Channel{}
	for _, c := range old.Channels {
		were[c.Name] = c
	}
	for _, c := range new.Channels {
		are[c.Name] = c
	}
	for _, name := range union(were, are) {
		d.Channel = name
		if d.presence(were[name] != nil, are[name] != nil) {
			d.field("deprecation", old.Deprecation(SchemaChannel, name), new.Deprecation(SchemaChannel, name))
			d.entries(were[name], are[name])
		}
	}
	d.Channel = ""
	d.bundles(old, new)
}

func (d *differ) entries(old, new *Channel) {
	were, are := map[string]*Entry{}, map[string]*Entry{}
	for i := range old.Entries {
		were[old.Entries[i].Name] = &old.Entries[i]
	}
	for i := range new.Entries {
		are[new.Entries[i].Name] = &new.Entries[i]
	}
	for _, name := range union(were, are) {
		d.Bundle = name
		if were[name] == nil {
			d.add(Change{Kind: ChangeAdded, New: edges(are[name])})
			continue
		}
		if d.presence(true, are[name] != nil) {
			d.field("replaces", were[name].Replaces, are[name].Replaces)
			d.field("skips", strings.Join(were[name].Skips, ", "), strings.Join(are[name].Skips, ", "))
			d.field("skipRange", were[name].SkipRange, are[name].SkipRange)
		}
	}
	d.Bundle = ""
}

// edges says which edges end at an entry.
func edges(e *Entry) string {
	var list []string
	if e.Replaces != "" {
		list = append(list, "replaces "+e.Replaces)
	}
	if len(e.Skips) > 0 {
		list = append(list, "skips "+strings.Join(e.Skips, ", "))
	}
	if e.SkipRange != "" {
		list = append(list, "skipRange "+e.SkipRange)
	}
	return strings.Join(list, "; ")
}

func (d *differ) bundles(old, new *Package) {
	were, are := map[string]*Bundle{}, map[string]*Bundle{}
	for _, b := range old.Bundles {
		were[b.Name] = b
	}
	for _, b := range new.Bundles {
		are[b.Name] = b
	}
	for _, name := range union(were, are) {
		d.Bundle = name
		if !d.presence(were[name] != nil, are[name] != nil) {
			continue
		}
		d.field("deprecation", old.Deprecation(SchemaBundle, name), new.Deprecation(SchemaBundle, name))
		d.field("version", were[name].Version.String(), are[name].Version.String())
		d.field("image", were[name].Image, are[name].Image)
		had, has := properties(were[name]), properties(are[name])
		for _, kind := range union(had, has) {
			if !slices.Equal(had[kind], has[kind]) {
				d.add(Change{Kind: ChangeChanged, Field: "properties of type " + kind})
			}
		}
		if !slices.Equal(were[name].RelatedImages, are[name].RelatedImages) {
			d.add(Change{Kind: ChangeChanged, Field: "relatedImages"})
		}
	}
	d.Bundle = ""
}

// properties returns the bundle's properties by type, sorted and in one form.
func properties(b *Bundle) map[string][]string {
	all := map[string][]string{}
	for _, p := range b.Properties {
		all[p.Type] = append(all[p.Type], canonical(p.Value))
	}
	for _, values := range all {
		slices.Sort(values)
	}
	return all
}

// Deprecation returns the message with which the package deprecates a bundle or channel, "" where it does not.
func (p *Package) Deprecation(schema, name string) string {
	for _, d := range p.Deprecations {
		if d.Schema == schema && d.Name == name {
			return strings.TrimSpace(d.Message)
		}
	}
	return ""
}

// WriteDiff writes changes as text, a line each: + came, - went, ~ changed.
func WriteDiff(w io.Writer, changes []Change) error {
	marks := map[string]string{ChangeAdded: "+", ChangeRemoved: "-", ChangeChanged: "~"}
	for _, c := range changes {
		line := marks[c.Kind] + " package " + c.Package
		if c.Channel != "" {
			line += ", channel " + c.Channel
		}
		switch {
		case c.Bundle != "" && c.Channel != "":
			line += ", entry " + c.Bundle
		case c.Bundle != "":
			line += ", bundle " + c.Bundle
		}
		if c.Field != "" {
			line += ": " + c.Field
		}
		switch {
		case c.Kind == ChangeAdded && c.New != "":
			line += ": " + c.New
		case c.Old != "" || c.New != "":
			line += fmt.Sprintf(" %s → %s", orNone(c.Old), orNone(c.New))
		}
		if _, err := fmt.Fprintln(w, safetext.Line(line)); err != nil {
			return err
		}
	}
	return nil
}

func orNone(text string) string {
	if text == "" {
		return "(none)"
	}
	return text
}
