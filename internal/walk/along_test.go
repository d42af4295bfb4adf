package walk

import (
	"testing"
	"testing/synctest"

	"github.com/olmkit/olmkit/internal/code"
)

// What others have since a new object was created may go with it, as it may be about both of them; what they had before may not.
func TestAlong(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	for _, c := range []struct{ v1, v2, code, says string }{
		{pairs, pairs, "", ""},
		{pairs, robs, code.DoesLess, "when a new object is deleted, v2 deletes what belongs to this one or to others like it"},
	} {
		synctest.Test(t, func(t *testing.T) { newWorld().expect(t, p, plan, c.v1, c.v2, c.code, c.says) })
	}
}
