package check

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmkit/olmkit/internal/finding"
)

// imageChecks look at the images that the operator runs.
var imageChecks = []Check{
	{
		Code: "IMG001", Severity: finding.Warning,
		Title: "images that the operator uses are not in spec.relatedImages",
		Cause: "tools that mirror or pin the images of a bundle read spec.relatedImages. opm and olmkit add the images of containers when they render a catalog, but not those of " +
			"RELATED_IMAGE_ variables: clusters without internet access cannot pull them",
		Fix:   "add the images to spec.relatedImages, for example with 'olmkit bundle generate'",
		judge: ofCSV(checkRelatedImages),
	},
	{
		Code: "IMG002", Severity: finding.Info,
		Title: "an image is referenced by a tag",
		Cause: "a tag can be moved to another image after the release was tested",
		Fix:   "reference the image by its digest",
		judge: ofCSV(checkDigests),
	},
	{
		Code: "IMG003", Severity: finding.Warning,
		Title: "an image has the tag latest or no tag",
		Cause: "a pod that starts later can run another image than the released one",
		Fix:   "reference the image by its digest, or at least by the tag of the release",
		judge: ofCSV(checkLatest),
	},
	{
		Code: "IMG004", Severity: finding.Info,
		Title: "a related image is referenced by a tag",
		Cause: "a registry mirror copies the image that the tag names on that day, and clusters that pull from the mirror by digest do not find it",
		Fix:   "reference the image by its digest",
		judge: ofCSV(func(s *single, found func(hit)) {
			var list []string
			var path []any
			for i, r := range s.spec.Spec.RelatedImages {
				if _, pinned := tagOf(r.Image); !pinned && r.Image != "" {
					if list = append(list, fmt.Sprintf("%s (%s)", r.Name, r.Image)); path == nil {
						path = []any{"spec", "relatedImages", i, "image"}
					}
				}
			}
			if len(list) > 0 {
				found(s.at(path, "related images are referenced by a tag (%d): %s", len(list), abridge(list)))
			}
		}),
	},
}

// usedImage is an image of the CSV's deployments.
type usedImage struct {
	image    string
	by       string
	path     []any
	variable bool // it is the value of one
}

func (s *single) images() []usedImage {
	var used []usedImage
	for i, d := range s.spec.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		pod := append(slices.Clone(deploymentsPath), i, "spec", "template", "spec")
		for _, list := range []struct {
			key        string
			containers []corev1.Container
		}{{"initContainers", d.Spec.Template.Spec.InitContainers}, {"containers", d.Spec.Template.Spec.Containers}} {
			for j, c := range list.containers {
				path := append(slices.Clone(pod), list.key, j)
				if c.Image != "" {
					used = append(used, usedImage{image: c.Image, by: "container " + c.Name, path: append(slices.Clone(path), "image")})
				}
				for k, env := range c.Env {
					if strings.HasPrefix(env.Name, "RELATED_IMAGE_") && env.Value != "" {
						used = append(used, usedImage{image: env.Value, by: "variable " + env.Name, path: append(slices.Clone(path), "env", k), variable: true})
					}
				}
			}
		}
	}
	return used
}

// checkRelatedImages leaves the images of containers alone where spec.relatedImages lists nothing: opm adds them to a catalog
// (operator-registry v1.74.0, alpha/action/render.go, getRelatedImages).
func checkRelatedImages(s *single, found func(hit)) {
	listed := map[string]bool{}
	for _, r := range s.spec.Spec.RelatedImages {
		listed[r.Image] = true
	}
	s.tellImages(found, "not in spec.relatedImages", func(u usedImage) bool {
		return !listed[u.image] && (len(listed) > 0 || u.variable)
	})
}

// tellImages finds the images that are wrong, all of a bundle at once.
func (s *single) tellImages(found func(hit), what string, wrong func(usedImage) bool) {
	var first *usedImage
	var list []string
	for _, u := range s.images() {
		one := fmt.Sprintf("%s (%s)", u.image, u.by)
		if !wrong(u) || slices.Contains(list, one) {
			continue
		}
		if list = append(list, one); first == nil {
			first = &u
		}
	}
	switch {
	case len(list) == 1:
		found(s.at(first.path, "image %s of %s is %s", first.image, first.by, what))
	case len(list) > 1:
		found(s.at(first.path, "%d images are %s: %s", len(list), what, abridge(list)))
	}
}

// tagOf returns the tag of an image that is not named by digest; pinned is whether it is.
func tagOf(image string) (tag string, pinned bool) {
	if strings.Contains(image, "@") {
		return "", true
	}
	name := image[strings.LastIndexByte(image, '/')+1:]
	_, tag, _ = strings.Cut(name, ":")
	return tag, false
}

func checkDigests(s *single, found func(hit)) {
	s.tellImages(found, "referenced by a tag", func(u usedImage) bool {
		tag, pinned := tagOf(u.image)
		return !pinned && tag != "" && tag != "latest"
	})
}

func checkLatest(s *single, found func(hit)) {
	s.tellImages(found, "referenced by the tag latest, or by no tag", func(u usedImage) bool {
		tag, pinned := tagOf(u.image)
		return !pinned && (tag == "" || tag == "latest")
	})
}
