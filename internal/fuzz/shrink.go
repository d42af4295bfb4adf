package fuzz

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// batch is how many smaller objects are tried at the same time, and rounds how often.
const (
	batch  = 16
	rounds = 400
)

// Shrink returns the least valid object that it finds of those that fails holds to fail, as object does. fails tells for each of the
// objects that it gets.
func (s *Schema) Shrink(object map[string]any, fails func([]map[string]any) ([]bool, error)) (map[string]any, error) {
	least := object
	for round := 0; round < rounds; {
		smaller, err := s.smaller(least, fails, &round)
		if err != nil || smaller == nil {
			return least, err
		}
		least = smaller
	}
	return least, nil
}

// smaller returns the first of the candidates for object that is valid and fails, or nil.
func (s *Schema) smaller(object map[string]any, fails func([]map[string]any) ([]bool, error), round *int) (map[string]any, error) {
	var valid []map[string]any
	try := func() (map[string]any, error) {
		*round++
		failed, err := fails(valid)
		if err != nil {
			return nil, err
		}
		if i := slices.Index(failed, true); i >= 0 {
			return valid[i], nil
		}
		valid = nil
		return nil, nil
	}
	for candidate := range candidates(object) {
		if len(s.Problems(candidate)) > 0 {
			continue
		}
		if valid = append(valid, candidate); len(valid) == batch {
			if found, err := try(); err != nil || found != nil {
				return found, err
			}
		}
	}
	if len(valid) == 0 {
		return nil, nil
	}
	return try()
}

// candidates are objects that are smaller than object by one step: without one of its values, the largest first, or with a simpler
// one in its place.
func candidates(object map[string]any) func(yield func(map[string]any) bool) {
	places := placesOf(object)
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(sizeAt(object, b), sizeAt(object, a)) })
	return func(yield func(map[string]any) bool) {
		for _, p := range places {
			smaller := runtime.DeepCopyJSON(object)
			remove(smaller, p)
			if !yield(smaller) {
				return
			}
		}
		for _, p := range places {
			for _, value := range simpler(valueAt(object, p)) {
				smaller := runtime.DeepCopyJSON(object)
				replace(smaller, p, value)
				if !yield(smaller) {
					return
				}
			}
		}
	}
}

// simpler returns values that are simpler than value, the simplest first.
func simpler(value any) []any {
	switch x := value.(type) {
	case int64:
		return below([]any{int64(1), int64(2)}, value)
	case float64:
		return []any{int64(1), 0.5}[:min(2, int(max(0, 2*x-1)))]
	case string:
		if len(x) > 1 {
			return []any{"a", x[:1]}
		}
	case bool:
		if !x {
			return []any{true}
		}
	}
	return nil
}

// below returns the values of list that come before value.
func below(list []any, value any) []any {
	if i := slices.Index(list, value); i >= 0 {
		return list[:i]
	}
	return list
}

// valueAt returns the value at a place of object.
func valueAt(object map[string]any, p place) any {
	var inside any = object
	for _, step := range p {
		inside, _ = member(inside, step)
	}
	return inside
}

// sizeAt is the number of values in the value at a place of object.
func sizeAt(object map[string]any, p place) int {
	var size func(value any) int
	size = func(value any) int {
		n := 1
		switch x := value.(type) {
		case map[string]any:
			for _, v := range x {
				n += size(v)
			}
		case []any:
			for _, v := range x {
				n += size(v)
			}
		}
		return n
	}
	return size(valueAt(object, p))
}
