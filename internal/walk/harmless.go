package walk

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/olmkit/olmkit/internal/judge"
)

// step is a change of the field at Path of an object and the one that takes it back, as JSON merge patches.
type step struct {
	Path        string
	There, Back []byte
	Entry       [2]string // the key and the value that are taken out of a map; none if that is no entry of one
}

func stepOf(path []string, there, back any) step {
	return step{Path: strings.Join(path, "."), There: patchOf(path, there), Back: patchOf(path, back)}
}

var (
	// counts are fields that say how many of something there are to be, which every operator acts on.
	counts = regexp.MustCompile(`(?i)^(replicas?|size|instances|nodes|members|count|.*(Replicas|Count|Size|Instances|Members))$`)
	// limiting are counts of what there may be or was, which much does not follow at once.
	limiting = regexp.MustCompile(`(?i)^(min|max|history|backup|cache|batch|pool|buffer|queue|log|retr).*(Replicas|Count|Size|Instances|Members|Limit)$`)
	// ports are numbers that others reach, which only what nobody uses may change; the node has one of each of the others.
	ports, nodePorts = regexp.MustCompile(`^port$|Port$`), regexp.MustCompile(`(?i)(node|host)Port$`)
	// delicate are numbers that are no harmless ones to change.
	delicate = regexp.MustCompile(`(?i)port|uid|gid|user|group|version|generation|priority|percent|mode`)
)

// harmless lists changes of object that an operator should notice and its users would hardly: one more or less of what it counts, rather than
// of what limits or times that, then another number of its spec, then an annotation. schema is that of the object's version; nil if it is not known.
func harmless(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) []step {
	var first, limits, others []step
	spec, _ := object["spec"].(map[string]any)
	visitFields(schema, []string{"spec"}, spec, func(path []string, value any, s apiextensionsv1.JSONSchemaProps) {
		number, ok := value.(int64)
		if !ok || s.Type != "integer" || len(s.Enum) > 0 {
			return
		}
		for _, next := range neighbours(number, s) {
			switch name, c := path[len(path)-1], stepOf(path, next, value); {
			case limiting.MatchString(name):
				limits = append(limits, c)
			case counts.MatchString(name):
				first = append(first, c)
			case !delicate.MatchString(name):
				others = append(others, c)
			}
		}
	})
	note := []string{"metadata", "annotations", nudgeNote}
	// The nearer to the top a count is, the more it is the object's own.
	nearestFirst(first)
	return append(slices.Concat(first, limits, others), stepOf(note, "1", nil))
}

// nearestFirst sorts steps by how far from the top their fields are.
func nearestFirst(steps []step) {
	slices.SortStableFunc(steps, func(a, b step) int { return strings.Count(a.Path, ".") - strings.Count(b.Path, ".") })
}

// partition separates the steps whose field is wanted from the others.
func partition(steps []step, wanted func(path string) bool) (first, others []step) {
	for _, s := range steps {
		if wanted(s.Path) {
			first = append(first, s)
		} else {
			others = append(others, s)
		}
	}
	return first, others
}

// nudgeNote is the annotation of the last resort.
const nudgeNote = "olmkit.dev/nudge"

// bold lists changes of an object that nobody uses: another number that counts nothing, one entry less of a map, the other of two choices. Each that
// is taken back before the next is tried shows by itself what an operator makes of it.
func bold(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) []step {
	var steps []step
	spec, _ := object["spec"].(map[string]any)
	visitFields(schema, []string{"spec"}, spec, func(path []string, value any, s apiextensionsv1.JSONSchemaProps) {
		switch value := value.(type) {
		case int64:
			if other, ok := otherNumber(path[len(path)-1], value, s); ok {
				steps = append(steps, stepOf(path, other, value))
			}
		case bool:
			steps = append(steps, stepOf(path, !value, value))
		case string:
			if other, ok := choice(value, s); ok {
				steps = append(steps, stepOf(path, other, value))
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(value))[:min(1, len(value))] {
				entry := append(slices.Clone(path), k)
				steps = append(steps, step{strings.Join(path, "."), patchOf(entry, nil), patchOf(entry, value[k]), [2]string{k, fmt.Sprint(value[k])}})
			}
		}
	})
	return steps
}

// zeros lists changes of an object that each set a number that counts nothing to 0, where the schema allows that: who takes 0 for left out goes on with what is usual.
func zeros(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) (steps []step) {
	spec, _ := object["spec"].(map[string]any)
	visitFields(schema, []string{"spec"}, spec, func(path []string, value any, s apiextensionsv1.JSONSchemaProps) {
		n, is := value.(int64)
		name := path[len(path)-1]
		if !is || n == 0 || s.Minimum != nil && *s.Minimum > 0 || len(s.Enum) > 0 || counts.MatchString(name) || ports.MatchString(name) || delicate.MatchString(name) {
			return
		}
		steps = append(steps, countStep(object, path, 0, judge.None))
	})
	return steps
}

// unset lists changes of an object that each give a field which it leaves out a value that give knows, those nearest to the top first.
func unset(schema *apiextensionsv1.JSONSchemaProps, object map[string]any, give giver) (steps []step) {
	spec, _ := object["spec"].(map[string]any)
	visitSchema(schema, []string{"spec"}, spec, func(path []string, value any, s apiextensionsv1.JSONSchemaProps) {
		if value != nil {
			return
		}
		if value, ok := give(path, s); ok {
			steps = append(steps, stepOf(path, value, nil))
		}
	})
	nearestFirst(steps)
	return steps
}

// fewer lists changes of an object that nobody uses that leave less of what there are many of: one of what its topmost count counts, and a list without its last item. An operator has
// to delete then what it made for it. The count stays where claims would go.
func fewer(schema *apiextensionsv1.JSONSchemaProps, object map[string]any, claims bool) (steps []step) {
	one := nearestCount(schema, object, func(_ []string, value any, s apiextensionsv1.JSONSchemaProps) bool {
		n, is := value.(int64)
		return is && n > 1 && (s.Minimum == nil || *s.Minimum <= 1) && len(s.Enum) == 0
	})
	if one != nil && !claims {
		steps = append(steps, countStep(object, one, 1, judge.One))
	}
	spec, _ := object["spec"].(map[string]any)
	visitFields(schema, []string{"spec"}, spec, func(path []string, value any, _ apiextensionsv1.JSONSchemaProps) {
		list, is := value.([]any)
		if is && len(list) > 0 && !stored.MatchString(strings.Join(path, ".")) {
			c := stepOf(path, list[:len(list)-1], list)
			c.Path += judge.Fewer
			steps = append(steps, c)
		}
	})
	return steps
}

// stored matches fields on which it depends where data are.
var stored = regexp.MustCompile(`(?i)storage|volume|pvc|disk|persist|^data$`)

// leftOut lists changes of an object that leave out a text of its spec which it may leave out, for which no default is known; not of what pods are to have of a node, where
// the API server fills in what is left out.
func leftOut(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) (steps []step) {
	spec, _ := object["spec"].(map[string]any)
	visitFields(schema, []string{"spec"}, spec, func(path []string, value any, s apiextensionsv1.JSONSchemaProps) {
		given := stored.MatchString(strings.Join(path, ".")) || slices.Contains(path, "resources")
		if text, is := value.(string); is && text != "" && s.Default == nil && !isRequired(schema, path) && !given {
			c := stepOf(path, nil, text)
			c.Path += judge.LeftOut
			steps = append(steps, c)
		}
	})
	return steps
}

// partsLeftOut are the changes of an object that each leave out a part of its spec, with all that is in it, which it may leave out, and on which no data
// depend.
func partsLeftOut(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) (steps []step) {
	spec, _ := object["spec"].(map[string]any)
	var visit func(schema apiextensionsv1.JSONSchemaProps, path []string, value map[string]any)
	visit = func(schema apiextensionsv1.JSONSchemaProps, path []string, value map[string]any) {
		for _, k := range slices.Sorted(maps.Keys(schema.Properties)) {
			p, at := schema.Properties[k], append(slices.Clone(path), k)
			part, is := value[k].(map[string]any)
			switch {
			case !is || len(p.Properties) == 0:
			case slices.Contains(schema.Required, k):
				visit(p, at, part)
			case p.Default == nil && !storing(k, part):
				steps = append(steps, stepOf(at, nil, part))
			}
		}
	}
	if schema != nil {
		visit(schema.Properties["spec"], []string{"spec"}, spec)
	}
	return steps
}

// storing reports whether it may depend on the field called name, or on one in its value, where data are.
func storing(name string, value any) bool {
	if stored.MatchString(name) {
		return true
	}
	inner, _ := value.(map[string]any)
	for k, v := range inner {
		if storing(k, v) {
			return true
		}
	}
	return false
}

// toNone is the change of the count of object that is nearest to the top to 0, where schema allows that; nil if there is none.
func toNone(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) *step {
	path := nearestCount(schema, object, func(_ []string, value any, s apiextensionsv1.JSONSchemaProps) bool {
		n, is := value.(int64)
		return is && n != 0 && (s.Minimum == nil || *s.Minimum <= 0) && len(s.Enum) == 0
	})
	if path == nil {
		return nil
	}
	c := countStep(object, path, 0, judge.None)
	return &c
}

// countStep is the change of the number of object at path to n, which what follows its path says.
func countStep(object map[string]any, path []string, n int64, what string) step {
	was, _, _ := unstructured.NestedInt64(object, path...)
	c := stepOf(path, n, was)
	c.Path += what
	return c
}

// nearestCount is the path of the count that is nearest to the top, of those of object, which may leave it out, that fit; nil if there is none.
func nearestCount(schema *apiextensionsv1.JSONSchemaProps, object map[string]any, fits func([]string, any, apiextensionsv1.JSONSchemaProps) bool) (nearest []string) {
	spec, _ := object["spec"].(map[string]any)
	visitSchema(schema, []string{"spec"}, spec, func(path []string, value any, s apiextensionsv1.JSONSchemaProps) {
		name := path[len(path)-1]
		if counts.MatchString(name) && !limiting.MatchString(name) && fits(path, value, s) && (nearest == nil || len(path) < len(nearest)) {
			nearest = path
		}
	})
	return nearest
}

// asBefore are those of steps that were followed before, and up to most that were not tried: what nothing followed is not tried again.
func asBefore(steps []step, follows map[string]int, most int) []step {
	untried := 0
	return slices.DeleteFunc(steps, func(s step) bool {
		times, tried := follows[s.Path]
		if !tried {
			untried++
		}
		return tried && times < judge.Surely || !tried && untried > most
	})
}

// isRequired reports whether schema requires the field at path of whatever has it.
func isRequired(schema *apiextensionsv1.JSONSchemaProps, path []string) bool {
	within := *schema
	for _, k := range path[:len(path)-1] {
		within = within.Properties[k]
	}
	return slices.Contains(within.Required, path[len(path)-1])
}

// How many changes of an object are tried at most that were not tried under the release before: others, and those that switch on what is left out, give it a value, set a number to 0, leave out a text, or leave fewer.
const (
	mostBold    = 48
	mostUnset   = 12
	mostGiven   = 10
	mostZeros   = 4
	mostLeftOut = 12
	mostFewer   = 8
)

// choice returns another value than value of those that s allows.
func choice(value string, s apiextensionsv1.JSONSchemaProps) (string, bool) {
	if others := otherWords(value, s); len(others) > 0 {
		return others[0], true
	}
	return "", false
}

// otherWords are the values besides value that s allows, if it is a choice of words.
func otherWords(value any, s apiextensionsv1.JSONSchemaProps) (others []string) {
	for _, raw := range s.Enum {
		var other string
		if json.Unmarshal(raw.Raw, &other) == nil && other != value && other != "" {
			others = append(others, other)
		}
	}
	return others
}

// maxDepth is how deep below spec a field is looked for.
const maxDepth = 4

// visitFields calls found for each number, choice, string and map of strings below value that schema knows, in order; not within
// lists, which merge patches replace as a whole.
func visitFields(schema *apiextensionsv1.JSONSchemaProps, path []string, value map[string]any, found func([]string, any, apiextensionsv1.JSONSchemaProps)) {
	visitSchema(schema, path, value, func(path []string, value any, s apiextensionsv1.JSONSchemaProps) {
		if value != nil {
			found(path, value, s)
		}
	})
}

// visitSchema is visitFields for the fields that schema has, also those of which value says nothing; not within what value does not have.
func visitSchema(schema *apiextensionsv1.JSONSchemaProps, path []string, value map[string]any, found func([]string, any, apiextensionsv1.JSONSchemaProps)) {
	if schema == nil || len(path) > maxDepth {
		return
	}
	properties := schema.Properties
	if len(path) == 1 {
		properties = schema.Properties["spec"].Properties
	}
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		p, at := properties[k], append(slices.Clone(path), k)
		inner, isMap := value[k].(map[string]any)
		switch {
		case isMap && (p.AdditionalProperties == nil || len(p.Properties) > 0):
			visitSchema(&p, at, inner, found)
		default:
			found(at, value[k], p)
		}
	}
}

// neighbours returns the numbers near value that s allows, the best first: the larger, the smaller, and the next but one for those
// who count in pairs or want an odd number.
func neighbours(value int64, s apiextensionsv1.JSONSchemaProps) []int64 {
	return allowed([]int64{value + 1, value - 1, value + 2}, s)
}

// allowed are those of numbers that are more than 0 and that s allows.
func allowed(numbers []int64, s apiextensionsv1.JSONSchemaProps) []int64 {
	return slices.DeleteFunc(numbers, func(n int64) bool {
		return n <= 0 || s.Maximum != nil && float64(n) > *s.Maximum || s.Minimum != nil && float64(n) < *s.Minimum
	})
}

// portsApart is how far another port is from the one that an object has: it often has others near that one, or a round number away.
const portsApart = 7

// otherNumber returns another number than value of a field called name that counts nothing, of those that s allows.
func otherNumber(name string, value int64, s apiextensionsv1.JSONSchemaProps) (int64, bool) {
	next := neighbours(value, s)
	if ports.MatchString(name) && !nodePorts.MatchString(name) {
		next = allowed([]int64{value + portsApart, value - portsApart}, s)
	} else if delicate.MatchString(name) {
		next = nil
	}
	if len(next) == 0 || len(s.Enum) > 0 || counts.MatchString(name) {
		return 0, false
	}
	return next[0], true
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

// mergePatch patches what is called name as the walk.
func mergePatch(ctx context.Context, resource dynamic.ResourceInterface, name string, data []byte, dryRun ...string) error {
	_, err := mergePatched(ctx, resource, name, data, dryRun...)
	return err
}

// mergePatched is mergePatch for those who look at what comes of it.
func mergePatched(ctx context.Context, resource dynamic.ResourceInterface, name string, data []byte, dryRun ...string) (*unstructured.Unstructured, error) {
	return resource.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: "olmkit", DryRun: dryRun})
}
