//go:build linux

package scenario_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/test/support/trace"
)

// TestExistingScenarios walks releases that lack rights on a cluster that was there before and keeps no audit log. It runs at night: what
// is made of a manager's log, internal/observe tests every time, and walks on such a cluster are in test/e2e.
func TestExistingScenarios(t *testing.T) {
	t.Parallel()
	want := map[string]string{"rights-status-lost": "(quoted by the manager's log)", "rights-create-lost": "(quoted by the manager's log)"}
	const name = "scenarios"
	cache := trace.New(t).Cache
	up := run(t, cache, "cluster", "up", "--name", name)
	kubeconfig, ok := strings.CutPrefix(strings.TrimSpace(up.out), "export KUBECONFIG=")
	if !ok {
		t.Fatalf("cluster up: %+v", up)
	}
	defer func() {
		if down := run(t, cache, "cluster", "down", "--name", name); down.code != 0 {
			t.Errorf("cluster down: %+v", down)
		}
	}()
	walked := 0
	for _, s := range scenarios(t) {
		told := want[s.name()]
		if told == "" {
			continue
		}
		walked++
		s.needBuilt(t)
		catalog, images := s.build(t, s.dir)
		if load := run(t, cache, append([]string{"cluster", "load", "--name", name}, images...)...); load.code != 0 {
			t.Fatalf("cluster load: %+v", load)
		}
		for i := range s.Expect.Findings {
			s.Expect.Findings[i].Cause = append(s.Expect.Findings[i].Cause, told)
			// The walk makes a namespace for the operator there.
			s.Expect.Findings[i].Object = strings.Replace(s.Expect.Findings[i].Object, "/operators/", "/olmkit-walk/", 1)
		}
		r, said := runWalk(t, cache, catalog, slices.Concat(s.Flags, []string{"--cluster", "existing", "--kubeconfig", kubeconfig, "--install-olm"}))
		s.compare(t, r, said)
	}
	if walked != len(want) {
		t.Errorf("%d of %d scenarios were walked", walked, len(want))
	}
}
