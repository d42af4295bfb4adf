package judge

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// otherwise tells what is made for variants of other samples than the one that is copied otherwise than before in fields that nobody can change once it is made: what is there stays as it is.
// Of the copy that is seen beside its sample.
func otherwise(from, to string, copied, was, is New) []finding.Finding {
	if was.Of != is.Of || is.Of == copied.Of {
		return nil
	}
	fields := namesOf(is.Fixed, func(field string) bool {
		before, known := was.Fixed[field]
		return known && before != is.Fixed[field]
	})
	if len(fields) == 0 {
		return nil
	}
	const notSet = "not set"
	var differ []string
	for _, field := range fields {
		differ = append(differ, fmt.Sprintf("%s was %s and is %s", field, cmp.Or(was.Fixed[field], notSet), cmp.Or(is.Fixed[field], notSet)))
	}
	f := code.Finding(code.OperandChanged, is.Sample, "%s makes what it makes for a new object like it otherwise than %s, in what nobody can change once it is there: %s", to, from, strings.Join(differ, ", "))
	f.Fix = "check whether each change is meant: objects that are there keep what they have until somebody deletes that"
	return []finding.Finding{f}
}
