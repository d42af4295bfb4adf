package walk

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/report"
)

// TestSwitchChannel: a hop from another channel installs its base from that, and then asks for the new channel; a rollback goes back.
func TestSwitchChannel(t *testing.T) {
	p, _ := things(t, "v1", "v2", "v3")
	p.Channels = append(p.Channels, &catalog.Channel{Name: "fast", Entries: []catalog.Entry{{Name: "v3", Replaces: "v2"}}})
	plan, err := graph.NewPlan(p, graph.Options{Channel: "fast", Mode: graph.Switch, To: "v3"})
	if err != nil || len(plan.Hops) != 1 {
		t.Fatalf("%+v, %v", plan, err)
	}
	for behaviour, want := range map[string][]string{"": {"stable", "fast"}, hangs: {"stable", "fast", "stable"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.behaviour["v3"] = behaviour
			r, err := w.walk(t.Context(), t, p, plan, Options{Rollback: true})
			if err != nil {
				t.Fatal(err)
			}
			if h := r.Hops[0]; (h.Result == report.Passed) != (behaviour == "") || h.FromChannel != "stable" || h.Channel != "fast" || r.Installations[0].Channel != "stable" {
				t.Errorf("%q: %+v", behaviour, h)
			}
			if !slices.Equal(w.channels, want) {
				t.Errorf("%q: it subscribes to %s", behaviour, w.channels)
			}
			if base, hop := w.catalogs[0], w.catalogs[1]; strings.Contains(base, `"name":"fast"`) || !strings.Contains(hop, `"name":"fast"`) || !strings.Contains(hop, `"name":"stable"`) {
				t.Errorf("%q: the catalogs are\n%.300s\n%.300s", behaviour, base, hop)
			}
		})
	}
}
