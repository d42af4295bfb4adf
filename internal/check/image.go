package check

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmkit/olmkit/internal/finding"
)

// imageChecks look at the images that the operator runs.
var imageChecks = []Check{
	{
		Code: "IMG001", Severity: finding.Warning,
		Title: "an image that the operator uses is not in spec.relatedImages",
		Cause: "a registry mirror for clusters without internet access copies only the related images",
		Fix:   "add the image to spec.relatedImages, for example with 'olmkit bundle generate'",
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
			for i, r := range s.spec.Spec.RelatedImages {
				if _, pinned := tagOf(r.Image); !pinned && r.Image != "" {
					found(s.at([]any{"spec", "relatedImages", i, "image"}, "related image %s (%s) is referenced by a tag", r.Name, r.Image))
				}
			}
		}),
	},
}

// usedImage is an image of the CSV's deployments.
type usedImage struct {
	image string
	by    string
	path  []any
}

func (s *single) images() []usedImage {
	var used []usedImage
	for i, d := range s.spec.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		pod := append(slices.Clone(deploymentsPath), i, "spec", "template", "spec")
		for key, containers := range map[string][]corev1.Container{"containers": d.Spec.Template.Spec.Containers, "initContainers": d.Spec.Template.Spec.InitContainers} {
			for j, c := range containers {
				path := append(slices.Clone(pod), key, j)
				if c.Image != "" {
					used = append(used, usedImage{c.Image, "container " + c.Name, append(slices.Clone(path), "image")})
				}
				for k, env := range c.Env {
					if strings.HasPrefix(env.Name, "RELATED_IMAGE_") && env.Value != "" {
						used = append(used, usedImage{env.Value, "variable " + env.Name, append(slices.Clone(path), "env", k)})
					}
				}
			}
		}
	}
	return used
}

func checkRelatedImages(s *single, found func(hit)) {
	listed := map[string]bool{}
	for _, r := range s.spec.Spec.RelatedImages {
		listed[r.Image] = true
	}
	seen := map[string]bool{}
	for _, u := range s.images() {
		if !listed[u.image] && !seen[u.image+u.by] {
			seen[u.image+u.by] = true
			found(s.at(u.path, "image %s of %s is not in spec.relatedImages", u.image, u.by))
		}
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
	for _, u := range s.images() {
		if tag, pinned := tagOf(u.image); !pinned && tag != "" && tag != "latest" {
			found(s.at(u.path, "image %s of %s is referenced by a tag", u.image, u.by))
		}
	}
}

func checkLatest(s *single, found func(hit)) {
	for _, u := range s.images() {
		if tag, pinned := tagOf(u.image); !pinned && (tag == "" || tag == "latest") {
			found(s.at(u.path, "image %s of %s has the tag latest or no tag", u.image, u.by))
		}
	}
}
