package fuzz

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// repairs and restarts bound how long a valid object is looked for.
const (
	repairs  = 60
	restarts = 6
)

// place is where in an object a value is: keys of maps and indexes of lists.
type place []any

// repair changes object where it is not valid until it is, or gives up. A change that makes it worse is undone.
func (g *generator) repair(object map[string]any) bool {
	problems := g.Problems(object)
	worth := g.cost(object, problems)
	for try := 0; len(problems) > 0; try++ {
		if try == repairs {
			return false
		}
		g.learned = try%2 == 1
		before := runtime.DeepCopyJSON(object)
		g.mend(object, problems[g.random.IntN(len(problems))], try)
		now := g.Problems(object)
		next := g.cost(object, now)
		if next > worth && !g.chance(0.1) {
			clear(object)
			maps.Copy(object, before)
			continue
		}
		problems, worth = now, next
	}
	return true
}

// cost says how bad problems of object are. What does not fit the schema hides what its CEL rules have against it.
func (g *generator) cost(object map[string]any, problems field.ErrorList) int {
	if len(problems) > 0 && len(g.misfits(g.Read(object))) > 0 {
		return 1000 + len(problems)
	}
	return len(problems)
}

// mend changes the value that a problem is about, or what is around it.
func (g *generator) mend(object map[string]any, problem *field.Error, try int) {
	at := locate(object, pathIn(problem))
	for i := try % 4; i == 3 && len(at) > 1; i = 0 {
		at = at[:len(at)-1] // now and then what is around it
	}
	s, _ := g.schemaAt(at)
	if s != nil && len(s.XValidations) > 0 {
		rule := s.XValidations[g.random.IntN(len(s.XValidations))].Rule
		if g.mendMentioned(object, at, rule) {
			return
		}
	}
	if len(at) == 0 {
		g.change(object, 1)
		return
	}
	if g.chance(0.3) && !g.isRequired(at) {
		remove(object, at)
		return
	}
	g.renew(object, at)
}

// quoted is the path in what the API server says of a oneOf, an anyOf, an allOf or a not.
var quoted = regexp.MustCompile(`^"([^"]+)" must`)

// pathIn returns the path that a problem is about, or "".
func pathIn(problem *field.Error) string {
	if m := quoted.FindStringSubmatch(problem.Detail); m != nil && problem.Field == "<nil>" {
		return m[1]
	}
	return strings.TrimPrefix(problem.Field, "<nil>")
}

// isRequired reports whether the schema requires what is at a place.
func (g *generator) isRequired(at place) bool {
	s, inherited := g.schemaAt(at[:len(at)-1])
	name, isField := at[len(at)-1].(string)
	return s != nil && isField && g.node(s, inherited).required()[name]
}

// mention is a path of fields in a CEL rule.
var mention = regexp.MustCompile(`self((?:\.[A-Za-z_][A-Za-z0-9_]*)+)(\()?`)

// mendMentioned changes a field that rule, which is the schema's at, speaks of. It reports false if it speaks of none.
func (g *generator) mendMentioned(object map[string]any, at place, rule string) bool {
	found := mention.FindAllStringSubmatch(rule, -1)
	if len(found) == 0 {
		return false
	}
	m := found[g.random.IntN(len(found))]
	names := strings.Split(strings.TrimPrefix(m[1], "."), ".")
	if m[2] != "" {
		names = names[:len(names)-1] // a method
	}
	to := slices.Clone(at)
	for _, name := range names {
		to = append(to, unescape(name))
	}
	if len(to) == len(at) {
		return false
	}
	if len(to) == 2 && to[0] == "metadata" && to[1] == "name" {
		if name, ok := g.literal().(string); ok {
			object["metadata"] = map[string]any{"name": name}
		}
		return true
	}
	if g.chance(0.4) && !g.isRequired(to) {
		remove(object, to)
		return true
	}
	g.renew(object, to)
	return true
}

// unescape returns the field that CEL calls name (k8s.io/apiserver v0.36.3, pkg/cel/escaping.go).
func unescape(name string) string {
	if inner, ok := strings.CutPrefix(name, "__"); ok && strings.HasSuffix(inner, "__") && len(inner) > 2 && !strings.Contains(inner, "dot") {
		return strings.TrimSuffix(inner, "__")
	}
	return strings.NewReplacer("__dot__", ".", "__dash__", "-", "__slash__", "/", "__underscores__", "__").Replace(name)
}

// schemaAt returns the schema of what is at a place, and the layers that hold for it.
func (g *generator) schemaAt(at place) (*structuralschema.Structural, []*layer) {
	s, inherited := g.structural, []*layer(nil)
	for _, step := range at {
		n := g.node(s, inherited)
		if name, ok := step.(string); ok {
			s, inherited = n.property(name)
		} else {
			s, inherited = n.Items, n.items()
		}
		if s == nil {
			return nil, nil
		}
	}
	return s, inherited
}

// renew makes the value at a place anew; what leads there is made if it is not there.
func (g *generator) renew(object map[string]any, at place) {
	if len(at) == 0 || at[0] == "apiVersion" || at[0] == "kind" || at[0] == "metadata" || at[0] == "status" && g.hasStatus {
		return
	}
	var inside any = object
	for i, step := range at {
		s, layers := g.schemaAt(at[:i+1])
		if s == nil {
			return
		}
		next, has := member(inside, step)
		if i == len(at)-1 || !has {
			set(inside, step, g.value(s, layers, at[:i+1].path()))
			if !has && i < len(at)-1 {
				next, _ = member(inside, step)
			}
		}
		inside = next
	}
}

// path is the place as paths of schemas are told.
func (p place) path() string {
	path := ""
	for _, step := range p {
		if name, ok := step.(string); ok {
			path = join(path, name)
		} else {
			path += "[]"
		}
	}
	return path
}

// member returns what a map or a list has at step.
func member(inside, step any) (any, bool) {
	switch x := inside.(type) {
	case map[string]any:
		name, _ := step.(string)
		value, has := x[name]
		return value, has
	case []any:
		if i, ok := step.(int); ok && i < len(x) {
			return x[i], true
		}
	}
	return nil, false
}

// set sets what a map or a list has at step, if it can.
func set(inside, step, value any) {
	switch x := inside.(type) {
	case map[string]any:
		if name, ok := step.(string); ok {
			x[name] = value
		}
	case []any:
		if i, ok := step.(int); ok && i < len(x) {
			x[i] = value
		}
	}
}

// remove takes the value at a place away.
func remove(object map[string]any, at place) {
	if len(at) == 0 || at[0] == "apiVersion" || at[0] == "kind" || at[0] == "metadata" {
		return
	}
	var inside any = object
	for i, step := range at {
		next, has := member(inside, step)
		if !has {
			return
		}
		if i < len(at)-1 {
			inside = next
			continue
		}
		switch x := inside.(type) {
		case map[string]any:
			delete(x, step.(string))
		case []any:
			if shorter, ok := step.(int); ok {
				replace(object, at[:i], slices.Delete(slices.Clone(x), shorter, shorter+1))
			}
		}
	}
}

// replace sets the value at a place.
func replace(object map[string]any, at place, value any) {
	var inside any = object
	for i, step := range at {
		if i == len(at)-1 {
			set(inside, step, value)
			return
		}
		inside, _ = member(inside, step)
	}
}

// locate returns the place in object that a path of the API server names, as far as it is there.
func locate(object map[string]any, path string) place {
	var at place
	var inside any = object
	for path != "" {
		switch x := inside.(type) {
		case map[string]any:
			name, rest := key(x, path)
			at, path = append(at, name), rest
			inside = x[name]
		case []any:
			index, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
			i, err := strconv.Atoi(index)
			if err != nil || i < 0 || i >= len(x) {
				return at
			}
			at, path, inside = append(at, i), strings.TrimPrefix(rest, "."), x[i]
		default:
			return at
		}
	}
	return at
}

// key takes the first key of a map off path: the longest that the map has, else up to the next dot or bracket.
func key(x map[string]any, path string) (name, rest string) {
	if in, ok := strings.CutPrefix(path, "["); ok {
		name, rest, _ = strings.Cut(in, "]")
		return name, strings.TrimPrefix(rest, ".")
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	name = path[:end]
	for candidate := range x {
		after, ok := strings.CutPrefix(path, candidate)
		if ok && len(candidate) > len(name) && (after == "" || after[0] == '.' || after[0] == '[') {
			name = candidate
		}
	}
	return name, strings.TrimPrefix(path[len(name):], ".")
}

// placesOf lists the places of object's values besides its type and metadata, in order.
func placesOf(object map[string]any) []place {
	var places []place
	var visit func(at place, value any)
	visit = func(at place, value any) {
		if len(at) > 0 {
			places = append(places, slices.Clone(at))
		}
		switch x := value.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(x)) {
				if len(at) == 0 && (k == "apiVersion" || k == "kind" || k == "metadata") {
					continue
				}
				visit(append(at, k), x[k])
			}
		case []any:
			for i := range x {
				visit(append(at, i), x[i])
			}
		}
	}
	visit(nil, object)
	return places
}
