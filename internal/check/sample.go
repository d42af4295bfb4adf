package check

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/finding"
)

// sampleChecks evaluate CEL rules on the samples of both ends of an upgrade. What the schema alone says is CRD008's matter.
var sampleChecks = []Check{
	{
		Code: "CRD020", Severity: finding.Error,
		Title: "a sample of the previous release violates a CEL rule of an upgrade",
		Cause: "users have objects and manifests like the sample. After the upgrade the API server rejects the manifest where it is applied anew, and every write of " +
			"such an object that changes the field with the rule (before Kubernetes 1.30: every write)",
		Fix:        "accept in the rule what the previous release accepts, or put the rule into a new version",
		References: []string{"https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting"},
		edge:       sampleViolatesRule,
	},
	{
		Code: "CRD021", Severity: finding.Info,
		Title:      "a sample of a release cannot be applied over the previous release's sample",
		Cause:      "a CEL rule with oldSelf (a transition rule) rejects the change between the two: users who apply the new sample to an existing object get this error",
		Fix:        "check that the rule is intended, and give the new sample another name or the old value of the field",
		References: []string{"https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#transition-rules"},
		edge:       sampleCannotFollow,
	},
}

// sample is an object of alm-examples.
type sample struct {
	raw                        json.RawMessage
	group, version, kind, name string
}

func (s sample) String() string { return s.kind + " " + s.name }

// samples returns the objects of the release's alm-examples, none where they cannot be read.
func (r *release) samples() []sample { return r.shown.get(true, r.readSamples) }

func (r *release) readSamples() []sample {
	var written []json.RawMessage
	if json.Unmarshal([]byte(r.csv.Annotations["alm-examples"]), &written) != nil {
		return nil
	}
	var list []sample
	for _, raw := range written {
		head := bundle.Manifest{JSON: raw}
		if !head.Identify() {
			continue
		}
		group, version, _ := strings.Cut(head.APIVersion, "/")
		list = append(list, sample{raw, group, version, head.Kind, head.Name})
	}
	return list
}

// of reports whether the sample is of c's group and kind.
func (s sample) of(c *crd) bool { return s.group == c.Spec.Group && s.kind == c.Spec.Names.Kind }

// ruleSet are the CEL rules of a version of a CRD, compiled.
type ruleSet struct {
	*cel.Validator
	structural *structuralschema.Structural
}

// ruleSet compiles the CEL rules of a version once; nil where there are none.
func (c *crd) ruleSet(version int) *ruleSet {
	return c.compiled.get(version, func() *ruleSet {
		if read := c.schemas[version]; read != nil && !read.rules {
			return nil
		}
		_, structural := forms(c.schema(version))
		if structural == nil {
			return nil
		}
		if v := cel.NewValidator(structural, true, celconfig.PerCallLimit); v != nil {
			return &ruleSet{v, structural}
		}
		return nil
	})
}

// violations returns what the CEL rules of a version have against object, as an update of old, or as a new object where
// old is nil. The API server's own budgets bound their cost. A rule that does not compile is SCH001's matter.
func (c *crd) violations(object, old any, version int) []string {
	rules := c.ruleSet(version)
	if rules == nil || object == nil {
		return nil
	}
	problems, _ := rules.Validate(context.Background(), nil, rules.structural, object, old, celconfig.RuntimeCELCostBudget)
	var list []string
	for _, p := range problems {
		if p.Type != field.ErrorTypeInternal && !strings.HasPrefix(p.Detail, "rule compile error") {
			list = append(list, p.Error())
		}
	}
	return list
}

// valid reports whether the API server accepts an object with its defaults as a new one.
func (c *crd) valid(object any, version int) bool {
	return object != nil && len(c.misfits(object, version)) == 0 && len(c.violations(object, nil, version)) == 0
}

// sampleViolatesRule asks the rules only where an upgrade adds some: a sample that fits satisfies those that were there.
func sampleViolatesRule(s *subject, u upgrade, found func(hit)) {
	perVersion(s, u, func(before, after *crd, version string, c changes) {
		if len(c.rules) == 0 {
			return
		}
		old, next := before.served(version), after.served(version)
		for _, one := range u.from.samples() {
			if !one.of(before) || one.version != version {
				continue
			}
			object := after.defaulted(one.raw, next)
			problems := after.violations(object, nil, next)
			if len(problems) == 0 || len(after.misfits(object, next)) > 0 || !before.valid(before.defaulted(one.raw, old), old) {
				continue
			}
			found(hit{
				Subject: before.object(), path: append(after.versionPath(version), "schema", "openAPIV3Schema"),
				message: fmt.Sprintf("the sample %s of %s violates CEL rules of %s: %s", one, u.From, u.To, abridge(problems)),
			})
		}
	})
}

// transitions reports whether a version has CEL rules that compare an object with what it was.
func (c *crd) transitions(version int) bool {
	var within func(*sharedSchema) bool
	within = func(one *sharedSchema) bool {
		return one.rules && (slices.ContainsFunc(one.XValidations, func(r apiextensionsv1.ValidationRule) bool { return strings.Contains(r.Rule, "oldSelf") }) ||
			slices.ContainsFunc(one.inner, func(i inner) bool { return within(i.sharedSchema) }))
	}
	return c.schemas[version] != nil && within(c.schemas[version])
}

func sampleCannotFollow(_ *subject, u upgrade, found func(hit)) {
	newer := u.to.samples()
	for _, was := range u.from.samples() {
		i := slices.IndexFunc(newer, func(n sample) bool {
			return n.group == was.group && n.version == was.version && n.kind == was.kind && n.name == was.name
		})
		at := slices.IndexFunc(u.to.crds, was.of)
		if i < 0 || at < 0 || bytes.Equal(was.raw, newer[i].raw) {
			continue
		}
		c := u.to.crds[at]
		version := c.served(was.version)
		if version < 0 || !c.transitions(version) {
			continue
		}
		old, next := c.defaulted(was.raw, version), c.defaulted(newer[i].raw, version)
		if !c.valid(old, version) || !c.valid(next, version) {
			continue
		}
		if problems := c.violations(next, old, version); len(problems) > 0 {
			found(hit{
				Subject: c.object(), path: append(c.versionPath(was.version), "schema", "openAPIV3Schema"),
				message: fmt.Sprintf("the sample %s of %s cannot be applied over that of %s: %s", was, u.To, u.From, abridge(problems)),
			})
		}
	}
}
