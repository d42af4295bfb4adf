package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/olmkit/olmkit/internal/hint"
)

// Inline returns c as a stream of JSON documents, a line each, in which every bundle has its manifests and no image, so that OLM
// takes the manifests from the catalog; but those that are Large keep theirs. It is an error if the catalog does not hold those of a bundle; see Loader.Pull.
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
			if raw, err = served(b); err != nil {
				return nil, err
			}
		}
		out.Write(append(bytes.TrimSpace(raw), '\n'))
	}
	return out.Bytes(), nil
}

// Offer returns a catalog, as Inline does, in which each package of c has one channel with one entry, its only bundle, to which
// OLM upgrades from every lower version. It is an error if a package has several bundles.
func Offer(c *Catalog, channel string) ([]byte, error) {
	var out bytes.Buffer
	for _, p := range c.Packages {
		if len(p.Bundles) != 1 {
			return nil, hint.With(fmt.Errorf("package %s has %d bundles", p.Name, len(p.Bundles)), "name one bundle of a package; to upgrade, run one after the other")
		}
		b := p.Bundles[0]
		one := &Package{Name: p.Name, Document: p.Document, Bundles: p.Bundles}
		one.Channels = []*Channel{{Name: channel, Entries: []Entry{{Name: b.Name, SkipRange: "<" + b.Version.String()}}}}
		trimmed, err := Trim(one, channel, b.Name)
		if err != nil {
			return nil, err
		}
		out.Write(trimmed)
	}
	return out.Bytes(), nil
}

// ClusterScoped names those of b's objects that OLM makes outside of namespaces and leaves there, each Kind/name.
func (b *Bundle) ClusterScoped() []string {
	objects, err := b.Objects()
	if err != nil {
		return nil
	}
	var names []string
	for _, raw := range objects {
		var o struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if json.Unmarshal(raw, &o) == nil && slices.Contains([]string{"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "PriorityClass"}, o.Kind) {
			names = append(names, o.Kind+"/"+o.Metadata.Name)
		}
	}
	return names
}
