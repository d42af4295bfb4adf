package fuzz

import (
	"maps"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// layer is what a schema says of a value besides its structure: the schema's own value validation, or a branch of allOf, anyOf or
// oneOf.
type layer = structuralschema.NestedValueValidation

// node is a value to be made: its structure, and the layers that hold for it once each anyOf and oneOf has been decided.
type node struct {
	*structuralschema.Structural
	layers []*layer
	kind   string          // JSON type
	avoid  map[string]bool // fields that a branch which was not taken requires, or which must not be there
}

// node decides which branches hold for a value of s, for which inherited layers hold, too.
func (g *generator) node(s *structuralschema.Structural, inherited []*layer) node {
	n := node{Structural: s, kind: s.Type, avoid: map[string]bool{}}
	if s.ValueValidation != nil {
		g.decide(&n, &layer{ValueValidation: *s.ValueValidation})
	}
	for _, l := range inherited {
		g.decide(&n, l)
	}
	switch {
	case n.kind == "" && s.XIntOrString:
		n.kind = []string{"integer", "string"}[g.random.IntN(2)]
	case n.kind == "" && (len(s.Properties) > 0 || s.AdditionalProperties != nil || s.XEmbeddedResource):
		n.kind = "object"
	}
	if slices.ContainsFunc(n.layers, func(l *layer) bool { return l.Pattern == quantity }) {
		n.kind = "string" // whoever reads a number as a quantity writes a string
	}
	for name := range n.required() {
		delete(n.avoid, name)
	}
	return n
}

// decide adds l to n, all of its allOf, and one branch of its anyOf and its oneOf.
func (g *generator) decide(n *node, l *layer) {
	n.layers = append(n.layers, l)
	if l.ForbiddenGenerics.Type != "" {
		n.kind = l.ForbiddenGenerics.Type
	}
	for i := range l.AllOf {
		g.decide(n, &l.AllOf[i])
	}
	if len(l.AnyOf) > 0 {
		g.decide(n, &l.AnyOf[g.random.IntN(len(l.AnyOf))])
	}
	if len(l.OneOf) > 0 {
		taken := g.random.IntN(len(l.OneOf))
		g.decide(n, &l.OneOf[taken])
		for i := range l.OneOf {
			if i != taken {
				avoidAll(n, l.OneOf[i].Required)
			}
		}
	}
	if l.Not != nil {
		if len(l.Not.Required) > 0 {
			n.avoid[l.Not.Required[g.random.IntN(len(l.Not.Required))]] = true
		}
		for _, branch := range l.Not.AnyOf {
			avoidAll(n, branch.Required)
		}
	}
}

func avoidAll(n *node, names []string) {
	for _, name := range names {
		n.avoid[name] = true
	}
}

// required are the fields that n has to have.
func (n node) required() map[string]bool {
	names := map[string]bool{}
	for _, l := range n.layers {
		for _, name := range l.Required {
			names[name] = true
		}
	}
	return names
}

// property returns the schema and the layers of n's field called name, or nil where the schema does not know it.
func (n node) property(name string) (*structuralschema.Structural, []*layer) {
	var layers []*layer
	if p, ok := n.Properties[name]; ok {
		for _, l := range n.layers {
			if of, ok := l.Properties[name]; ok {
				layers = append(layers, &of)
			}
		}
		return &p, layers
	}
	if n.AdditionalProperties == nil || n.AdditionalProperties.Structural == nil {
		return nil, nil
	}
	for _, l := range n.layers {
		if l.AdditionalProperties != nil {
			layers = append(layers, l.AdditionalProperties)
		}
	}
	return n.AdditionalProperties.Structural, layers
}

// items returns the layers of n's items.
func (n node) items() []*layer {
	var layers []*layer
	for _, l := range n.layers {
		if l.Items != nil {
			layers = append(layers, l.Items)
		}
	}
	return layers
}

// enum returns the values of which n is one, the fewest that a layer names, or nil.
func (n node) enum() []any {
	var fewest []structuralschema.JSON
	for _, l := range n.layers {
		if len(l.Enum) > 0 && (fewest == nil || len(l.Enum) < len(fewest)) {
			fewest = l.Enum
		}
	}
	var values []any
	for _, value := range fewest {
		values = append(values, value.Object)
	}
	return values
}

// least returns the largest of what limit says in n's layers, or otherwise.
func (n node) least(otherwise int64, limit func(*layer) *int64) int64 {
	return n.limit(otherwise, limit, func(a, b int64) int64 { return max(a, b) })
}

// most returns the smallest of what limit says in n's layers, or otherwise.
func (n node) most(otherwise int64, limit func(*layer) *int64) int64 {
	return n.limit(otherwise, limit, func(a, b int64) int64 { return min(a, b) })
}

func (n node) limit(otherwise int64, limit func(*layer) *int64, better func(a, b int64) int64) int64 {
	found, value := false, otherwise
	for _, l := range n.layers {
		if said := limit(l); said != nil {
			if !found {
				value = *said
			}
			found, value = true, better(value, *said)
		}
	}
	return value
}

// names returns the properties that n's schema knows, sorted.
func (n node) names() []string { return slices.Sorted(maps.Keys(n.Properties)) }
