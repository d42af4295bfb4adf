package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	upstream "github.com/operator-framework/api/pkg/validation/errors"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/finding"
)

// upstreamChecks are the validators that OLM's own tools use, github.com/operator-framework/api v0.45.0 pkg/validation.
// docs/checks/upstream.md lists their rules, and those of other validators.
var upstreamChecks = []Check{
	{
		Code: "API001", Severity: finding.Error,
		Title:      "the validators of operator-framework/api report an error",
		Cause:      "catalog pipelines and operator-sdk run the same validators, and refuse the bundle",
		Fix:        "correct what the message names",
		References: []string{"https://olm.operatorframework.io/docs/tasks/validate-package/"},
		judge:      checkUpstream(func(r upstream.ManifestResult) []upstream.Error { return r.Errors }),
	},
	{
		Code: "API002", Severity: finding.Info,
		Title: "the validators of operator-framework/api report a warning",
		Cause: "catalog pipelines and operator-sdk run the same validators, and show the warning",
		Fix:   "check whether this is intended",
		judge: checkUpstream(func(r upstream.ManifestResult) []upstream.Error { return r.Warnings }),
	},
	{
		Code: "API003", Severity: finding.Info,
		Title:      "the bundle does not follow the rules of OperatorHub.io",
		Cause:      "the message comes from the validators operatorhub/v2, standardcapabilities or standardcategories; the pipeline of community-operators refuses the bundle, OLM does not",
		Fix:        "correct what the message names if you publish there",
		References: []string{"https://k8s-operatorhub.github.io/community-operators/packaging-required-fields/"},
		judge:      ofCSV(checkHub),
	},
}

// hubValidators are those of OperatorHub.io.
var hubValidators = validator.Validators{validation.OperatorHubV2Validator, validation.StandardCapabilitiesValidator, validation.StandardCategoriesValidator}

// coveredHub is said by CSV029, API001, API002 and CSV006.
var coveredHub = []string{"Icon not specified", "Provider.Name not specified", "inKubeVersion", "csv.Spec.Version must be set"}

func checkHub(s *single, found func(hit)) {
	for _, result := range validate(hubValidators, &manifests.Bundle{Name: s.csv.Name, CSV: &s.spec}) {
		for _, problem := range slices.Concat(result.Errors, result.Warnings) {
			h := s.upstreamHit(s.csv, problem)
			if !slices.ContainsFunc(coveredHub, func(part string) bool { return strings.Contains(h.message, part) }) {
				found(h)
			}
		}
	}
}

var upstreamValidators = validator.Validators{
	validation.ClusterServiceVersionValidator, validation.CustomResourceDefinitionValidator, validation.BundleValidator,
	validation.ObjectValidator, validation.AlphaDeprecatedAPIsValidator, validation.GoodPracticesValidator,
}

// coveredUpstream is said by checks of our own, with the place.
var coveredUpstream = []string{"not found in bundle", "not defined in CSV", "duplicate CRD", "example must have a provided API", "provided API should have an example annotation", "unable to find the resource requests", "owned CRDs do not have resources specified",
	"install modes not found",                    // CSV012
	"is not following the versioning convention", // CSV006
}

// coveredInCatalogs is said by the checks of catalogs.
var coveredInCatalogs = []string{"bundle name with release versioning"} // CAT012

// covered reports whether a check of ours says what upstream does.
func (s *single) covered(text string) bool {
	said := func(part string) bool { return strings.Contains(text, part) }
	return slices.ContainsFunc(coveredUpstream, said) || s.inCatalog && slices.ContainsFunc(coveredInCatalogs, said)
}

// upstreamResult is what the validators say of one manifest.
type upstreamResult struct {
	about *bundle.Manifest
	upstream.ManifestResult
}

func checkUpstream(choose func(upstream.ManifestResult) []upstream.Error) func(*single, func(hit)) {
	return ofCSV(func(s *single, found func(hit)) {
		seen := map[string]bool{}
		var images []hit
		for _, result := range s.upstream() {
			for _, problem := range choose(result.ManifestResult) {
				h := s.upstreamHit(s.about(result.about, problem), problem)
				switch key := h.Object + h.message; {
				case s.covered(h.message) || seen[key]:
				case relatedImage.MatchString(h.message):
					seen[key] = true
					images = append(images, h)
				default:
					seen[key] = true
					found(h)
				}
			}
		}
		if len(images) > 0 {
			found(s.oneOfImages(images))
		}
	})
}

// relatedImage is how the validators name a related image.
var relatedImage = regexp.MustCompile(`^relatedImages\[(\d+)\]`)

// oneOfImages makes one hit, at the first image, of those on related images.
func (s *single) oneOfImages(images []hit) hit {
	list := make([]string, len(images))
	for i, h := range images {
		list[i] = "spec." + h.message
	}
	first := relatedImage.FindString(images[0].message)
	return s.at(append([]any{"spec"}, pathOf(first)...), "%s", sentences(list))
}

// runUpstream runs the validators over each manifest, and over the bundle as a whole.
func (s *single) runUpstream() []upstreamResult {
	b := &manifests.Bundle{
		Name: s.csv.Name, Package: s.bundle.Package(), CSV: &s.spec,
		Channels: strings.Split(s.bundle.Annotations[bundle.AnnotationChannels], ","), DefaultChannel: s.bundle.Annotations[bundle.AnnotationDefaultChannel],
		CompressedSize: 1, Size: 1, // judged by CSV021
	}
	// What the results are about, since they name objects and no places.
	var subjects []*bundle.Manifest
	var objects []any
	for i := range s.crds {
		// Judged by SCH001, with the schema, which upstream leaves out, and by CSV026: upstream holds v1beta1 to v1's rules.
		b.V1CRDs = append(b.V1CRDs, &s.crds[i].spec)
	}
	for i := range s.bundle.Manifests {
		m := &s.bundle.Manifests[i]
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(m.JSON) == nil {
			b.Objects = append(b.Objects, object)
			subjects, objects = append(subjects, m), append(objects, object)
		}
	}
	subjects, objects = append(subjects, s.csv, s.csv), append(objects, &s.spec, b)
	var results []upstreamResult
	for i, object := range objects {
		for _, result := range validate(upstreamValidators, object) {
			results = append(results, upstreamResult{subjects[i], result})
		}
	}
	return results
}

// fieldInText is how the validators name a field of the CSV in words.
var fieldInText = regexp.MustCompile(`(?i)\bspec\.([a-z]+)`)

// about returns the manifest that a problem is about: the validators look at ServiceAccounts with the ClusterServiceVersion.
func (s *single) about(m *bundle.Manifest, problem upstream.Error) *bundle.Manifest {
	if !strings.Contains(problem.Detail, "invalid service account found in bundle") {
		return m
	}
	for i := range s.bundle.Manifests {
		if account := &s.bundle.Manifests[i]; account.Kind == "ServiceAccount" && account.Name == fmt.Sprint(problem.BadValue) {
			return account
		}
	}
	return m
}

func (s *single) upstreamHit(m *bundle.Manifest, problem upstream.Error) hit {
	path := pathOf(problem.Field)
	if named := fieldInText.FindStringSubmatch(problem.Detail); len(path) == 0 && named != nil && m == s.csv {
		path = []any{"spec", strings.ToLower(named[1][:1]) + named[1][1:]}
	}
	if m == s.csv && len(path) > 0 && path[0] != "metadata" && path[0] != "spec" {
		path = nil
	}
	text := problem.Detail
	if text == "" {
		text = strings.TrimPrefix(problem.Error(), string(problem.Level)+": ")
	}
	if problem.Field != "" && !strings.Contains(text, problem.Field) {
		text = problem.Field + ": " + text
	}
	return inManifest(m, path, "%s", strings.Join(strings.Fields(text), " "))
}

// validate runs validators over one object. They take for granted what a ClusterServiceVersion may lack, and
// a panic is what they say then.
func validate(validators validator.Validators, object any) (results []upstream.ManifestResult) {
	defer func() {
		if r := recover(); r != nil {
			results = []upstream.ManifestResult{{Errors: []upstream.Error{{Level: upstream.LevelError, Detail: fmt.Sprintf("the validators panic: %v", r)}}}}
		}
	}()
	return validators.Validate(object)
}
