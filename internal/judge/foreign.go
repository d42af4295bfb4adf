package judge

import (
	"maps"
	"slices"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// Foreign is what became of an object of somebody else beside what an operator makes of its kind for the object that is called Of.
type Foreign struct {
	Of            string
	Gone, Changed bool
}

// LeftAlone tells of which objects of somebody else to's operator deletes or changes what from's left alone. was and is tell what became of them, by name.
func LeftAlone(from, to string, was, is map[string]Foreign) []finding.Finding {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(is)) {
		before, known := was[name]
		if !known || before.Gone || before.Changed {
			continue
		}
		which, does := code.DataLost, "deletes"
		if now := is[name]; now.Changed {
			which, does = code.OperandChanged, "changes"
		} else if !now.Gone {
			continue
		}
		f := code.Finding(which, name, "%s %s an object that is not the operator's: it has no labels and no owner, in a namespace where the operator makes others of its kind for %s; %s left it", to, does, is[name].Of, from)
		f.Severity = finding.Error
		f.Fix = "delete and change only what the operator made: what it is the controller of, or has a label that it alone sets"
		findings = append(findings, f)
	}
	return findings
}
