package judge

import (
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// Contest is what became of an object that said the same as one that was there.
type Contest struct {
	Says   []string // the fields in which it said the same, as spec.host
	Beside bool     // it was served beside the other one
	After  bool     // it was once the other one was deleted, though not beside it
}

// contest tells that of two objects that say the same both are served, and one was with from, or that the second is not served once the first is gone, and was.
func contest(from, to string, was, is New) []finding.Finding {
	if was.Contest == nil || is.Contest == nil || was.Contest.Beside {
		return nil
	}
	fields := strings.Join(is.Contest.Says, " and ")
	switch {
	case is.Contest.Beside:
		return []finding.Finding{doesLess("look for others that say the same before serving an object, and say in its status that it is not served, and for whom", is.Sample,
			"%s serves two objects like it that say the same in %s, of which %s served the first one alone", to, fields, from)}
	case was.Contest.After && !is.Contest.After:
		return []finding.Finding{doesLess("when an object is deleted or changed, reconcile those that say the same as it did", is.Sample,
			"%s does not serve an object like it that says in %s the same as one that was there before it, once that is deleted, not within %s; %s did", to, fields, was.Patience(), from)}
	}
	return nil
}
