// Package catalog loads, renders, writes and serves file-based catalogs (FBC), keeping for everything it read the place
// where it stands.
//
// The format is https://olm.operatorframework.io/docs/reference/file-based-catalogs/.
package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
)

// Schemas of the documents of a catalog.
const (
	SchemaPackage      = "olm.package"
	SchemaChannel      = "olm.channel"
	SchemaBundle       = "olm.bundle"
	SchemaDeprecations = "olm.deprecations"
)

// Catalog is the content of a file-based catalog.
type Catalog struct {
	Packages  []*Package        // by name
	Documents []*Document       // in the order of the files and in them
	Problems  []finding.Finding // what could not be read: see Err

	packages names
	sparse   *sparse // how it was read, if it is
}

// Document is one document of the catalog as it was written, with unknown fields and exact numbers.
type Document struct {
	Schema, Package, Name string
	JSON                  json.RawMessage
	At                    finding.Location
	Source                *document.Document // for the places of fields

	files     func() []bundle.Manifest   // of the bundle directory that it was made of, read again; nil if it was not
	manifests func() ([]Property, error) // the olm.bundle.object properties of a lazy catalog, all properties of one in YAML that is sparse
	sum       *[sha256.Size]byte         // of the text that it was parsed from; nil where that is held
	size      int                        // of the text whose data JSON lacks in a sparse catalog
	held      []heldText                 // what is told of the properties that lack it
	region    *region                    // where they are read, of a sparse catalog in JSON
}

// Files returns the manifests of the bundle directory that the document was made of, with their places; nil where it was
// not, or the directory cannot be read any more.
func (d *Document) Files() []bundle.Manifest {
	if d == nil || d.files == nil {
		return nil
	}
	return d.files()
}

// Digest returns the digest of the text that the document was parsed from: what it says, and where its fields stand from its beginning
// on. It is not ok where that is not known.
func (d *Document) Digest() (sum [sha256.Size]byte, ok bool) {
	if d.sum != nil {
		return *d.sum, true
	}
	if text := d.Source.Text(); text != nil {
		return sha256.Sum256(text), true
	}
	return sum, false
}

// Alone returns the catalog that holds nothing but a package of c, whose documents they are.
func (c *Catalog) Alone(p *Package, documents []*Document) *Catalog {
	return &Catalog{Packages: []*Package{p}, Documents: documents, packages: namesOf([]*Package{p}, func(p *Package) string { return p.Name }), sparse: c.sparse}
}

// Package is one operator's part of a catalog.
type Package struct {
	Name           string
	DefaultChannel string
	Channels       []*Channel // by name
	Bundles        []*Bundle  // by version, then name
	Deprecations   []Deprecation
	At             finding.Location
	Document       *Document // nil when the catalog has documents of the package, but no olm.package

	channels, bundles names
}

// Channel is an upgrade graph over bundles of its package.
type Channel struct {
	Name     string
	Entries  []Entry // as written
	At       finding.Location
	Document *Document

	entries names
}

// Entry is one bundle's membership in a channel, with the edges that end there.
type Entry struct {
	Name      string
	Replaces  string
	Skips     []string
	SkipRange string
	Index     int // in the channel's entries as written
	At        finding.Location
}

// Bundle is one release of a package.
type Bundle struct {
	Name          string
	Package       string
	Image         string         // "" when the manifests are inline
	Version       semver.Version // of the olm.package property; the zero version when there is none
	Properties    []Property
	RelatedImages []RelatedImage
	At            finding.Location
	Document      *Document

	manifests func() ([]Property, error) // the document's
}

// Has reports whether the bundle has a property of the type kind.
func (b *Bundle) Has(kind string) bool {
	return slices.ContainsFunc(b.Properties, func(p Property) bool { return p.Type == kind })
}

// Types of the properties that olmkit knows: operator-registry v1.74.0, alpha/property.
const (
	PropertyPackage         = "olm.package"
	PropertyGVK             = "olm.gvk"
	PropertyPackageRequired = "olm.package.required"
	PropertyGVKRequired     = "olm.gvk.required"
	PropertyConstraint      = "olm.constraint"
	PropertyObject          = "olm.bundle.object"
	PropertyCSVMetadata     = "olm.csv.metadata"
)

// Property is a typed fact that the resolver and the registry know of a bundle.
type Property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// RelatedImage is an image that a bundle needs.
type RelatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// Deprecation marks a package, channel or bundle as deprecated.
type Deprecation struct {
	Schema   string // schema of what is deprecated
	Name     string // "" for the package
	Message  string
	At       finding.Location
	Document *Document
}

// Place returns where the field at path of the document stands, as document.Document.Place does.
func (d *Document) Place(path ...any) finding.Location {
	if d == nil {
		return finding.Location{}
	}
	if d.Source == nil {
		return d.At
	}
	return d.Source.Place(path...)
}

// items returns where the items of the list in a field stand, as far as that is known.
func (d *Document) items(field string) []finding.Location {
	if d.Source == nil {
		return nil
	}
	return d.Source.Items(field)
}

// names are where the things of a list are by their names, the first of those with one name. A list that was made or cut
// otherwise than by index is searched from its beginning.
type names struct {
	at    map[string]int
	count int
}

func namesOf[T any](list []T, name func(T) string) names {
	n := names{at: make(map[string]int, len(list)), count: len(list)}
	for i, thing := range list {
		if _, twice := n.at[name(thing)]; !twice {
			n.at[name(thing)] = i
		}
	}
	return n
}

// find returns the index of the first thing of list called wanted, or -1.
func find[T any](n names, list []T, wanted string, name func(*T) string) int {
	if n.at != nil && n.count == len(list) {
		i, known := n.at[wanted]
		if !known {
			return -1
		}
		if name(&list[i]) == wanted {
			return i
		}
	}
	for i := range list {
		if name(&list[i]) == wanted {
			return i
		}
	}
	return -1
}

// Find returns the package called name, or nil.
func (c *Catalog) Find(name string) *Package {
	if i := find(c.packages, c.Packages, name, func(p **Package) string { return (*p).Name }); i >= 0 {
		return c.Packages[i]
	}
	return nil
}

// Channel returns the channel called name, or nil.
func (p *Package) Channel(name string) *Channel {
	if i := find(p.channels, p.Channels, name, func(c **Channel) string { return (*c).Name }); i >= 0 {
		return p.Channels[i]
	}
	return nil
}

// Bundle returns the bundle called name, or nil.
func (p *Package) Bundle(name string) *Bundle {
	if i := find(p.bundles, p.Bundles, name, func(b **Bundle) string { return (*b).Name }); i >= 0 {
		return p.Bundles[i]
	}
	return nil
}

// NameOf returns the name of the bundle that text means, which is a name or a version; text itself if there is none.
func (p *Package) NameOf(text string) string {
	version, err := semver.Parse(strings.TrimPrefix(text, "v"))
	if err != nil || p.Bundle(text) != nil {
		return text
	}
	for _, b := range p.Bundles {
		if b.Version.Equals(version) {
			return b.Name
		}
	}
	return text
}

// Entry returns the channel's entry called name, or nil.
func (c *Channel) Entry(name string) *Entry {
	if i := find(c.entries, c.Entries, name, func(e *Entry) string { return e.Name }); i >= 0 {
		return &c.Entries[i]
	}
	return nil
}

// Heads returns the names of the entries that no other replaces or skips, in the order of the entries. A sound channel has
// exactly one.
func (c *Channel) Heads() []string {
	superseded := map[string]bool{}
	for _, e := range c.Entries {
		superseded[e.Replaces] = true
		for _, name := range e.Skips {
			superseded[name] = true
		}
	}
	var heads []string
	for _, e := range c.Entries {
		if !superseded[e.Name] {
			heads = append(heads, e.Name)
		}
	}
	return heads
}
