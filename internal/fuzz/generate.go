package fuzz

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
)

// most is about how many values an object has.
const most = 250

// longest is the longest text that is made, and largest how many values more than most: a schema may ask for more than a machine
// holds.
const (
	longest = 4096
	largest = 1000
)

// generator makes one object.
type generator struct {
	*Schema
	random  *rand.Rand
	density float64 // the share of optional fields that the object has
	target  string  // path of a field that the object has if that can be
	budget  int     // values that may still be made of optional fields
	learned bool    // take what CEL rules compare with
}

// Object returns the valid object that seed makes, or nil where none was found. Seeds in a row set each optional field in turn.
func (s *Schema) Object(seed uint64) map[string]any {
	name := fnv.New64a()
	fmt.Fprint(name, s.definition.Name, " ", s.version)
	for restart := range uint64(restarts) {
		g := &generator{Schema: s, random: rand.New(rand.NewPCG(seed, name.Sum64()+restart)), budget: most} //nolint:gosec // a seed makes the same object again
		g.density = []float64{0.5, 0.15, 0.8, 0.3, 0}[(seed+restart)%5]
		if len(s.optional) > 0 && restart < restarts/2 {
			g.target = s.optional[seed%uint64(len(s.optional))]
		}
		object := g.root(seed)
		if g.repair(object) {
			return object
		}
	}
	for _, sample := range s.samples {
		object := runtime.DeepCopyJSON(sample)
		s.identify(object, seed)
		if len(s.Problems(object)) == 0 {
			return object
		}
	}
	return nil
}

// root returns a candidate for the whole object.
func (g *generator) root(seed uint64) map[string]any {
	n := g.node(g.structural, nil)
	if len(g.samples) > 0 && g.chance(0.3) {
		object := runtime.DeepCopyJSON(g.samples[g.random.IntN(len(g.samples))])
		g.identify(object, seed)
		g.change(object, 1+g.random.IntN(4))
		return object
	}
	object := map[string]any{}
	g.fill(n, object, "", func(name string) bool {
		return name != "apiVersion" && name != "kind" && name != "metadata" && (name != "status" || !g.hasStatus)
	})
	g.identify(object, seed)
	return object
}

// identify gives object its type and its name, and takes away what the API server sets.
func (s *Schema) identify(object map[string]any, seed uint64) {
	object["apiVersion"] = s.definition.Spec.Group + "/" + s.version
	object["kind"] = s.definition.Spec.Names.Kind
	object["metadata"] = map[string]any{"name": fmt.Sprintf("olmkit-fuzz-%d", seed)}
	if s.hasStatus {
		delete(object, "status")
	}
}

// change makes n values of object anew.
func (g *generator) change(object map[string]any, n int) {
	for range n {
		places := placesOf(object)
		if len(places) == 0 {
			return
		}
		g.renew(object, places[g.random.IntN(len(places))])
	}
}

func (g *generator) chance(p float64) bool { return g.random.Float64() < p }

// value returns a value of s, for which inherited holds, too. Most of what a schema says is kept; what is not, repair finds.
func (g *generator) value(s *structuralschema.Structural, inherited []*layer, path string) any {
	g.budget--
	n := g.node(s, inherited)
	if s.Nullable && g.chance(0.03) {
		return nil
	}
	if known := g.known[path]; len(known) > 0 && !strings.HasPrefix(g.target, path) && g.chance(0.4) {
		return runtime.DeepCopyJSONValue(known[g.random.IntN(len(known))])
	}
	if enum := n.enum(); enum != nil {
		return runtime.DeepCopyJSONValue(enum[g.random.IntN(len(enum))])
	}
	if s.Default.Object != nil && g.chance(0.2) {
		return runtime.DeepCopyJSONValue(s.Default.Object)
	}
	switch n.kind {
	case "object":
		object := map[string]any{}
		g.fill(n, object, path, func(string) bool { return true })
		return object
	case "array":
		return g.array(n, path)
	case "boolean":
		return g.chance(0.5)
	case "integer":
		return g.integer(n)
	case "number":
		return g.number(n)
	case "string":
		return g.text(n)
	}
	return g.anything()
}

// anything returns a value where the schema allows any.
func (g *generator) anything() any {
	return map[string]any{g.word(): g.word()}
}

// fill sets the fields of an object that allowed allows.
func (g *generator) fill(n node, object map[string]any, path string, allowed func(name string) bool) {
	if n.XEmbeddedResource {
		object["apiVersion"], object["kind"], object["metadata"] = "v1", "ConfigMap", map[string]any{"name": g.word()}
	}
	required, names := n.required(), n.names()
	g.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	least := int(min(n.least(0, func(l *layer) *int64 { return l.MinProperties }), largest))
	for _, name := range names {
		if !allowed(name) || n.avoid[name] || object[name] != nil || !required[name] && !g.wants(join(path, name)) && len(object) >= least {
			continue
		}
		s, layers := n.property(name)
		object[name] = g.value(s, layers, join(path, name))
	}
	for _, name := range slices.Sorted(maps.Keys(required)) {
		if _, has := object[name]; !has && allowed(name) {
			object[name] = g.member(n, name, path)
		}
	}
	g.fillMap(n, object, path, least)
	most := int(n.most(int64(len(object)), func(l *layer) *int64 { return l.MaxProperties }))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if len(object) > most && !required[name] {
			delete(object, name)
		}
	}
}

// wants reports whether the object has the optional field at path. Deep fields are rarer, so that large schemas make no giants.
func (g *generator) wants(path string) bool {
	if g.target == path || within(g.target, path) {
		return true
	}
	return g.budget > 0 && g.chance(g.density/(1+float64(strings.Count(path, "."))/4))
}

// within reports whether path leads to something inside of what outer leads to.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "[]"))
}

// member returns the value of a field that the schema of n need not know by name.
func (g *generator) member(n node, name, path string) any {
	if s, layers := n.property(name); s != nil {
		return g.value(s, layers, path+"[]")
	}
	return g.word()
}

// fillMap adds entries under names that are free to choose.
func (g *generator) fillMap(n node, object map[string]any, path string, least int) {
	free := n.AdditionalProperties != nil && (n.AdditionalProperties.Bool || n.AdditionalProperties.Structural != nil) ||
		n.XPreserveUnknownFields && len(n.Properties) == 0 && !n.XEmbeddedResource
	if !free {
		return
	}
	most := int(n.most(int64(least+3), func(l *layer) *int64 { return l.MaxProperties }))
	count := g.between(least, most)
	if within(g.target, path) {
		count = max(count, 1)
	}
	for try := 0; len(object) < count && try < 4*count && g.budget > -largest; try++ {
		object[g.word()] = g.member(n, "", path)
	}
}

// between returns a number from low to high, or low where that is none.
func (g *generator) between(low, high int) int {
	if high <= low || g.budget <= 0 {
		return low
	}
	return low + g.random.IntN(high-low+1)
}

func (g *generator) array(n node, path string) []any {
	least := int(min(n.least(0, func(l *layer) *int64 { return l.MinItems }), largest))
	most := int(n.most(int64(least+2), func(l *layer) *int64 { return l.MaxItems }))
	count := g.between(least, min(most, least+3))
	if within(g.target, path) {
		count = min(max(count, 1), most)
	}
	list := []any{}
	if n.Items == nil {
		return list
	}
	layers := n.items()
	for try := 0; len(list) < count && try < 4*count+8 && g.budget > -largest; try++ {
		item := g.value(n.Items, layers, path+"[]")
		if !slices.ContainsFunc(list, func(other any) bool { return n.clashes(item, other) }) {
			list = append(list, item)
		}
	}
	return list
}

// clashes reports whether a list of n cannot have both items.
func (n node) clashes(a, b any) bool {
	if n.XListType == nil || *n.XListType == "atomic" {
		return slices.ContainsFunc(n.layers, func(l *layer) bool { return l.UniqueItems }) && fmt.Sprint(a) == fmt.Sprint(b)
	}
	x, isMap := a.(map[string]any)
	y, areMaps := b.(map[string]any)
	if len(n.XListMapKeys) == 0 || !isMap || !areMaps {
		return fmt.Sprint(a) == fmt.Sprint(b)
	}
	return !slices.ContainsFunc(n.XListMapKeys, func(key string) bool { return keyOf(n, x, key) != keyOf(n, y, key) })
}

// keyOf returns what item has, or by default has, for a key of its list.
func keyOf(n node, item map[string]any, key string) string {
	if value, has := item[key]; has {
		return fmt.Sprint(value)
	}
	return fmt.Sprint(n.Items.Properties[key].Default.Object)
}
