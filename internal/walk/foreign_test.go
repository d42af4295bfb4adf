package walk

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/olmkit/olmkit/internal/code"
)

// What somebody else has where an operator makes something is the operator's neither to delete nor to change, on a cluster where the walk may place it.
func TestForeign(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3") // after the last hop the operator would be started again
	for _, c := range []struct {
		v1, v2     string
		stays      bool
		code, says string
	}{
		{"", "", false, "", ""},
		{"", sweeps, false, code.DataLost, "v2 deletes an object that is not the operator's"},
		{"", adopts, false, code.OperandChanged, "v2 changes an object that is not the operator's"},
		{sweeps, sweeps, false, "", ""},
		{adopts, sweeps, false, "", ""},
		{"", sweeps, true, "", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			if !c.stays {
				w.takes = func(context.Context) error { return nil }
			}
			w.expect(t, p, plan, c.v1, c.v2, c.code, c.says)
		})
	}
}
