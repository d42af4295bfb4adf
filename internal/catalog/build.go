package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	semvertemplate "github.com/operator-framework/operator-registry/alpha/template/semver"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
)

// Schemas of the templates that Build knows: ours, and opm's.
const (
	SchemaTemplate       = "olmkit.template"
	SchemaTemplateSemver = "olm.semver"
	SchemaTemplateBasic  = "olm.template.basic"
)

// Build makes a catalog from a template file. Bundles are directories, named relative to the template. The template is
// one of opm's, or ours:
//
//	schema: olmkit.template
//	package: example-operator
//	description: What it does.
//	icon: icon.svg                       # a file beside the template
//	defaultChannel: stable            # of several
//	bundles: [../bundle/*]               # directories, or patterns that match directories
//	channels:
//	  stable:
//	    - 1.0.0                          # a bundle's version or name, the oldest first; it replaces the one before it that nothing skips
//	    - 1.1.0
//	    - version: 1.1.1
//	      skips: [1.1.0]
//	    - version: 1.2.0
//	      skipRange: ">=1.0.0 <1.2.0"
//	      replaces: 1.0.0                # said otherwise; "" for nothing
//	deprecations:
//	  - bundle: 1.0.0                    # or channel: NAME; neither for the whole package
//	    message: Use 1.2.0.
func Build(ctx context.Context, file string) (*Catalog, error) { return Loader{}.Build(ctx, file) }

// Build is the function Build, with bundles' images read by the Loader. The template "-" is on its Stdin, and names bundles from the working
// directory.
func (l Loader) Build(ctx context.Context, file string) (*Catalog, error) {
	data, err := document.Until(ctx, func() ([]byte, error) {
		if file == "-" {
			return l.MaxFile.ReadAll(l.Stdin)
		}
		return l.MaxFile.ReadFile(file)
	})
	if err != nil {
		return nil, hint.With(fmt.Errorf("read catalog template: %w", err), "name a template file, or - for standard input")
	}
	if file == "-" {
		file = "<stdin>"
	}
	documents, err := document.Until(ctx, func() ([]*document.Document, error) { return document.Parse(filepath.ToSlash(file), data) })
	if err != nil {
		return nil, hint.With(fmt.Errorf("read catalog template: %w", err), "correct the syntax there")
	}
	if len(documents) != 1 {
		return nil, hint.With(fmt.Errorf("read catalog template %s: it holds %d documents", file, len(documents)), "write one template in a file")
	}
	b := &builder{loader: l, dir: filepath.Dir(file), source: documents[0], bundles: map[string]*Document{}}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := b.decode(documents[0].JSON, &head); err != nil {
		return nil, err
	}
	switch head.Schema {
	case SchemaTemplate:
		err = b.own(ctx)
	case SchemaTemplateSemver:
		err = b.semver(ctx, data)
	case SchemaTemplateBasic:
		err = b.basic(ctx)
	default:
		err = hint.With(fmt.Errorf("%s: no template has the schema %q", documents[0].Place("schema"), head.Schema),
			"write schema: %s, %s or %s", SchemaTemplate, SchemaTemplateSemver, SchemaTemplateBasic)
	}
	if err != nil {
		return nil, err
	}
	c := &Catalog{Documents: b.documents}
	c.index()
	c.Documents = c.Sorted()
	return c, nil
}

// builder makes documents from a template.
type builder struct {
	loader    Loader
	dir       string // of the template
	source    *document.Document
	bundles   map[string]*Document // by the reference under which they were rendered
	documents []*Document
}

// decode unmarshals the template or a part of it, strictly: a misspelt field would change the graph silently.
func (b *builder) decode(raw json.RawMessage, into any, path ...any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		problem := typeProblem(b.source, err, finding.Subject{}, path...)
		return hint.With(fmt.Errorf("read catalog template: %s: %s", problem.Location, problem.Message), "see 'olmkit catalog build --help' for the format")
	}
	return nil
}

// known refuses fields of the JSON object raw that are not among names.
func (b *builder) known(raw json.RawMessage, names []string, path ...any) error {
	fields, err := readObject(raw)
	if err != nil {
		return fmt.Errorf("read catalog template: %s: %w", b.source.Place(path...), err)
	}
	for _, f := range fields {
		if !slices.Contains(names, f.name) {
			return hint.With(fmt.Errorf("read catalog template: %s: no field is called %q here", b.source.Place(append(path, f.name)...), f.name),
				"write one of %s", strings.Join(names, ", "))
		}
	}
	return nil
}

func (b *builder) add(schema, pkg, name string, content any) error {
	raw, err := encode(content)
	if err != nil {
		return fmt.Errorf("build catalog: %s %s: %w", schema, name, err)
	}
	b.documents = append(b.documents, &Document{
		Schema: schema, Package: pkg, Name: name, JSON: raw, At: b.source.At, Source: document.New(raw, b.source.At),
	})
	return nil
}

// render returns the document of the bundle directory that ref names.
func (b *builder) render(ctx context.Context, ref string, at ...any) (*Document, error) {
	if d := b.bundles[ref]; d != nil {
		return d, nil
	}
	dir := filepath.FromSlash(ref)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(b.dir, dir)
	}
	from := dir
	if !bundle.Is(dir) {
		if !image.Is(dir) {
			from = ref
		}
		if !image.Is(from) {
			return nil, hint.With(fmt.Errorf("build catalog: %s: %s is neither a bundle directory nor an image", b.source.Place(at...), ref),
				"name a directory, relative to the template, that holds manifests/ and metadata/, or an image with its registry's host")
		}
	}
	loaded, err := b.loader.load(ctx, from, &document.Memo{})
	if err != nil {
		return nil, err
	}
	if len(loaded.documents) != 1 || loaded.documents[0].Schema != SchemaBundle {
		return nil, hint.With(fmt.Errorf("build catalog: %s: %s holds no single bundle", b.source.Place(at...), ref), "name a bundle")
	}
	d := loaded.documents[0]
	b.bundles[ref] = d
	b.documents = append(b.documents, d)
	return d, nil
}

// template is the content of our own template.
type template struct {
	Package        string                       `json:"package"`
	Description    string                       `json:"description"`
	Icon           string                       `json:"icon"`
	DefaultChannel string                       `json:"defaultChannel"`
	Bundles        []string                     `json:"bundles"`
	Channels       map[string][]json.RawMessage `json:"channels"`
	Deprecations   []json.RawMessage            `json:"deprecations"`
}

type icon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

func (b *builder) own(ctx context.Context) error {
	if err := b.known(b.source.JSON, []string{"schema", "package", "description", "icon", "defaultChannel", "bundles", "channels", "deprecations"}); err != nil {
		return err
	}
	var t template
	if err := b.decode(b.source.JSON, &t); err != nil {
		return err
	}
	if t.Package == "" {
		return hint.With(fmt.Errorf("build catalog: %s: the template names no package", b.source.At), "set package")
	}
	if len(t.Channels) == 0 {
		return hint.With(fmt.Errorf("build catalog: %s: the template has no channels", b.source.At), "list the entries of a channel under channels")
	}
	if t.DefaultChannel == "" && len(t.Channels) == 1 {
		t.DefaultChannel = slices.Sorted(maps.Keys(t.Channels))[0]
	}
	if _, ok := t.Channels[t.DefaultChannel]; !ok {
		return hint.With(fmt.Errorf("build catalog: %s: the default channel %q is none of the channels", b.source.Place("defaultChannel"), t.DefaultChannel),
			"set defaultChannel to one of %s", strings.Join(slices.Sorted(maps.Keys(t.Channels)), ", "))
	}
	releases, err := b.releases(ctx, t)
	if err != nil {
		return err
	}
	image, err := b.icon(t.Icon)
	if err != nil {
		return err
	}
	if err := b.add(SchemaPackage, t.Package, t.Package, struct {
		Schema         string `json:"schema"`
		Name           string `json:"name"`
		DefaultChannel string `json:"defaultChannel"`
		Description    string `json:"description,omitempty"`
		Icon           *icon  `json:"icon,omitempty"`
	}{SchemaPackage, t.Package, t.DefaultChannel, t.Description, image}); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(t.Channels)) {
		entries, err := b.entries(t.Channels[name], releases, "channels", name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			used[e.Name] = true
		}
		if err := b.add(SchemaChannel, t.Package, name, struct {
			Schema  string         `json:"schema"`
			Name    string         `json:"name"`
			Package string         `json:"package"`
			Entries []trimmedEntry `json:"entries"`
		}{SchemaChannel, name, t.Package, entries}); err != nil {
			return err
		}
	}
	// opm refuses bundles that no channel names.
	b.documents = slices.DeleteFunc(b.documents, func(d *Document) bool { return d.Schema == SchemaBundle && !used[d.Name] })
	return b.deprecate(t, releases)
}

// releases are the bundles that a template's entries can name.
type releases struct {
	pkg  string
	list []release
}

type release struct {
	name    string
	version semver.Version
}

// releases renders the template's bundles.
func (b *builder) releases(ctx context.Context, t template) (*releases, error) {
	r := &releases{pkg: t.Package}
	for i, pattern := range t.Bundles {
		dirs, err := b.match(pattern)
		if err != nil {
			return nil, fmt.Errorf("build catalog: %s: %w", b.source.Place("bundles", i), err)
		}
		for _, dir := range dirs {
			d, err := b.render(ctx, dir, "bundles", i)
			if err != nil {
				return nil, err
			}
			if d.Package != t.Package {
				return nil, hint.With(fmt.Errorf("build catalog: %s: bundle %s is of package %s, not of %s", b.source.Place("bundles", i), dir, d.Package, t.Package),
					"remove it from bundles, or correct the package in its metadata/annotations.yaml")
			}
			r.list = append(r.list, release{d.Name, bundleVersion(d)})
		}
	}
	slices.SortFunc(r.list, func(a, b release) int {
		return cmp.Or(a.version.Compare(b.version), strings.Compare(a.name, b.name))
	})
	return r, nil
}

func bundleVersion(d *Document) semver.Version {
	c := &Catalog{Documents: []*Document{d}}
	c.index()
	return c.Packages[0].Bundles[0].Version
}

// literally makes a path a pattern that matches it alone.
var literally = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// match returns the bundle directories that pattern matches, relative to the template unless the pattern is absolute.
func (b *builder) match(pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}, nil
	}
	below := filepath.FromSlash(pattern)
	absolute := filepath.IsAbs(below)
	if !absolute {
		below = filepath.Join(literally.Replace(b.dir), below)
	}
	found, err := filepath.Glob(below)
	if err != nil {
		return nil, fmt.Errorf("pattern %s: %w", pattern, err)
	}
	var dirs []string
	for _, dir := range found {
		if !bundle.Is(dir) {
			continue
		}
		if !absolute {
			if dir, err = filepath.Rel(b.dir, dir); err != nil {
				return nil, err
			}
		}
		dirs = append(dirs, filepath.ToSlash(dir))
	}
	if len(dirs) == 0 {
		return nil, hint.With(fmt.Errorf("no bundle directory matches %s", pattern), "name directories that hold manifests/ and metadata/")
	}
	return dirs, nil
}

// find returns the bundle name that text means: a name or a version, with or without a leading v. The name of a bundle of
// the package that is not there (any more) stands for itself.
func (r *releases) find(text string) (string, bool) {
	version, err := semver.Parse(strings.TrimPrefix(text, "v"))
	for _, known := range r.list {
		if known.name == text || err == nil && known.version.Compare(version) == 0 && slices.Equal(known.version.Build, version.Build) {
			return known.name, true
		}
	}
	return text, strings.HasPrefix(text, r.pkg+".")
}

func (r *releases) has(name string) bool {
	return slices.ContainsFunc(r.list, func(known release) bool { return known.name == name })
}

// version is that of the bundle called name, which is among them.
func (r *releases) version(name string) semver.Version {
	return r.list[slices.IndexFunc(r.list, func(known release) bool { return known.name == name })].version
}

func (r *releases) unknown(text string, b *builder, path ...any) error {
	names := make([]string, len(r.list))
	for i, known := range r.list {
		names[i] = known.version.String()
	}
	return hint.With(fmt.Errorf("build catalog: %s: no bundle has the name or version %s", b.source.Place(path...), text),
		"choose one of %s, or add its directory to bundles", strings.Join(names, ", "))
}

func (b *builder) entries(raws []json.RawMessage, r *releases, path ...any) ([]trimmedEntry, error) {
	entries := make([]trimmedEntry, len(raws))
	said := make([]bool, len(raws)) // replaces is written out
	skipped := map[string]bool{}
	for i, raw := range raws {
		at := append(slices.Clone(path), i)
		w, err := b.entry(raw, at...)
		if err != nil {
			return nil, err
		}
		name, _ := r.find(cmp.Or(w.Name, w.Version))
		if !r.has(name) {
			return nil, r.unknown(cmp.Or(w.Name, w.Version, "(none)"), b, at...)
		}
		if slices.ContainsFunc(entries[:i], func(e trimmedEntry) bool { return e.Name == name }) {
			return nil, hint.With(fmt.Errorf("build catalog: %s: %s stands in the channel twice", b.source.Place(at...), name), "leave one of them out")
		}
		entries[i] = trimmedEntry{Name: name, SkipRange: w.SkipRange}
		if _, err := semver.ParseRange(w.SkipRange); w.SkipRange != "" && err != nil {
			return nil, hint.With(fmt.Errorf("build catalog: %s: skipRange %q: %w", b.source.Place(append(at, "skipRange")...), w.SkipRange, err),
				`write a range, for example ">=1.0.0 <1.2.0"`)
		}
		for j, s := range w.Skips {
			name, ok := r.find(s)
			if !ok {
				return nil, r.unknown(s, b, append(slices.Clone(at), "skips", j)...)
			}
			entries[i].Skips = append(entries[i].Skips, name)
			skipped[name] = true
		}
		if w.Replaces != nil {
			said[i] = true
			if *w.Replaces != "" {
				name, ok := r.find(*w.Replaces)
				if !ok {
					return nil, r.unknown(*w.Replaces, b, append(slices.Clone(at), "replaces")...)
				}
				entries[i].Replaces = name
			}
		}
	}
	for i := range entries {
		for j := i - 1; j >= 0 && !said[i]; j-- {
			if skipped[entries[j].Name] {
				continue
			}
			if older, newer := r.version(entries[i].Name), r.version(entries[j].Name); older.LT(newer) {
				return nil, hint.With(fmt.Errorf("build catalog: %s: %s stands after %s, and would replace it", b.source.Place(append(slices.Clone(path), i)...), older, newer),
					"list the versions of a channel from the oldest on, or write at %s what it replaces, as in {version: %s, replaces: %s}", older, older, newer)
			}
			entries[i].Replaces = entries[j].Name
			break
		}
	}
	return entries, nil
}

// writtenEntry is an entry of a channel as a template has it.
type writtenEntry struct {
	Version   string   `json:"version"`
	Name      string   `json:"name"`
	Replaces  *string  `json:"replaces"`
	Skips     []string `json:"skips"`
	SkipRange string   `json:"skipRange"`
}

// entry reads an entry: a version, or an object.
func (b *builder) entry(raw json.RawMessage, at ...any) (w writtenEntry, err error) {
	if raw[0] != '{' {
		return w, b.decode(raw, &w.Version, at...)
	}
	if err := b.known(raw, []string{"version", "name", "replaces", "skips", "skipRange"}, at...); err != nil {
		return w, err
	}
	return w, b.decode(raw, &w, at...)
}

func (b *builder) icon(file string) (*icon, error) {
	if file == "" {
		return nil, nil
	}
	media, ok := bundle.IconTypes[strings.ToLower(filepath.Ext(file))]
	if !ok {
		return nil, hint.With(fmt.Errorf("build catalog: %s: icon %s is of no known kind", b.source.Place("icon"), file), "name a file that ends in .svg, .png, .jpg or .gif")
	}
	data, err := document.ReadRegular(filepath.Join(b.dir, filepath.FromSlash(file)))
	if err != nil {
		return nil, fmt.Errorf("build catalog: %s: read icon: %w", b.source.Place("icon"), err)
	}
	if !bundle.IsIcon(data, media) {
		return nil, hint.With(fmt.Errorf("build catalog: %s: icon %s is no picture of type %s", b.source.Place("icon"), file, media), "name the file by its kind: .svg, .png, .jpg or .gif")
	}
	return &icon{Data: data, MediaType: media}, nil
}

func (b *builder) deprecate(t template, r *releases) error {
	if len(t.Deprecations) == 0 {
		return nil
	}
	type reference struct {
		Schema string `json:"schema"`
		Name   string `json:"name,omitempty"`
	}
	type entry struct {
		Reference reference `json:"reference"`
		Message   string    `json:"message"`
	}
	var entries []entry
	for i, raw := range t.Deprecations {
		var w struct {
			Bundle  string `json:"bundle"`
			Channel string `json:"channel"`
			Message string `json:"message"`
		}
		if err := b.known(raw, []string{"bundle", "channel", "message"}, "deprecations", i); err != nil {
			return err
		}
		if err := b.decode(raw, &w, "deprecations", i); err != nil {
			return err
		}
		e := entry{Reference: reference{Schema: SchemaPackage}, Message: w.Message}
		switch {
		case w.Message == "":
			return hint.With(fmt.Errorf("build catalog: %s: the deprecation has no message", b.source.Place("deprecations", i)), "say in message what users should do instead")
		case w.Bundle != "" && w.Channel != "":
			return hint.With(fmt.Errorf("build catalog: %s: the deprecation names a bundle and a channel", b.source.Place("deprecations", i)), "write two deprecations")
		case w.Bundle != "":
			name, _ := r.find(w.Bundle)
			if !r.has(name) {
				return r.unknown(w.Bundle, b, "deprecations", i, "bundle")
			}
			e.Reference = reference{SchemaBundle, name}
		case w.Channel != "":
			if _, ok := t.Channels[w.Channel]; !ok {
				return hint.With(fmt.Errorf("build catalog: %s: no channel is called %s", b.source.Place("deprecations", i, "channel"), w.Channel),
					"choose one of %s", strings.Join(slices.Sorted(maps.Keys(t.Channels)), ", "))
			}
			e.Reference = reference{SchemaChannel, w.Channel}
		}
		entries = append(entries, e)
	}
	return b.add(SchemaDeprecations, t.Package, "", struct {
		Schema  string  `json:"schema"`
		Package string  `json:"package"`
		Entries []entry `json:"entries"`
	}{SchemaDeprecations, t.Package, entries})
}

// basic renders opm's basic template: a list of documents, in which a bundle is named by its image alone.
func (b *builder) basic(ctx context.Context) error {
	var t struct {
		Entries []json.RawMessage `json:"entries"`
	}
	if err := b.decode(b.source.JSON, &t); err != nil {
		return err
	}
	for i, raw := range t.Entries {
		var meta struct {
			Schema, Package, Name, Image string
			Properties                   []json.RawMessage
		}
		if err := b.decode(raw, &meta, "entries", i); err != nil {
			return err
		}
		if meta.Schema != SchemaBundle {
			if meta.Schema == SchemaPackage && meta.Package == "" {
				meta.Package = meta.Name
			}
			at := b.source.Place("entries", i)
			b.documents = append(b.documents, &Document{Schema: meta.Schema, Package: meta.Package, Name: meta.Name, JSON: raw, At: at, Source: document.New(raw, at)})
			continue
		}
		if meta.Image == "" || meta.Package != "" || len(meta.Properties) > 0 {
			return hint.With(fmt.Errorf("build catalog: %s: a bundle of a basic template has a schema and an image alone", b.source.Place("entries", i)),
				"name the bundle's directory as image, and nothing else")
		}
		if _, err := b.render(ctx, meta.Image, "entries", i, "image"); err != nil {
			return err
		}
	}
	return nil
}

// semver renders opm's semver template with opm's own code: it generates the channels, from the bundles' versions; the
// bundles are ours.
func (b *builder) semver(ctx context.Context, data []byte) error {
	render := func(ctx context.Context, ref string) (*declcfg.DeclarativeConfig, error) {
		d, err := b.render(ctx, ref)
		if err != nil {
			return nil, err
		}
		c := &Catalog{Documents: []*Document{d}}
		c.index()
		rendered := c.Packages[0].Bundles[0]
		theirs := declcfg.Bundle{Schema: SchemaBundle, Name: d.Name, Package: d.Package, Image: ref}
		for _, p := range rendered.Properties {
			if p.Type == PropertyPackage {
				theirs.Properties = append(theirs.Properties, property.Property{Type: p.Type, Value: p.Value})
			}
		}
		if theirs.CsvJSON, err = rendered.csvJSON(); err != nil {
			return nil, err
		}
		return &declcfg.DeclarativeConfig{Bundles: []declcfg.Bundle{theirs}}, nil
	}
	out, err := (&semvertemplate.Factory{}).CreateTemplate(render).Render(ctx, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("build catalog: %s: %w", b.source.At, err)
	}
	for _, p := range out.Packages {
		if err := b.add(SchemaPackage, p.Name, p.Name, p); err != nil {
			return err
		}
	}
	for _, c := range out.Channels {
		if err := b.add(SchemaChannel, c.Package, c.Name, c); err != nil {
			return err
		}
	}
	return nil
}
