package catalog

import (
	"fmt"
	"slices"

	"github.com/operator-framework/operator-registry/alpha/property"

	"github.com/olmkit/olmkit/internal/document"
)

// MigrationCSVMetadata is opm's name of the one migration that there is.
const MigrationCSVMetadata = "bundle-object-to-csv-metadata"

// Migrations are what --migrate-level takes, as opm's does (operator-registry v1.74.0, alpha/action/migrations).
var Migrations = []string{"none", MigrationCSVMetadata, "all"}

// Migrate puts olm.csv.metadata in the place of the manifests of bundles that have an image, as catalogs for OpenShift 4.17
// and later must be: OLM gets the manifests from the image, and the console what it shows from the metadata. Bundles without
// an image, which OLM can only install from their manifests, and those that have the metadata already, stay.
func (c *Catalog) Migrate() error {
	for _, p := range c.Packages {
		for _, b := range p.Bundles {
			if err := b.migrate(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Bundle) migrate() error {
	if b.Image == "" || !b.Has(PropertyObject) || b.Has(PropertyCSVMetadata) {
		return nil
	}
	csv, err := b.CSV()
	if err != nil {
		return fmt.Errorf("migrate bundle %s: %w", b.Name, err)
	}
	metadata := property.MustBuildCSVMetadata(*csv)
	b.Properties = append(slices.DeleteFunc(slices.Clone(b.Properties), func(p Property) bool { return p.Type == PropertyObject }),
		Property{Type: metadata.Type, Value: metadata.Value})
	return b.rewrite()
}

// rewrite puts the bundle's properties into its document.
func (b *Bundle) rewrite() error {
	raw, err := withField(b.Document.JSON, "properties", b.Properties)
	if err != nil {
		return fmt.Errorf("write the properties of bundle %s (%s): %w", b.Name, b.At, err)
	}
	b.Document.JSON, b.Document.Source = raw, document.New(raw, b.Document.At)
	return nil
}
