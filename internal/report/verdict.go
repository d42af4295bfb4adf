package report

import (
	"fmt"
	"strings"
)

// verdict is the result of r in words. Of one that passed it also says what nobody verified, so that "passed" alone stands
// only where all was.
func verdict(r *Report) string {
	if r.Result != Passed {
		return string(r.Result)
	}
	if nothingRan(r) {
		return "nothing to test"
	}
	parts := []string{string(Passed)}
	objects, kinds := map[string]bool{}, map[string]bool{}
	simulated := false
	for _, h := range r.Steps() {
		for _, kind := range h.NoSample {
			kinds[kind] = true
		}
		simulated = simulated || len(h.Simulated) > 0
		for _, o := range h.NotVerified {
			objects[o] = true
		}
	}
	if simulated {
		parts = append(parts, "operator not run")
	}
	if r.NotRead > 0 {
		parts = append(parts, fmt.Sprintf("manifests of %s not checked (--pull reads them)", count(r.NotRead, "bundle")))
	}
	if n := len(kinds); n > 0 {
		parts = append(parts, fmt.Sprintf("nothing verified of %s without a sample", count(n, "kind")))
	}
	if n := len(objects); n > 0 {
		parts = append(parts, fmt.Sprintf("reconciling of %s not verified", count(n, "object")))
	}
	return strings.Join(parts, ", ")
}

// unverified says why it was not verified what the operator does about objects, and what to do.
const unverified = "reconciling not verified, as nothing that the operator writes after a small change shows it (it may have no number to change in the spec, or no status.observedGeneration; say with --assert what must hold)"

// nothingRan reports whether r is of a walk that had nothing to install or upgrade.
func nothingRan(r *Report) bool {
	return r.Kind == KindUpgrade && len(r.Installations)+len(r.Hops) == 0
}

// nothingBecause says why nothing ran.
func nothingBecause(r *Report) string {
	if n := r.leftOut(); n > 0 {
		return count(n, "hop") + " left out of the plan"
	}
	return "the plan has no installation and no hop"
}
