package walk

import (
	"testing"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Who makes Jobs from time to time has to go on with that, and to say in them what is asked for.
func TestRuns(t *testing.T) {
	p, plan := thingsOf(t, lifecycle.AllNamespaces, `{"size":60}`, "v1", "v2", "v3")
	expectAll(t, p, plan, []pairing{
		{ticks, ticks, "", ""},
		{ticksNew, ticksNew, "", ""},
		{ticksShort, ticks, "", ""},
		{ticks, ticksNew, code.DoesLess, "v2 makes no Job for it for "},
		{ticks, ticksShort, code.DoesLess, "the Jobs that v2 makes for it do not say spec.activeDeadlineSeconds, for which it asks; those of v1 did"},
	})
}
