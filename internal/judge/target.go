package judge

import (
	"strings"

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
