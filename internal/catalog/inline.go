package catalog

import "bytes"

// Inline returns c as a stream of JSON documents, a line each, in which every bundle has its manifests and no image, so that OLM
// takes the manifests from the catalog. It is an error if the catalog does not hold those of a bundle; see Loader.Pull.
func Inline(c *Catalog) ([]byte, error) {
	var out bytes.Buffer
	bundles := map[string]*Bundle{}
	for _, p := range c.Packages {
		for _, b := range p.Bundles {
			bundles[p.Name+"/"+b.Name] = b
		}
	}
	for _, d := range c.Sorted() {
		raw := d.JSON
		if b := bundles[d.Package+"/"+d.Name]; b != nil && d.Schema == SchemaBundle {
			var err error
			if raw, err = inline(b); err != nil {
				return nil, err
			}
		}
		out.Write(append(bytes.TrimSpace(raw), '\n'))
	}
	return out.Bytes(), nil
}
