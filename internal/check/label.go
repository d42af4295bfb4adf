package check

import (
	"fmt"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/finding"
)

// labelChecks hold a bundle's image to what is in it.
var labelChecks = []Check{
	{
		Code: "CSV038", Severity: finding.Warning,
		Title: "the labels of the bundle image differ from the bundle's annotations",
		Cause: "opm and pipelines read the labels of the image (operator-registry v1.74.0, alpha/action/render.go), OLM reads metadata/annotations.yaml: they see two different bundles",
		Fix:   "build the image again from the current bundle, for example with 'olmkit bundle push'",
		judge: checkLabels,
	},
}

// checkLabels looks at bundles that were read from an image.
func checkLabels(s *single, found func(hit)) {
	if s.bundle.Labels == nil {
		return
	}
	for _, name := range []string{
		bundle.AnnotationMediaType, bundle.AnnotationManifests, bundle.AnnotationMetadata,
		bundle.AnnotationPackage, bundle.AnnotationChannels, bundle.AnnotationDefaultChannel,
	} {
		said, labelled := s.bundle.Annotations[name], s.bundle.Labels[name]
		switch {
		case said == labelled || said == "": // a missing annotation is another check's matter
		case labelled == "":
			found(hit{at: s.bundle.AnnotationsAt, message: fmt.Sprintf("the image has no label %s; in annotations.yaml it is %q", name, said)})
		default:
			found(hit{at: s.bundle.AnnotationsAt, message: fmt.Sprintf("the image's label %s is %q, but in annotations.yaml it is %q", name, labelled, said)})
		}
	}
}
