package judge

import (
	"testing"
	"time"

	"github.com/olmkit/olmkit/test/support/expect"
)

// TestRunsStop tells of Jobs that are late, or say less, where they surely came from time to time, and where they were watched long enough.
func TestRunsStop(t *testing.T) {
	every5 := Runs{Watched: time.Minute, Gap: 5 * time.Second, Age: 2 * time.Second, Made: 3, Says: []string{"spec.a", "spec.b"}, Asked: []string{"spec.a"}}
	with := func(change func(r *Runs)) Runs {
		r := every5
		change(&r)
		return r
	}
	late := with(func(r *Runs) { r.Age = time.Minute })
	expect.Findings(t, RunsStop("v1", "v2", "Pot/n/a", every5, every5))
	expect.Findings(t, RunsStop("v1", "v2", "Pot/n/a", every5, with(func(r *Runs) { r.Gap, r.Age = 19*time.Second, 19*time.Second })))
	expect.Findings(t, RunsStop("v1", "v2", "Pot/n/a", every5, with(func(r *Runs) { r.Gap = 30 * time.Second })), "warning U514 Pot/n/a: v2 makes a Job for it every 30s; v1 made one every 5s")
	expect.Findings(t, RunsStop("v1", "v2", "Pot/n/a", every5, late), "error U514 Pot/n/a: v2 makes no Job for it for 1m0s; v1 made one every 5s")
	expect.Findings(t, RunsStop("v1", "v2", "Pot/n/a", late, with(func(r *Runs) { r.Made = 0 })))
	expect.Findings(t, RunsStop("v1", "v2", "Pot/n/a", with(func(r *Runs) { r.Made = 1 }), late))
	expect.Findings(t, RunsStop("v1", "v2", "Pot/n/a", every5, with(func(r *Runs) { r.Says = []string{"spec.b", "spec.c"} })),
		"error U514 Pot/n/a: the Jobs that v2 makes for it do not say spec.a, for which it asks; those of v1 did")
	expect.Findings(t, RunsStop("v1", "v2", "Pot/n/a", every5, with(func(r *Runs) { r.Says = []string{"spec.a"} })),
		"warning U505 Pot/n/a: the Jobs that v2 makes for it do not say spec.b; those of v1 did")
}
