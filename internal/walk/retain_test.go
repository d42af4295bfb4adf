package walk

import (
	"slices"
	"testing"

	"github.com/olmkit/olmkit/internal/observe"
)

// What goes on saying an entry that was taken out is named; what never said it, or says its key with another value, is not.
func TestRetains(t *testing.T) {
	said := func(name string, data map[string]any) observe.Operand {
		return observe.Operand{Kind: "ConfigMap", Namespace: "n", Name: name, Direct: true, Content: map[string]any{"data": data}}
	}
	all := func(list ...observe.Operand) map[string]observe.Operand {
		operands := map[string]observe.Operand{}
		for _, o := range list {
			operands[o.String()] = o
		}
		return operands
	}
	o := &newObject{Object: &observe.Object{Name: "q-new1"}}
	o.following.before = all(
		said("q-new1-user", map[string]any{"ttl": "60", "size": "1"}), said("q-new1", map[string]any{"conf": "ttl = 60\nsize = 1\n"}),
		said("q-new1-left", map[string]any{"conf": "ttl = 60\n"}), said("q-new1-other", map[string]any{"ttl": "9"}),
	)
	o.following.there = all(
		said("q-new1-user", map[string]any{"ttl": "60", "size": "1"}), said("q-new1", map[string]any{"conf": "ttl = 300\nsize = 1\n"}),
		said("q-new1-left", map[string]any{"conf": "# changed\nttl = 60\n"}), said("q-new1-other", map[string]any{"ttl": "9"}),
	)
	if got, want := o.retains([2]string{"ttl", "60"}), []string{"ConfigMap …-left", "ConfigMap …-user"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
