package walk

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmkit/olmkit/internal/judge"
)

// request is one that is never kept: it makes an object, or changes one, so that path says value; nothing, if that is nil.
type request struct {
	judge.Asked
	path  []string
	value any
}

func requestOf(path []string, value any) request {
	r := request{Asked: judge.Asked{Field: strings.Join(path, ".")}, path: path, value: value}
	if value != nil {
		data, err := json.Marshal(value)
		if err != nil {
			panic("walk: " + err.Error()) // it came as JSON
		}
		r.Value = string(data)
	}
	return r
}

// mostAsked bounds how many requests are made of each sort.
const mostAsked = 60

// unusual lists requests by which object, of which schema is that of its version, says what the schema may allow and an operator not. The first of
// each field come first, and fields of which object says something.
func unusual(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) []request {
	spec, _ := object["spec"].(map[string]any)
	var creations, unset, updates, usual [][]request // by field
	add := func(path []string, value any, s apiextensionsv1.JSONSchemaProps) {
		var create, update, often []request
		for _, other := range unusualValues(value, s) {
			r := requestOf(path, other)
			r.Lenient = other == nil || other == "" || s.Type == "boolean" || len(s.Enum) > 0
			r.Usual = isUsual(value, other, s)
			r.None = other == int64(0) && value != nil && counts.MatchString(path[len(path)-1])
			change := r
			change.Update = true
			if r.Usual {
				often = append(often, r, change)
				continue
			}
			create, update = append(create, r), append(update, change)
		}
		if value == nil {
			unset = append(unset, create)
			return
		}
		creations, updates, usual = append(creations, create), append(updates, update), append(usual, often)
	}
	visitSchema(schema, []string{"spec"}, spec, add)
	return slices.Concat(inTurn(append(creations, unset...)), inTurn(updates), inTurn(usual))
}

// forNone are those of requests about object that ask for none of what it asks for some of, of fields that known does not have.
func forNone(schema *apiextensionsv1.JSONSchemaProps, object map[string]any, known []request) []request {
	return slices.DeleteFunc(unusual(schema, object), func(r request) bool {
		return !r.None || slices.ContainsFunc(known, func(k request) bool { return k.None && k.Field == r.Field })
	})
}

// isUsual reports whether many objects say other in a field of schema s where one says value.
func isUsual(value, other any, s apiextensionsv1.JSONSchemaProps) bool {
	switch other := other.(type) {
	case nil, bool:
		return value != nil
	case string:
		return value != nil && len(s.Enum) > 0
	case int64:
		n, is := value.(int64)
		return is && other > 0 && max(n-other, other-n) == 1
	}
	return false
}

// inTurn is the first of each of lists, then the second of each, and so on, up to mostAsked.
func inTurn(lists [][]request) []request {
	var all []request
	for i, more := 0, true; more; i++ {
		more = false
		for _, list := range lists {
			if i < len(list) {
				all, more = append(all, list[i]), true
			}
		}
	}
	return all[:min(mostAsked, len(all))]
}

// unusualValues are values besides value, which may be nil, that a field of schema s seldom has.
func unusualValues(value any, s apiextensionsv1.JSONSchemaProps) []any {
	var others []any
	switch {
	case s.XIntOrString || s.Type == "string" && len(s.Enum) == 0:
		others = []any{"!", "-1", "0"}
		if text, is := value.(string); is {
			others = append(others, text+"0", "")
		}
	case s.Type == "string":
		text, _ := value.(string)
		if other, has := choice(text, s); has {
			others = []any{other}
		}
	case s.Type == "integer" || s.Type == "number":
		others = []any{int64(0), int64(1_000_000), int64(-1)}
		if n, is := value.(int64); is {
			others = append(others, n+1, n-1)
		}
	case s.Type == "boolean":
		is, _ := value.(bool)
		others = []any{!is}
	case s.AdditionalProperties != nil:
		list, _ := value.(map[string]any)
		if s.AdditionalProperties.Schema == nil || s.AdditionalProperties.Schema.Type == "string" {
			odd := maps.Clone(list)
			if odd == nil {
				odd = map[string]any{}
			}
			odd["two words"] = "two\nlines"
			others = []any{odd}
		}
	case s.Type == "array":
		list, _ := value.([]any)
		if len(list) > 0 {
			others = []any{slices.Concat(list, list[:1]), []any{}}
			if _, texts := list[0].(string); texts {
				others = append(others, slices.Concat(list, []any{"!"}))
			}
		}
	}
	if value != nil {
		others = append(others, nil)
	}
	var all []any // but for value, each once
	for _, other := range others {
		alike := func(known any) bool { return reflect.DeepEqual(known, other) }
		if !slices.ContainsFunc(all, alike) && (other == nil || !alike(value)) {
			all = append(all, other)
		}
	}
	return all
}
