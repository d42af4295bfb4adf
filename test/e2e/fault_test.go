//go:build linux

package e2e_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/test/support/trace"
)

// TestWalkUnderFaults has two faults strike in one hop: one that OLM has to wait for, and one that the operator has to get
// over. Both are undone, so that the upgrade passes and the cluster ends without a trace.
func TestWalkUnderFaults(t *testing.T) {
	t.Parallel()
	before := trace.New(t)
	asJSON := filepath.Join(t.TempDir(), "report.json")
	r := run(t, []string{before.Env()}, append(hopArgs(), "--fault", "manual-approval,kill-operator@installing", "--report", "json="+asJSON)...)
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", r.code, r.errOut, r.out)
	}
	before.Check(t)
	var said report.Report
	if err := json.Unmarshal([]byte(read(t, asJSON)), &said); err != nil {
		t.Fatal(err)
	}
	if len(said.Hops) != 1 || len(said.Hops[0].Faults) != 2 {
		t.Fatalf("the report has %d hops: %+v", len(said.Hops), said.Hops)
	}
	h := said.Hops[0]
	approval, killed := h.Faults[0], h.Faults[1]
	if approval.Outcome != "blocked" || approval.Result != report.Passed || approval.Seconds < 2 {
		t.Errorf("the approval: %+v", approval)
	}
	if !slices.Contains([]string{"survived", "degraded"}, killed.Outcome) || killed.Result != report.Passed || killed.At < approval.Seconds {
		t.Errorf("the kill: %+v", killed)
	}
	for _, f := range h.Findings {
		if strings.Contains(f.Cause, "the injected fault") && f.Severity != "info" {
			t.Errorf("the fault's doing is held against the operator: %+v", f)
		}
	}
}

// TestWrongFaults asks for faults and phases that there are not.
func TestWrongFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ args, said string }{
		{"--fault nobody", "there are kill-operator, "},
		{"--fault kill-operator@lunch", "there are before, catalog-noticed, "},
		{"--fault-matrix all,kill-etcd", `there is no fault "all"`},
		{"--cluster existing --fault kill-etcd", "cannot make the fault kill-etcd; it can make kill-operator, "},
	} {
		r := run(t, nil, append([]string{"upgrade", "test", "catalog", "--package", "memcached-operator"}, strings.Fields(test.args)...)...)
		if r.code != 2 || !strings.Contains(r.errOut, test.said) {
			t.Errorf("%s: exit code %d\n%s", test.args, r.code, r.errOut)
		}
	}
}
