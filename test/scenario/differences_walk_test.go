//go:build linux

package scenario_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/test/support/trace"
)

// TestWalkedDifferences walks the releases of each difference that only a cluster shows, under both versions. 'make test-olmv1' builds
// what it needs.
func TestWalkedDifferences(t *testing.T) {
	for _, d := range differences(t) {
		if !d.walked() {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			if !exists(t, filepath.Join(root, "bin", "olmkit")) {
				t.Fatal("there is no bin/olmkit: build it with 'make build'")
			}
			before := trace.New(t)
			flags := append([]string{"--olm", "v0,v1"}, d.Flags...)
			_, said := runWalk(t, before.Cache, d.written(t), flags)
			for _, left := range slices.Concat(before.Processes(t), before.Files(t)) {
				t.Errorf("%s was left", left)
			}
			for version, want := range map[string]verdict{"v0": d.V0, "v1": d.V1} {
				t.Run(version, func(t *testing.T) { want.compare(t, under(said, version)) })
			}
		})
	}
}

// compare compares what came of a walk under one version with what v expects.
func (v verdict) compare(t *testing.T, said report.Report) {
	t.Helper()
	checkHops(t, said, v.Hops)
	all := said.All()
	checkAll(t, all, v.Findings, v.May)
	if v.Either != nil && !slices.ContainsFunc(all, func(f finding.Finding) bool { return slices.Contains(v.Either, f.Code) }) {
		t.Errorf("none of %v is found", v.Either)
	}
}

// under returns what a report says of one version of OLM.
func under(r report.Report, version string) report.Report {
	r.Hops = slices.DeleteFunc(slices.Clone(r.Hops), func(h report.Hop) bool { return h.OLM != version })
	r.Installations = slices.DeleteFunc(slices.Clone(r.Installations), func(in report.Installation) bool { return in.OLM != version })
	r.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(f finding.Finding) bool { return f.Subject.OLM != version })
	return r
}
