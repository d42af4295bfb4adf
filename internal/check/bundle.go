package check

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// single is one bundle, which the checks with a judge look at.
type single struct {
	bundle *bundle.Bundle
	csv    *bundle.Manifest // nil when there is none
	spec   v1alpha1.ClusterServiceVersion
	failed error // why spec could not be read
	crds   []ownedCRD

	declared []bundle.Property // dependencies and properties: of metadata/ and the CSV's annotation, in a catalog those of the olm.bundle

	registry  Registry // of its images; nil when none was asked
	inCatalog bool     // the checks of catalogs look at it as well

	upstream func() []upstreamResult // of the validators of operator-framework/api
}

// ownedCRD is a CustomResourceDefinition of the bundle.
type ownedCRD struct {
	*bundle.Manifest
	spec apiextensionsv1.CustomResourceDefinition // the one that was read
	read *crd
}

// bundleChecks are the checks of one bundle for itself.
func bundleChecks() []Check {
	return slices.Concat(upstreamChecks, csvChecks, deploymentChecks, schemaChecks, imageChecks, rbacChecks, webhookChecks, labelChecks, registryChecks, olmV1BundleChecks)
}

// loneChecks are the checks of a bundle that is in no catalog.
func loneChecks() []Check {
	checks := bundleChecks()
	for _, c := range All() {
		if c.alone != nil {
			c.judge = c.alone
			checks = append(checks, c)
		}
	}
	return checks
}

// BundleCodes are the codes of the checks that Bundle runs, with a registry or without.
func BundleCodes(registry bool) []string {
	var options Options
	if registry {
		options.Registry = Registry{}
	}
	var codes []string
	for _, check := range loneChecks() {
		if check.possible(options) {
			codes = append(codes, check.Code)
		}
	}
	return codes
}

// Bundle runs the checks of single bundles over b and returns what they found, in the order of the places. The registry is
// of its Images, or nil when none was asked.
func Bundle(b *bundle.Bundle, registry Registry) []finding.Finding {
	s := newSingle(b, &schemaReader{})
	s.registry = registry
	var findings []finding.Finding
	for _, check := range loneChecks() {
		check.judge(s, func(h hit) {
			h.Package = b.Package()
			if s.csv != nil {
				h.From = s.csv.Name
			}
			findings = append(findings, check.finding(h))
		})
	}
	finding.Sort(findings)
	return findings
}

func newSingle(b *bundle.Bundle, schemas *schemaReader) *single {
	s := &single{bundle: b, csv: b.CSV()}
	s.upstream = sync.OnceValue(s.runUpstream)
	if s.csv != nil {
		if s.failed = json.Unmarshal(s.csv.JSON, &s.spec); s.failed != nil {
			s.spec = v1alpha1.ClusterServiceVersion{}
		}
	}
	annotated, _ := catalog.AnnotatedProperties(s.spec.Annotations) // API002 says that it cannot be read
	s.declared = slices.Concat(b.Dependencies, b.Properties, annotated)
	for i := range b.Manifests {
		m := &b.Manifests[i]
		if !isCRD(m.APIVersion, m.Kind) {
			continue
		}
		if read := schemas.crd(m.APIVersion, m.JSON); read != nil {
			s.crds = append(s.crds, ownedCRD{Manifest: m, spec: *read.CustomResourceDefinition, read: read})
		}
	}
	return s
}

// crd returns the bundle's CRD called name, or nil.
func (s *single) crd(name string) *ownedCRD {
	for i := range s.crds {
		if s.crds[i].Name == name {
			return &s.crds[i]
		}
	}
	return nil
}

// deployment returns the CSV's deployment called name, or nil.
func (s *single) deployment(name string) *v1alpha1.StrategyDeploymentSpec {
	deployments := s.spec.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range deployments {
		if deployments[i].Name == name {
			return &deployments[i]
		}
	}
	return nil
}

// at is a hit at the field at path of the CSV.
func (s *single) at(path []any, format string, args ...any) hit {
	return inManifest(s.csv, path, format, args...)
}

// inManifest is a hit at the field at path of m.
func inManifest(m *bundle.Manifest, path []any, format string, args ...any) hit {
	return hit{
		Subject: finding.Subject{Object: m.Kind + "/" + m.Name},
		at:      m.Document.Place(path...),
		message: fmt.Sprintf(format, args...),
	}
}

// ofCSV is a check of a CSV that could be read; without one there is nothing to look at.
func ofCSV(look func(*single, func(hit))) func(*single, func(hit)) {
	return func(s *single, found func(hit)) {
		if s.csv != nil && s.failed == nil {
			look(s, found)
		}
	}
}

// fieldStep is one step of a path as sigs.k8s.io/json writes it: a name, or an index in brackets.
var fieldStep = regexp.MustCompile(`\[(\d+)\]|[^.\[\]]+`)

// pathOf splits a path such as spec.install.spec.deployments[0].name into steps.
func pathOf(written string) []any {
	var path []any
	for _, m := range fieldStep.FindAllStringSubmatch(written, -1) {
		if m[1] != "" {
			if i, err := strconv.Atoi(m[1]); err == nil {
				path = append(path, i)
				continue
			}
		}
		path = append(path, strings.Trim(m[0], `"`))
	}
	return path
}
