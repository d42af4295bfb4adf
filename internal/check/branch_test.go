package check

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestBranches: what changes in allOf, anyOf, oneOf and not, and whether objects that fitted still fit.
func TestBranches(t *testing.T) {
	const fields = "{type: object, properties: {a: {type: string, maxLength: 9}, b: {type: string}, kind: {type: string, enum: [x, y]}}"
	for _, e := range []struct{ name, before, after, want string }{
		{"allOf appears", "", "allOf: [{required: [a]}]", "the object must match allOf"},
		{"allOf appears with what held before", "required: [a]", "required: [a], allOf: [{required: [a]}]", ""},
		{"allOf has a further branch", "allOf: [{required: [a]}]", "allOf: [{required: [a]}, {required: [b]}]", "the object is stricter in allOf (the object requires the field b)"},
		{"allOf is sorted otherwise", "allOf: [{required: [a]}, {required: [b]}]", "allOf: [{required: [b]}, {required: [a]}]", ""},
		{"allOf restricts a further field", "allOf: [{properties: {a: {minLength: 1}}}]", "allOf: [{properties: {a: {minLength: 1}, b: {minLength: 2}}}]",
			"the object is stricter in allOf (b has minLength 2)"},
		{"allOf restricts a field more", "allOf: [{properties: {a: {maxLength: 5}}}]", "allOf: [{properties: {a: {maxLength: 4}}}]",
			"the object is stricter in allOf (a has maxLength 4)"},
		{"allOf restricts a field less", "allOf: [{properties: {a: {maxLength: 5}}}]", "allOf: [{properties: {a: {maxLength: 6}}}]", ""},
		{"allOf goes", "allOf: [{required: [a]}]", "", ""},
		{"anyOf appears", "", "anyOf: [{required: [a]}]", "the object must match anyOf"},
		{"anyOf has a further branch", "anyOf: [{required: [a]}]", "anyOf: [{required: [a]}, {required: [b]}]", ""},
		{"anyOf loses a branch", "anyOf: [{required: [a]}, {required: [b]}]", "anyOf: [{required: [a]}]", "the object has no branch of anyOf for objects that match the old branch 2"},
		{"anyOf has a stricter branch", "anyOf: [{required: [a]}, {required: [b]}]", "anyOf: [{required: [a, b]}, {required: [b]}]",
			"the object has no branch of anyOf for objects that match the old branch 1 (the object requires the field b)"},
		{"oneOf loses a branch", "oneOf: [{required: [a]}, {required: [b]}]", "oneOf: [{required: [a]}]", "the object has no branch of oneOf for objects that match the old branch 2"},
		{"oneOf has a branch for an old field", "oneOf: [{required: [a]}]", "oneOf: [{required: [a]}, {required: [b]}]",
			"the object must not match the new branch 2 of oneOf in addition to another one"},
		{"oneOf has a branch for a new field", "oneOf: [{required: [a]}]", "oneOf: [{required: [a]}, {required: [c]}]", ""},
		{"oneOf has a branch for a new value", "oneOf: [{required: [kind], properties: {kind: {enum: [x]}}}]",
			"oneOf: [{required: [kind], properties: {kind: {enum: [x]}}}, {required: [kind], properties: {kind: {enum: [z]}}}]", ""},
		{"not appears", "", "not: {required: [a]}", "the object must not match a schema (not)"},
		{"not forbids more", "not: {required: [a, b]}", "not: {required: [a]}", "the object must not match more objects than before (not)"},
		{"not forbids less", "not: {required: [a]}", "not: {required: [a, b]}", ""},
	} {
		t.Run(e.name, func(t *testing.T) {
			c := compare(schemaOf(t, fields+", "+e.before+"}"), schemaOf(t, fields+", "+e.after+"}"))
			if got := strings.Join(c.tighter, "; "); got != e.want {
				t.Errorf("got %q, want %q", got, e.want)
			}
		})
	}
}

// A field that becomes an integer or a string is looser: controller-gen writes that with an anyOf.
func TestIntOrString(t *testing.T) {
	before := schemaOf(t, "{type: integer}")
	after := schemaOf(t, "{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}")
	if c := compare(before, after); len(c.tighter) > 0 {
		t.Errorf("%v", c.tighter)
	}
}

// OLM does not evaluate CEL rules, so they hold up later writes and not the InstallPlan.
func TestCELRulesApart(t *testing.T) {
	c := compare(schemaOf(t, "{type: integer}"), schemaOf(t, "{type: integer, x-kubernetes-validations: [{rule: self > 1}, {rule: self == oldSelf}]}"))
	if got := strings.Join(c.rules, "; "); len(c.tighter) > 0 || got != `the object can change only as "self == oldSelf" allows; the object must satisfy "self > 1"` {
		t.Errorf("tighter %v, rules %s", c.tighter, got)
	}
}

func schemaOf(t *testing.T, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	s := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(text, ", }", "}")), s); err != nil {
		t.Fatal(err)
	}
	return s
}
