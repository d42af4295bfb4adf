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

// ActsAs reports whether the operator made of the user's workloads that the copy names what it made of those in was.
func (n New) ActsAs(was New) bool { return len(n.actsUnlike(was)) == 0 }

// actsUnlike are the paths of was.Acted at which the operator set something else, or nothing, sorted.
func (n New) actsUnlike(was New) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(was.Acted)), func(at string) bool { return n.Acted[at] == was.Acted[at] })
}

// actsOtherwise tells what the operator makes otherwise of the user's workloads that an object names.
func actsOtherwise(from, to string, was, is New) []finding.Finding {
	var others []string
	for _, at := range is.actsUnlike(was) {
		if now, acts := is.Acted[at]; acts {
			others = append(others, fmt.Sprintf("%s is set to %s and was to %s", at, now, was.Acted[at]))
		} else {
			others = append(others, fmt.Sprintf("%s is not changed and was set to %s", at, was.Acted[at]))
		}
	}
	if len(others) == 0 || is.Acted == nil || was.Of != is.Of {
		return nil
	}
	return []finding.Finding{doesLess("work out the same from the same spec, and from what it names", is.Sample,
		"%s makes something else than %s of what a new object like it names: %s", to, from, atMost(mostFields, others))}
}

// Given tells what is another in the specs of the user's workloads that objects name, though nobody changed these: was and is are what they say, by their name and the path.
func Given(from, to string, was, is map[string]string) (findings []finding.Finding) {
	changed := map[string][]string{}
	for _, at := range slices.Sorted(maps.Keys(was)) {
		words := strings.SplitN(at, " ", 3) // kind, name and path
		name, path := words[0]+"/"+words[1], words[2]
		if how := becomes(path, at, was, is); how != "" && strings.HasPrefix(path, "spec.") { // marks may say when
			changed[name] = append(changed[name], how)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		findings = append(findings, code.Finding(code.OperandChanged, name, "the operator of %s makes something else of it than that of %s, though nobody changed what it is named by: %s", to, from, atMost(mostFields, changed[name])))
	}
	return findings
}
