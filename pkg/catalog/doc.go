// Package catalog loads, renders, validates and plans upgrades of file-based catalogs of OLM: what programs would otherwise
// run opm or olmkit for, and read back from its output.
//
//	c, err := catalog.Load(ctx, "catalog")
//	if err != nil {
//		return err
//	}
//	findings, err := c.Validate(catalog.ValidateOptions{})
//
// # References
//
// [Load] takes what 'olmkit catalog render' takes: a bundle directory (manifests/ and metadata/), a directory or a file of a
// file-based catalog, or the image of a bundle or of a catalog, on a registry, in an archive or in an OCI layout. Only images on
// registries need a network. [Build] makes a catalog from a template.
//
// A catalog whose documents cannot all be read is loaded nevertheless: [Catalog.Validate] says what is wrong and where, and
// every other function returns that as an error.
//
// # The format
//
// https://olm.operatorframework.io/docs/reference/file-based-catalogs/ describes the documents. Which edge OLM takes follows
// its resolver (operator-lifecycle-manager, pkg/controller/registry/resolver), not the order in which a channel is written.
package catalog
