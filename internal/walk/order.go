package walk

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// orders is what was seen of what is made for a copy, to tell what says the same in another order from what says something else.
type orders struct {
	versions map[string]string            // the last one seen, by name
	seen     map[string]map[string]string // by name and by the sum of what is said in whatever order, how it was said first
	unsteady map[string]bool              // the names of what was said in two orders
}

// see notes what operands say that are made directly for a copy.
func (o *orders) see(operands map[string]observe.Operand) {
	if o.versions == nil {
		*o = orders{map[string]string{}, map[string]map[string]string{}, map[string]bool{}}
	}
	for name, made := range operands {
		if !made.Direct || made.Transient() || o.versions[name] == made.ResourceVersion {
			continue
		}
		o.versions[name] = made.ResourceVersion
		said, err := json.Marshal(made.Content)
		if err != nil {
			continue // it came as JSON
		}
		if o.seen[name] == nil {
			o.seen[name] = map[string]string{}
		}
		sorted := inOrder(made.Content)
		first, known := o.seen[name][sorted]
		if !known {
			o.seen[name][sorted] = string(said)
		}
		o.unsteady[name] = o.unsteady[name] || known && first != string(said)
	}
}

// apart separates the words of a text whose order may be any.
var apart = regexp.MustCompile(`[\n,; ]`)

// inOrder is a sum of what value says, whatever the order of its lists, lines and words.
func inOrder(value any) string {
	var parts []string
	switch v := value.(type) {
	case string:
		parts = apart.Split(v, -1)
	case []any:
		for _, item := range v {
			parts = append(parts, inOrder(item))
		}
	case map[string]any:
		for k, inner := range v {
			parts = append(parts, k+inOrder(inner))
		}
	default:
		parts = []string{fmt.Sprint(v)}
	}
	slices.Sort(parts)
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%T%q", value, parts)))
}

// unsteadyOf names what is made for a copy and says the same in different orders, as each copy's is named, and tells whether that replaces pods: it is what
// they are made from, or that has a sum of what they read.
func (o *newObject) unsteadyOf(operands map[string]observe.Operand) map[string]bool {
	summed := slices.ContainsFunc(slices.Collect(maps.Values(operands)), func(made observe.Operand) bool {
		template, is := made.Template()
		return is && slices.ContainsFunc(slices.Collect(maps.Values(template.Annotations)), sum.MatchString)
	})
	names := map[string]bool{}
	for name, made := range o.had {
		if o.orders.unsteady[name] {
			names[o.called(made)] = slices.Contains(judge.Replicated, made.Kind) || made.Kind == "ConfigMap" && summed
		}
	}
	return names
}

// sum matches a checksum in hexadecimal digits or in base 64.
var sum = regexp.MustCompile(`^[0-9a-f]{8,}$|^[A-Za-z0-9+/_-]{20,}={0,2}$`)
