package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/nearest"
)

// names are the strings by which manifests can name images, and whether they surely do.
type names map[string]bool

// word is what in a text can be a reference.
var word = regexp.MustCompile(`[A-Za-z0-9](?:[A-Za-z0-9._/:@-]*[A-Za-z0-9])?`)

// longest is how long a reference can be: a name of 255 bytes, a tag of 128 and a digest.
const longest = 512

// checkNamed refuses images that neither a bundle of the package nor a sample names: no pod would run them, and what was
// meant would be simulated. Bundles that the plan leaves out count as well, since who walks parts of a plan, or what
// changed, gives all programs each time.
func checkNamed(images []program, p *catalog.Package, samples []*unstructured.Unstructured) error {
	if len(images) == 0 {
		return nil
	}
	named := names{}
	for _, b := range p.Bundles {
		for _, r := range b.RelatedImages {
			named[r.Image] = named[r.Image] || r.Image != b.Image
		}
		objects, _ := b.Objects() // those of the plan can be read: it was checked
		for _, o := range objects {
			named.addJSON(string(o))
		}
	}
	for _, s := range samples {
		named.add(s.Object)
	}
	var errs []error
	for _, i := range images {
		if _, ok := named[i.ref]; !ok {
			errs = append(errs, hint.With(usagef("--image %s: no bundle of package %s names it, and no sample; nearest: %s", i.ref, p.Name, cmp.Or(strings.Join(named.nearest(i.ref), ", "), "none")),
				"name an image that they name; one that only the operator's code names has to stand in the ClusterServiceVersion's relatedImages, or in a --sample file"))
		}
	}
	return errors.Join(errs...)
}

// add adds what value, of a manifest, can name.
func (n names) add(value any) {
	switch v := value.(type) {
	case string:
		if strings.HasPrefix(v, "[") || strings.HasPrefix(v, "{") {
			n.addJSON(v)
		}
		for _, w := range append(word.FindAllString(v, -1), v) {
			if !n[w] {
				n[w] = false
			}
		}
	case []any:
		for _, inner := range v {
			n.add(inner)
		}
	case map[string]any:
		for key, inner := range v {
			n.add(inner)
			if image, ok := inner.(string); ok && key == "image" && image != "" {
				n[image] = true
			}
		}
		repository, _ := v["repository"].(string)
		for key, separator := range map[string]string{"tag": ":", "digest": "@"} {
			if part, _ := v[key].(string); repository != "" && part != "" {
				n[repository+separator+part] = true
			}
		}
	}
}

// addJSON adds what text names if it is JSON, as the examples in a ClusterServiceVersion are.
func (n names) addJSON(text string) {
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		n.add(value)
	}
}

// nearest returns the few names of images that are the least edits away from ref.
func (n names) nearest(ref string) []string {
	images := slices.DeleteFunc(slices.Sorted(maps.Keys(n)), func(name string) bool { return !n[name] || len(name) > longest })
	return nearest.Names(ref, images, 3)
}
