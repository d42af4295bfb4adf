//go:build linux

package scenario_test

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"testing"
)

var stored = regexp.MustCompile(` \(stored as \w+\)`)

// TestKindScenarios walks chains that break in four ways on kind clusters. The causes are the ones named on embedded clusters.
// 'make test-kind-all' brings what it needs.
func TestKindScenarios(t *testing.T) {
	broken := []string{"rights-status-lost", "crash-at-start", "dropped-version", "lost-field"}
	walked := 0
	for _, s := range scenarios(t) {
		if !slices.Contains(broken, s.name()) {
			continue
		}
		walked++
		t.Run(s.name(), func(t *testing.T) {
			s.needBuilt(t)
			t.Parallel()
			image := cmp.Or(os.Getenv("OLMKIT_NODE_IMAGE"), "olmkit/node:v1.36.3")
			for i := range s.Expect.Findings {
				for j, message := range s.Expect.Findings[i].Message {
					s.Expect.Findings[i].Message[j] = stored.ReplaceAllString(message, "") // nobody reads etcd there
				}
			}
			s.check(t, slices.Concat(s.Flags, []string{"--cluster", "kind", "--node-image", image}))
		})
	}
	if walked != len(broken) {
		t.Errorf("%d of the scenarios %v were walked", walked, broken)
	}
}
