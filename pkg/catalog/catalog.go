package catalog

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/graph"
)

// Formats are the formats of Write: one stream of documents as JSON or YAML.
var Formats = slices.Clone(catalog.Formats)

// GraphFormats are the formats of Draw.
var GraphFormats = slices.Clone(graph.Formats)

// Catalog is a loaded file-based catalog. It does not change, so several goroutines may use it.
type Catalog struct{ catalog *catalog.Catalog }

// Load reads references into one catalog. It returns an error when one of them cannot be reached or is neither a catalog nor a
// bundle. See the package's documentation for references.
func Load(ctx context.Context, references ...string) (*Catalog, error) {
	c, err := catalog.Load(ctx, nil, references...)
	if err != nil {
		return nil, err
	}
	return &Catalog{c}, nil
}

// Build makes a catalog from a template file: opm's semver or basic template, or olmkit's. 'olmkit catalog build --help'
// describes it. It returns an error when the template says what none of these can, or names a bundle that cannot be read.
func Build(ctx context.Context, template string) (*Catalog, error) {
	c, err := catalog.Build(ctx, template)
	if err != nil {
		return nil, err
	}
	return &Catalog{c}, nil
}

// Write writes the catalog's documents to w in one of Formats, as 'opm render' would: a stream that OLM's registry, opm and Load
// read. The same catalog gives the same bytes. Fields that olmkit does not know are kept.
func (c *Catalog) Write(w io.Writer, format string) error {
	if err := c.catalog.Err(); err != nil {
		return err
	}
	if !slices.Contains(Formats, format) {
		return fmt.Errorf("write a catalog: the format %q is not one of %s", format, strings.Join(Formats, ", "))
	}
	return catalog.Write(w, format, c.catalog.Sorted())
}

// Package is one operator's part of a catalog.
type Package struct {
	Name           string
	DefaultChannel string
	Channels       []string // sorted
	Bundles        []Bundle // by version, then name
}

// Bundle is one release of a package.
type Bundle struct {
	Name    string
	Version string // of its olm.package property; "" when there is none
	Image   string // "" when the catalog has all of its manifests
}

// Packages returns the catalog's packages by name. Like Write, Graph and Plan, it returns an error when a document of the catalog cannot
// be read; Validate tells of it instead.
func (c *Catalog) Packages() ([]Package, error) {
	if err := c.catalog.Err(); err != nil {
		return nil, err
	}
	packages := make([]Package, len(c.catalog.Packages))
	for i, p := range c.catalog.Packages {
		packages[i] = Package{Name: p.Name, DefaultChannel: p.DefaultChannel}
		for _, channel := range p.Channels {
			packages[i].Channels = append(packages[i].Channels, channel.Name)
		}
		for _, b := range p.Bundles {
			bundle := Bundle{Name: b.Name, Image: b.Image}
			if b.Has(catalog.PropertyPackage) {
				bundle.Version = b.Version.String()
			}
			packages[i].Bundles = append(packages[i].Bundles, bundle)
		}
	}
	return packages, nil
}

// find returns the package called name, or the only one when name is "".
func (c *Catalog) find(name string) (*catalog.Package, error) {
	if err := c.catalog.Err(); err != nil {
		return nil, err
	}
	var known []string
	for _, p := range c.catalog.Packages {
		known = append(known, p.Name)
	}
	switch {
	case name == "" && len(known) == 1:
		return c.catalog.Packages[0], nil
	case name == "":
		return nil, fmt.Errorf("the catalog holds %d packages: name one of them (%s)", len(known), strings.Join(known, ", "))
	case c.catalog.Find(name) == nil:
		return nil, fmt.Errorf("the catalog holds no package %s: it holds %s", name, strings.Join(known, ", "))
	}
	return c.catalog.Find(name), nil
}
