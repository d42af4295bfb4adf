package walk

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// orders is what was seen of what is made for a copy, to tell what says the same in another order from what says something else.
type orders struct {
	last     map[string]said // by name
	unsteady map[string]bool // the names of what was written once more, in another order
}

// said is a version of what is made: what it says, and a sum of that in whatever order.
type said struct{ version, text, sum string }

// see notes what operands say that are made directly for a copy.
func (o *orders) see(operands map[string]observe.Operand) {
	if o.last == nil {
		*o = orders{map[string]said{}, map[string]bool{}}
	}
	for name, made := range operands {
		was := o.last[name]
		if !made.Direct || made.Transient() || was.version == made.ResourceVersion {
			continue
		}
		text, err := json.Marshal(made.Content)
		if err != nil {
			continue // it came as JSON
		}
		now := said{made.ResourceVersion, string(text), inOrder(made.Content)}
		o.unsteady[name] = o.unsteady[name] || was.sum == now.sum && was.text != now.text
		o.last[name] = now
	}
}

// apart separates the words of a line whose order may be any.
var apart = regexp.MustCompile(`[,; ]`)

// inOrder is a sum of what value says, whatever the order of its lists, lines and words.
func inOrder(value any) string {
	var parts []string
	switch v := value.(type) {
	case string:
		for _, line := range strings.Split(v, "\n") {
			words := apart.Split(line, -1)
			slices.Sort(words)
			parts = append(parts, fmt.Sprintf("%q", words))
		}
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
		return is && slices.ContainsFunc(slices.Collect(maps.Keys(template.Annotations)), sum.MatchString)
	})
	names := map[string]bool{}
	for name, made := range o.had {
		if o.orders.unsteady[name] {
			names[o.called(made)] = slices.Contains(judge.Replicated, made.Kind) || made.Kind == "ConfigMap" && summed
		}
	}
	return names
}

// sum matches a key under which there is a checksum.
var sum = regexp.MustCompile(`(?i)sum|hash|digest`)
