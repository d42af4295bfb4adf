//go:build linux

package operator_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestLeaderKills kills leaders of both kinds at random moments: by the API server's audit log, there are never two at a time.
// OLMKIT_LEADER_KILLS is how many of each kind, two unless told; 'make leader-kills' takes a thousand.
func TestLeaderKills(t *testing.T) {
	share(t)
	kills, err := strconv.Atoi(cmp.Or(os.Getenv("OLMKIT_LEADER_KILLS"), "2"))
	if err != nil {
		t.Fatalf("OLMKIT_LEADER_KILLS: %v", err)
	}
	for _, kind := range []string{"lease", "life"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := newParty(t, kind)
			leader := p.hand("the first start", func() {})
			for range kills {
				time.Sleep(rand.N(3 * time.Second))
				former := leader
				leader = p.hand("a kill", func() {
					former.kill()
					p.run(former)
				})
			}
			p.judge()
		})
	}
}
