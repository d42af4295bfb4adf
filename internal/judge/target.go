package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// unreturned tells what the operator changed of the user's workloads that an object names, and does not change back any more when the object is deleted.
func unreturned(from, to string, was, is New) []finding.Finding {
	fields := namesOf(is.Returned, func(field string) bool { return was.Returned[field] && !is.Returned[field] && was.Of == is.Of })
	if len(fields) == 0 {
		return nil
	}
	return []finding.Finding{doesLess("keep what others' objects said before, and give it back before the finalizer is removed", is.Sample,
		"%s does less for a new object like it than %s: when it is deleted, what was changed for it stays in %s", to, from, strings.Join(fields, ", "))}
}

// Given tells what is another in the specs of the user's workloads that objects name, though nobody changed these: was and is are what they say, by their name and the path.
func Given(from, to string, was, is map[string]string) (findings []finding.Finding) {
	changed := map[string][]string{}
	for _, at := range slices.Sorted(maps.Keys(was)) {
		now, there := is[at]
		words := strings.SplitN(at, " ", 3) // kind, name and path
		switch {
		case there && now == was[at], !strings.HasPrefix(words[2], "spec."): // marks may say when
		case there:
			changed[words[0]+"/"+words[1]] = append(changed[words[0]+"/"+words[1]], fmt.Sprintf("%s was %s and is %s", words[2], was[at], now))
		default:
			changed[words[0]+"/"+words[1]] = append(changed[words[0]+"/"+words[1]], fmt.Sprintf("%s was %s and is gone", words[2], was[at]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		findings = append(findings, code.Finding(code.OperandChanged, name, "the operator of %s makes something else of it than that of %s, though nobody changed what it is named by: %s", to, from, some(changed[name])))
	}
	return findings
}
