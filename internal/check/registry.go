package check

import (
	"fmt"
	"slices"
	"strings"

	"go.podman.io/image/v5/docker/reference"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// Registry is what registries say of images, by reference: for which platforms they have each, as linux/amd64. An image
// without any is not there.
type Registry map[string][]string

func registryAsked(o Options) bool { return o.Registry != nil }

// registryChecks hold what is named in bundles and catalogs to what registries have.
var registryChecks = []Check{
	{
		Code: "IMG005", Severity: finding.Error,
		Title: "the registry does not have an image",
		Cause: "the pods of the release cannot pull the image",
		Fix:   "push the image, or correct its name, tag or digest",
		run:   perBundleImage,
		judge: ofCSV(checkPresent),
		asked: registryAsked,
	},
	{
		Code: "IMG006", Severity: finding.Warning,
		Title:      "an image has no variant for a platform that the operator supports",
		Cause:      "on a node of that platform the container does not start. The supported platforms are those of the ClusterServiceVersion's labels operatorframework.io/os.* and operatorframework.io/arch.*; without labels they are linux and amd64",
		Fix:        "push the image for all platforms, for example with 'olmkit image push' and a binary for each, or remove the label",
		References: []string{"https://olm.operatorframework.io/docs/advanced-tasks/ship-operator-supporting-multiarch/"},
		judge:      ofCSV(checkPlatforms),
		asked:      registryAsked,
	},
}

// Images returns what the registries must be asked about for the checks of b, in order.
func Images(b *bundle.Bundle) []string { return references(newSingle(b, &schemaReader{}).named()) }

// ImagesIn returns likewise what the checks of c need, of those of its packages that options choose.
func ImagesIn(c *catalog.Catalog, options Options) []string {
	s := &subject{catalog: c, schemas: &schemaReader{}, packages: options.packagesOf(c)}
	var used []usedImage
	for _, p := range s.packages {
		for _, b := range s.heads(p) {
			if head := s.single(b); head != nil {
				used = append(used, head.named()...)
			}
		}
		for _, b := range p.Bundles {
			used = append(used, usedImage{image: b.Image})
		}
	}
	return references(used)
}

// references leaves out what is no reference, of which other checks tell.
func references(used []usedImage) []string {
	var list []string
	for _, u := range used {
		if _, err := reference.ParseNormalizedNamed(u.image); err == nil {
			list = append(list, u.image)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// named are all images that the CSV names, the related ones after those that its deployments run.
func (s *single) named() []usedImage {
	used := s.images()
	for i, r := range s.spec.Spec.RelatedImages {
		if !slices.ContainsFunc(used, func(u usedImage) bool { return u.image == r.Image }) {
			used = append(used, usedImage{image: r.Image, by: "related image " + r.Name, path: []any{"spec", "relatedImages", i, "image"}})
		}
	}
	return used
}

func perBundleImage(s *subject, found func(hit)) {
	perBundle(func(_ *catalog.Package, b *catalog.Bundle, found func(hit)) {
		if platforms, asked := s.registry[b.Image]; asked && len(platforms) == 0 {
			found(hit{at: b.Document.Place("image"), message: fmt.Sprintf("the registry does not have image %s of bundle %s", b.Image, b.Name)})
		}
	})(s, found)
}

func checkPresent(s *single, found func(hit)) {
	for _, u := range s.named() {
		if platforms, asked := s.registry[u.image]; asked && len(platforms) == 0 {
			found(s.at(u.path, "the registry does not have image %s of %s", u.image, u.by))
		}
	}
}

func checkPlatforms(s *single, found func(hit)) {
	supported := s.platforms()
	for _, u := range s.named() {
		platforms, asked := s.registry[u.image]
		if !asked || len(platforms) == 0 {
			continue
		}
		missing := slices.DeleteFunc(slices.Clone(supported), func(p string) bool { return slices.Contains(platforms, p) })
		if len(missing) > 0 {
			found(s.at(u.path, "image %s of %s is available for %s, but not for %s", u.image, u.by, strings.Join(platforms, ", "), strings.Join(missing, ", ")))
		}
	}
}

// platforms are those that the CSV's labels say are supported (operator-lifecycle-manager v0.46.0,
// pkg/package-server/provider/labels.go).
func (s *single) platforms() []string {
	supported := func(prefix, otherwise string) []string {
		var list []string
		labelled := false
		for label, value := range s.spec.Labels {
			if name, ok := strings.CutPrefix(label, prefix); ok {
				labelled = true
				if value == "supported" {
					list = append(list, name)
				}
			}
		}
		if !labelled {
			return []string{otherwise}
		}
		slices.Sort(list)
		return list
	}
	var all []string
	for _, system := range supported("operatorframework.io/os.", "linux") {
		for _, architecture := range supported("operatorframework.io/arch.", "amd64") {
			all = append(all, system+"/"+architecture)
		}
	}
	return all
}
