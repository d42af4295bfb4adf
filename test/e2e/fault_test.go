//go:build linux

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/test/support/trace"
)

// TestEachFault makes every fault in one hop, two-hops aside, which needs two: some one after another, some at the same time. The
// operator gets over all of them, each is undone, and the machine is left without a trace. One after another they may take
// longer than a hop usually does. 'make faults' makes each by itself.
func TestEachFault(t *testing.T) {
	t.Parallel()
	before := trace.New(t)
	asJSON := filepath.Join(t.TempDir(), "report.json")
	var names []string
	for _, f := range fault.Faults(&olmv0.Client{}) {
		if f.Name != "two-hops" {
			names = append(names, f.Name)
		}
	}
	r := run(t, []string{before.Env()}, append(hopArgs(), "--fault", strings.Join(names, ","), "--timeout", "10m", "--report", "json="+asJSON)...)
	defer before.Check(t)
	var said report.Report
	data, err := os.ReadFile(asJSON)
	if err == nil {
		err = json.Unmarshal(data, &said)
	}
	if err != nil {
		t.Fatalf("%v; exit code %d\n%s\n%s", err, r.code, r.errOut, r.out)
	}
	if r.code != 0 || len(said.Hops) != 1 || len(said.Hops[0].Faults) != len(names) {
		t.Fatalf("exit code %d\n%s\n%s\n%s", r.code, r.errOut, r.out, errorsOf(said))
	}
	h := said.Hops[0]
	for _, f := range h.Faults {
		wanted := []string{"survived", "degraded"}
		if f.Expected == string(fault.Blocked) {
			wanted = []string{f.Expected}
		}
		if !slices.Contains(wanted, f.Outcome) || f.Result != report.Passed {
			t.Errorf("%+v", f)
		}
	}
	for _, f := range h.Findings {
		if f.Fault != "" && f.Severity != finding.Info {
			t.Errorf("the fault's doing is held against the operator: %+v", f)
		}
	}
}

// errorsOf lists the errors of r's hops, without those that say of each fault that there are others.
func errorsOf(r report.Report) string {
	var list []string
	for _, h := range r.Hops {
		for _, f := range h.Findings {
			if f.Severity == finding.Error && f.Code != code.FaultBroke {
				list = append(list, f.Code+" "+f.Subject.Object+": "+f.Message)
			}
		}
	}
	return strings.Join(list, "\n")
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
