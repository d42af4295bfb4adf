//go:build linux

package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A walk in parts, on several clusters at once or one after the other, comes to the verdict of the walk in one piece. Only
// notes may differ: a part begins with an installation, so it lacks what older releases would have stored. In short the walk
// is of two hops, so of one in each part, and its parts are walked at once only.
func TestPartsMakeTheWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name+".json") }
	versions := []string{"v0.1.0", "v0.2.0", "v0.3.1", "v0.4.0"}
	hops := len(versions) - 1
	walk := []string{"upgrade", "test", "catalog", "--package", "memcached-operator", "--edges", "chain", "--to", versions[hops]}
	for _, v := range versions {
		walk = append(walk, "--image", "ghcr.io/olmkit/memcached-operator:"+v+"="+filepath.Join(root, "bin", "memcached-operator", v, "manager"))
	}
	with := func(more ...string) []string { return append(slices.Clone(walk), more...) }

	must(t, with("--report", "json="+file("whole"))...)
	must(t, with("--parallel", "2", "--report", "json="+file("parallel"))...)
	first := run(t, []string{"JOB_COMPLETION_INDEX=0"}, with("--shard", "auto/2", "--report", "json="+file("first"))...)
	if first.code != 0 {
		t.Fatalf("the first shard: %s%s", first.out, first.errOut)
	}
	if r := run(t, nil, "report", "merge", file("first")); r.code != 2 || !strings.Contains(r.errOut, "shard 1 of 2 is missing") {
		t.Errorf("half a walk has a verdict: exit code %d\n%s%s", r.code, r.out, r.errOut)
	}
	must(t, with("--shard", "1/2", "--report", "json="+file("second"))...)
	must(t, "report", "merge", file("second"), file("first"), "--report", "json="+file("merged"))

	whole := verdicts(readReport(t, file("whole")))
	if len(whole) != hops+1 { // and the whole
		t.Fatalf("the walk in one piece: %v", whole)
	}
	for _, name := range []string{"parallel", "merged"} {
		if diff := cmp.Diff(whole, verdicts(readReport(t, file(name)))); diff != "" {
			t.Errorf("%s (-whole +parts):\n%s", name, diff)
		}
	}
}

// verdicts is what each hop, and the whole, came to, with the codes of errors and warnings. Outages are left out: how long
// one is depends on the machine.
func verdicts(r jsonReport) []string {
	codes := func(findings []jsonFinding) string {
		var list []string
		for _, f := range findings {
			if f.Severity != "info" && !strings.HasPrefix(f.Code, "U40") {
				list = append(list, f.Code)
			}
		}
		slices.Sort(list)
		return strings.Join(slices.Compact(list), " ")
	}
	var all []string
	for _, h := range r.Hops {
		all = append(all, fmt.Sprintf("%s → %s (%s) %s %s", h.From, h.To, h.Edge, h.Result, codes(h.Findings)))
	}
	return append(all, "whole: "+r.Result+" "+codes(r.Findings))
}
