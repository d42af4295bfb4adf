package catalog

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/hint"
)

// Trim returns a catalog, as a stream of JSON documents, that holds of p exactly the bundles called names, with all
// manifests inline, in one channel of the same name, which is the default channel. The last name is the channel's head. Bundles that are
// Large keep their images.
// Of the entries' edges those among names remain, so that OLM, coming from one of the others, has no choice but the very
// edge to the head. An entry that the head neither replaces nor skips, directly or by a chain, would make OLM refuse the
// channel (operator-lifecycle-manager v0.46.0, resolver.go, sortChannel), and is left out: what is installed need not be
// in the catalog to be left by a skipRange.
func Trim(p *Package, channel string, names ...string) ([]byte, error) {
	entries, err := headed(p, channel, names, names)
	if err != nil {
		return nil, err
	}
	return trimmed(p, trimmedChannel{channel, entries})
}

// TrimSwitch returns a catalog as Trim does for who changes the channel of a Subscription: the first of names is installed from
// the channel called was, which has no other entry, and need not be in the new channel.
func TrimSwitch(p *Package, was, channel string, names ...string) ([]byte, error) {
	entries, err := headed(p, channel, names, names[1:])
	if err != nil {
		return nil, err
	}
	return trimmed(p, trimmedChannel{channel, entries}, trimmedChannel{was, []trimmedEntry{{Name: names[0]}}})
}

// headed returns the entries of a channel called names, as Trim does; those called needed must be there.
func headed(p *Package, channel string, names, needed []string) ([]trimmedEntry, error) {
	c := p.Channel(channel)
	if c == nil {
		return nil, fmt.Errorf("trim package %s: it has no channel %s", p.Name, channel)
	}
	if len(needed) == 0 {
		return nil, fmt.Errorf("trim channel %s of package %s: no bundles named", channel, p.Name)
	}
	kept := map[string]bool{}
	for _, name := range names {
		if c.Entry(name) == nil && slices.Contains(needed, name) {
			return nil, fmt.Errorf("trim package %s: channel %s has no entry %s", p.Name, channel, name)
		}
		kept[name] = true
	}
	return trimEntries(c.Entries, reach(c, names[len(names)-1], kept)), nil
}

// Excerpt returns a catalog as Trim does, but with every bundle of names, also those that OLM leaves by a skipRange alone.
func Excerpt(p *Package, channel string, names ...string) ([]byte, error) {
	c := p.Channel(channel)
	if c == nil {
		return nil, fmt.Errorf("excerpt of package %s: it has no channel %s", p.Name, channel)
	}
	kept := map[string]bool{}
	for _, name := range names {
		kept[name] = true
	}
	return trimmed(p, trimmedChannel{channel, trimEntries(c.Entries, kept)})
}

// trimmed writes the catalog that holds of p the channels, and their bundles. The first channel is the default one.
func trimmed(p *Package, channels ...trimmedChannel) ([]byte, error) {
	var out bytes.Buffer
	pkg := json.RawMessage(fmt.Sprintf(`{"schema":%q}`, SchemaPackage))
	if p.Document != nil {
		pkg = p.Document.JSON
	}
	pkg, err := withField(pkg, "name", p.Name)
	if err == nil {
		pkg, err = withField(pkg, "defaultChannel", channels[0].name)
	}
	if err != nil {
		return nil, fmt.Errorf("trim package %s: %w", p.Name, err)
	}
	out.Write(append(pkg, '\n'))
	written := map[string]bool{}
	for _, c := range channels {
		trimmed, err := encode(struct {
			Schema  string         `json:"schema"`
			Name    string         `json:"name"`
			Package string         `json:"package"`
			Entries []trimmedEntry `json:"entries"`
		}{SchemaChannel, c.name, p.Name, c.entries})
		if err != nil {
			return nil, fmt.Errorf("trim channel %s of package %s: %w", c.name, p.Name, err)
		}
		out.Write(append(trimmed, '\n'))
		for _, e := range c.entries {
			if written[e.Name] {
				continue
			}
			written[e.Name] = true
			raw, err := trimmedBundle(p, c.name, e.Name)
			if err != nil {
				return nil, err
			}
			out.Write(append(raw, '\n'))
		}
	}
	return out.Bytes(), nil
}

func trimmedBundle(p *Package, channel, name string) (json.RawMessage, error) {
	b := p.Bundle(name)
	if b == nil {
		return nil, hint.With(fmt.Errorf("trim channel %s of package %s: the catalog has no bundle %s", channel, p.Name, name),
			"add the bundle to the catalog, or take the entry out of the channel")
	}
	return served(b)
}

// served returns the bundle's document as OLM is to read it: without an image, so that it takes the manifests from the catalog, unless
// it could not.
func served(b *Bundle) (json.RawMessage, error) {
	if b.Image != "" && b.Large() {
		return b.Document.JSON, nil
	}
	return inline(b)
}

// MostInline is how long the document of a bundle may be for OLM to take the manifests from it (bytes): OLM writes them into the status of an
// InstallPlan, as text within text, and etcd takes 1.5 MiB. From the bundle's image OLM takes them compressed, by a Job.
var MostInline = base64.StdEncoding.EncodedLen(1 << 20)

// Large reports whether the bundle has more manifests than OLM can take from a catalog.
func (b *Bundle) Large() bool { return len(b.Document.JSON) > MostInline }

// trimEntries returns those of entries that are reached, once each, without edges to others.
func trimEntries(all []Entry, reached map[string]bool) []trimmedEntry {
	var entries []trimmedEntry
	taken := map[string]bool{}
	for _, e := range all {
		if !reached[e.Name] || taken[e.Name] {
			continue
		}
		taken[e.Name] = true
		t := trimmedEntry{Name: e.Name, SkipRange: e.SkipRange}
		if reached[e.Replaces] && e.Replaces != e.Name {
			t.Replaces = e.Replaces
		}
		for _, s := range e.Skips {
			if reached[s] && s != e.Name {
				t.Skips = append(t.Skips, s)
			}
		}
		entries = append(entries, t)
	}
	return entries
}

type trimmedChannel struct {
	name    string
	entries []trimmedEntry
}

type trimmedEntry struct {
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces,omitempty"`
	Skips     []string `json:"skips,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
}

// reach returns those of kept that one comes to from head by replaces and skips among kept.
func reach(c *Channel, head string, kept map[string]bool) map[string]bool {
	reached := map[string]bool{}
	for next := []string{head}; len(next) > 0; {
		name := next[0]
		next = next[1:]
		if !kept[name] || reached[name] {
			continue
		}
		reached[name] = true
		if e := c.Entry(name); e != nil {
			next = append(append(next, e.Replaces), e.Skips...)
		}
	}
	return reached
}

// inline returns the bundle's document without an image, so that OLM takes the manifests from the catalog.
func inline(b *Bundle) (json.RawMessage, error) {
	if !b.Has(PropertyObject) {
		return nil, hint.With(fmt.Errorf("bundle %s (%s) carries no manifests, only the image %s", b.Name, b.At, b.Image),
			"render the bundle from its directory, so that the catalog holds its manifests as %s properties", PropertyObject)
	}
	raw, err := withField(b.Document.JSON, "image", "")
	if err != nil {
		return nil, fmt.Errorf("take bundle %s inline: %w", b.Name, err)
	}
	return raw, nil
}

// withField returns the JSON object raw with one field set; all else stays as it is.
func withField(raw json.RawMessage, name string, value any) (json.RawMessage, error) {
	object, err := readObject(raw)
	if err != nil {
		return nil, err
	}
	encoded, err := encode(value)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(object, func(f objectField) bool { return strings.EqualFold(f.name, name) })
	if at < 0 {
		object = append(object, objectField{name: name})
		at = len(object) - 1
	}
	object[at].value = encoded
	return writeObject(object)
}

// objectField is a field of a JSON object whose order matters.
type objectField struct {
	name  string
	value json.RawMessage
}

func readObject(raw json.RawMessage) ([]objectField, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	var object []objectField
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("%v is no field of a JSON object", token)
		}
		f := objectField{name: name}
		if err := decoder.Decode(&f.value); err != nil {
			return nil, err
		}
		object = append(object, f)
	}
	return object, nil
}

func writeObject(object []objectField) (json.RawMessage, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range object {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := encode(f.name)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(f.value)
	}
	b.WriteByte('}')
	var compact bytes.Buffer
	if err := json.Compact(&compact, b.Bytes()); err != nil {
		return nil, err
	}
	return compact.Bytes(), nil
}

// Whole returns a catalog, as a stream of JSON documents, that holds all of p: as Trim does, with the manifests of those bundles
// inline that carry them.
func Whole(p *Package) ([]byte, error) {
	var out bytes.Buffer
	documents := []*Document{p.Document}
	for _, c := range p.Channels {
		documents = append(documents, c.Document)
	}
	for _, d := range documents {
		if d != nil {
			out.Write(append(slices.Clip(d.JSON), '\n'))
		}
	}
	for _, b := range p.Bundles {
		raw := b.Document.JSON
		if b.Has(PropertyObject) {
			var err error
			if raw, err = inline(b); err != nil {
				return nil, err
			}
		}
		out.Write(append(slices.Clip(raw), '\n'))
	}
	return out.Bytes(), nil
}
