package walk

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// step is a change of the field at Path of an object and the one that takes it back, as JSON merge patches.
type step struct {
	Path        string
	There, Back []byte
}

func stepOf(path []string, there, back any) step {
	return step{strings.Join(path, "."), patchOf(path, there), patchOf(path, back)}
}

var (
	// counts are fields that say how many of something there are to be, which every operator acts on.
	counts = regexp.MustCompile(`(?i)^(replicas?|size|instances|nodes|members|count|.*(Replicas|Count|Size|Instances|Members))$`)
	// delicate are numbers that are no harmless ones to change.
	delicate = regexp.MustCompile(`(?i)port|uid|gid|user|group|version|generation|priority|percent|mode`)
)

// harmless lists changes of object that an operator should notice and its users would hardly: one more of what it counts,
// then another number of its spec, then an annotation. schema is that of the object's version; nil if it is not known.
func harmless(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) []step {
	var first, others []step
	spec, _ := object["spec"].(map[string]any)
	visitNumbers(schema, []string{"spec"}, spec, func(path []string, value int64, s apiextensionsv1.JSONSchemaProps) {
		name := path[len(path)-1]
		next, ok := neighbour(value, s)
		c := stepOf(path, next, value)
		switch {
		case !ok:
		case counts.MatchString(name):
			first = append(first, c)
		case !delicate.MatchString(name):
			others = append(others, c)
		}
	})
	note := []string{"metadata", "annotations", nudgeNote}
	return append(append(first, others...), stepOf(note, "1", nil))
}

// nudgeNote is the annotation of the last resort.
const nudgeNote = "olmkit.dev/nudge"

// maxDepth is how deep below spec a number is looked for.
const maxDepth = 4

// visitNumbers calls found for each integer below value that schema knows, in order; not within lists, which merge patches
// replace as a whole.
func visitNumbers(schema *apiextensionsv1.JSONSchemaProps, path []string, value map[string]any, found func([]string, int64, apiextensionsv1.JSONSchemaProps)) {
	if schema == nil || len(path) > maxDepth {
		return
	}
	properties := schema.Properties
	if len(path) == 1 {
		properties = schema.Properties["spec"].Properties
	}
	for _, k := range slices.Sorted(maps.Keys(value)) {
		p, known := properties[k]
		if !known {
			continue
		}
		at := append(slices.Clone(path), k)
		switch v := value[k].(type) {
		case int64:
			if p.Type == "integer" && len(p.Enum) == 0 {
				found(at, v, p)
			}
		case map[string]any:
			visitNumbers(&p, at, v, found)
		}
	}
}

// neighbour returns the number next to value that s allows, the larger one first.
func neighbour(value int64, s apiextensionsv1.JSONSchemaProps) (int64, bool) {
	for _, n := range []int64{value + 1, value - 1} {
		if n > 0 && (s.Maximum == nil || float64(n) <= *s.Maximum) && (s.Minimum == nil || float64(n) >= *s.Minimum) {
			return n, true
		}
	}
	return 0, false
}

// patchOf is the merge patch that sets the field at path to value.
func patchOf(path []string, value any) []byte {
	for _, k := range slices.Backward(path) {
		value = map[string]any{k: value}
	}
	data, err := json.Marshal(value)
	if err != nil {
		panic("walk: " + err.Error()) // strings and numbers always can be
	}
	return data
}
