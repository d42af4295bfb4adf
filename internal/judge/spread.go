package judge

import (
	"slices"

	"github.com/olmkit/olmkit/internal/finding"
)

// Spread is what an operator made for an object that is in no namespace in a new one that the object chooses: of these kinds, sorted. Leaves tells that it went when
// the namespace lost the labels by which it was chosen, and Returns that something was made there again when it got them back.
type Spread struct {
	Kinds           []string
	Leaves, Returns bool
}

// unspread tells what the operator makes no more in a namespace that an object chooses and that is new, or chosen later, and what it leaves where none is chosen any more.
func unspread(from, to string, was, is New) []finding.Finding {
	if was.Spread == nil || is.Spread == nil || was.Of != is.Of {
		return nil
	}
	say := func(what string) []finding.Finding {
		return []finding.Finding{doesLess("watch Namespaces, of which labels change as well, and map each to the objects that may choose it (handler.EnqueueRequestsFromMapFunc)",
			is.Sample, "%s does less for a new object like it than %s: within %s %s", to, from, EffectLimit, what)}
	}
	lacks := slices.DeleteFunc(without(was.Spread.Kinds, is.Spread.Kinds), func(kind string) bool { // nor in old ones
		makes := func(name string) bool { return isOfKind(name, kind) }
		return slices.ContainsFunc(was.Makes, makes) && !slices.ContainsFunc(is.Makes, makes)
	})
	switch {
	case len(lacks) > 0:
		return say(noneOf(lacks) + " in a namespace that is created later")
	case len(is.Spread.Kinds) == 0:
		return nil
	case was.Spread.Leaves && !is.Spread.Leaves:
		return say("what it made in a namespace does not go when that loses the labels by which it was chosen")
	case was.Spread.Returns && !is.Spread.Returns:
		return say(noneOf(is.Spread.Kinds) + " in a namespace that gets the labels by which it is chosen later")
	}
	return nil
}
