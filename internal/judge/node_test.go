package judge

import (
	"testing"

	"github.com/olmkit/olmkit/test/support/expect"
)

// TestNodeLabels tells labels of others that are taken as errors, and what else is another as a warning.
func TestNodeLabels(t *testing.T) {
	first := map[string]string{"a os": "linux", "a zone": "1"}
	was := map[string]string{"a os": "linux", "a zone": "1", "a pool": "general", "a tier": "gold"}
	expect.Findings(t, NodeLabels("v1", "v2", first, was, was))
	expect.Findings(t, NodeLabels("v1", "v2", first, was, map[string]string{"a zone": "2", "a pool": "other", "a gpu": "true"}),
		"error U505 Node/a: v2 takes labels from it that were there before any release was installed, and v1 did not: os",
		"warning U505 Node/a: v2 labels it otherwise than v1, though nobody changed any object for that: gpu is set to true, pool was general and is other, tier was gold and is gone, zone was 1 and is 2")
	expect.Findings(t, NodeLabels("v1", "v2", first, map[string]string{"a zone": "1"}, map[string]string{"a zone": "1"})) // gone before
}
