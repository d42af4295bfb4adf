package check

import (
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func hasProperty(s *apiextensionsv1.JSONSchemaProps, name string) bool {
	_, known := s.Properties[name]
	return known
}

// compareBranches compares what an object must fit beside the schema itself: all of allOf, one of anyOf, exactly one of oneOf,
// and nothing of not.
func (c *changes) compareBranches(where, path string, before, after *apiextensionsv1.JSONSchemaProps) {
	c.compareAllOf(where, path, before, after)
	c.compareAlternatives(where, path, "anyOf", anyOf(before), anyOf(after))
	c.compareAlternatives(where, path, "oneOf", before.OneOf, after.OneOf)
	if len(before.OneOf) > 0 {
		c.compareAddedOneOf(where, before, after)
	}
	switch {
	case after.Not == nil || before.Not != nil && len(stricter(path, after.Not, before.Not)) == 0:
	case before.Not == nil:
		c.tight(where, "must not match a schema (not)")
	default:
		c.tight(where, "must not match more objects than before (not)")
	}
}

// anyOf returns the branches but for those that int-or-string stands for, which controller-gen writes beside it.
func anyOf(s *apiextensionsv1.JSONSchemaProps) []apiextensionsv1.JSONSchemaProps {
	isType := func(b apiextensionsv1.JSONSchemaProps, name string) bool {
		return reflect.DeepEqual(b, apiextensionsv1.JSONSchemaProps{Type: name})
	}
	if s.XIntOrString && slices.EqualFunc(s.AnyOf, []string{"integer", "string"}, isType) {
		return nil
	}
	return s.AnyOf
}

// stricter returns what keeps an object that fits one branch from fitting another.
func stricter(path string, before, after *apiextensionsv1.JSONSchemaProps) []string {
	c := changes{branch: true}
	c.compare(path, before, after)
	slices.Sort(c.tighter)
	return c.tighter
}

// compareAllOf: each branch of after must follow from before, be it from the schema itself or from one of its branches.
func (c *changes) compareAllOf(where, path string, before, after *apiextensionsv1.JSONSchemaProps) {
	itself := *before
	itself.AllOf = nil
	for i := range after.AllOf {
		branch := &after.AllOf[i]
		follows := func(b apiextensionsv1.JSONSchemaProps) bool { return len(stricter(path, &b, branch)) == 0 }
		if follows(itself) || slices.ContainsFunc(before.AllOf, follows) {
			continue
		}
		if len(before.AllOf) == 0 {
			c.tight(where, "must match allOf")
			return
		}
		old := &apiextensionsv1.JSONSchemaProps{}
		if i < len(before.AllOf) {
			old = &before.AllOf[i]
		}
		c.tight(where, "is stricter in allOf (%s)", abridge(stricter(path, old, branch)))
	}
}

// compareAlternatives: what fits a branch of before must fit one of after.
func (c *changes) compareAlternatives(where, path, name string, before, after []apiextensionsv1.JSONSchemaProps) {
	switch {
	case len(after) == 0:
		return
	case len(before) == 0:
		c.tight(where, "must match %s", name)
		return
	}
	for i := range before {
		branch := &before[i]
		if slices.ContainsFunc(after, func(a apiextensionsv1.JSONSchemaProps) bool { return len(stricter(path, branch, &a)) == 0 }) {
			continue
		}
		detail := ""
		if len(after) == len(before) {
			detail = fmt.Sprintf(" (%s)", abridge(stricter(path, branch, &after[i])))
		}
		c.tight(where, "has no branch of %s for objects that match the old branch %d%s", name, i+1, detail)
	}
}

// compareAddedOneOf: an object that fits one branch must not fit a new one, too.
func (c *changes) compareAddedOneOf(where string, before, after *apiextensionsv1.JSONSchemaProps) {
	for i := range after.OneOf {
		added := &after.OneOf[i]
		known := func(b apiextensionsv1.JSONSchemaProps) bool {
			return len(stricter("", &b, added)) == 0 || len(stricter("", added, &b)) == 0
		}
		if len(after.OneOf) > len(before.OneOf) && !slices.ContainsFunc(before.OneOf, known) && !isNew(before, added) {
			c.tight(where, "must not match the new branch %d of oneOf in addition to another one", i+1)
		}
	}
}

// isNew reports whether nothing that fits before can fit a branch: it requires a field that before does not have, or a value
// that before does not allow there.
func isNew(before, branch *apiextensionsv1.JSONSchemaProps) bool {
	for _, name := range branch.Required {
		old, known := before.Properties[name]
		if !known && !keepsUnknown(before) {
			return true
		}
		next, restricted := branch.Properties[name]
		allowed := func(v apiextensionsv1.JSON) bool {
			return slices.ContainsFunc(old.Enum, func(o apiextensionsv1.JSON) bool { return string(o.Raw) == string(v.Raw) })
		}
		if known && restricted && len(old.Enum) > 0 && len(next.Enum) > 0 && !slices.ContainsFunc(next.Enum, allowed) {
			return true
		}
	}
	return false
}

// keepsUnknown reports whether the API server keeps fields of an object that the schema does not name.
func keepsUnknown(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields || s.XEmbeddedResource || s.AdditionalProperties != nil
}
