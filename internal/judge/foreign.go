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
		var f finding.Finding
		switch now := is[name]; {
		case now.Gone:
			f = code.Finding(code.DataLost, name, "%s deletes what others made: it is not the operator's, has neither labels nor an owner, and only is where the operator makes others of its kind for %s; %s left it", to, now.Of, from)
		case now.Changed:
			f = code.Finding(code.OperandChanged, name, "%s changes what others made: it is not the operator's, has neither labels nor an owner, and only is where the operator makes others of its kind for %s; %s left it", to, now.Of, from)
			f.Severity = finding.Error
		default:
			continue
		}
		f.Fix = "delete and change only what the operator made: what it is the controller of, or has a label that it alone sets"
		findings = append(findings, f)
	}
	return findings
}
