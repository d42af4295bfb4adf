//go:build linux

package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/test/support/trace"
)

// TestOneRelease: a catalog of one release is no empty plan. It is installed, its samples are reconciled, it is uninstalled.
func TestOneRelease(t *testing.T) {
	t.Parallel()
	before := trace.New(t)
	asJSON := filepath.Join(t.TempDir(), "report.json")
	args := chainOf(t, func(_, manifest string) string { return manifest }, "0.1.0")
	r := run(t, []string{before.Env()}, append(args, "--require-images", "--report", "json="+asJSON)...)
	before.Check(t)
	if r.code != 0 || !strings.Contains(r.out, "✓ install memcached-operator.v0.1.0") {
		t.Fatalf("exit code %d\n%s\n%s", r.code, r.errOut, r.out)
	}
	said := readReport(t, asJSON)
	if len(said.Hops) != 0 || len(said.Installations) != 1 || said.Verdict != "passed" {
		t.Fatalf("%s: the report has %d hops and the installations %+v", said.Verdict, len(said.Hops), said.Installations)
	}
	i := said.Installations[0]
	if i.Name != "memcached-operator.v0.1.0" || i.Channel != "stable" || i.Result != "passed" || i.Seconds <= 0 || len(i.Simulated)+len(i.NotVerified) > 0 {
		t.Errorf("the installation is %+v", i)
	}
	if !strings.Contains(r.errOut, "uninstall") {
		t.Errorf("it was not uninstalled:\n%s", r.errOut)
	}
}

// TestOneReleaseSimulated: a walk without the operator's program does not claim that the operator works, and fails where
// that is asked for.
func TestOneReleaseSimulated(t *testing.T) {
	t.Parallel()
	before := trace.New(t)
	asJSON := filepath.Join(t.TempDir(), "report.json")
	args := chainOf(t, func(_, manifest string) string { return manifest }, "0.1.0")
	args = args[:slices.Index(args, "--image")]
	r := run(t, []string{before.Env()}, append(args, "--require-images", "--report", "json="+asJSON)...)
	before.Check(t)
	if r.code != 3 {
		t.Fatalf("exit code %d\n%s\n%s", r.code, r.errOut, r.out)
	}
	said := readReport(t, asJSON)
	if !slices.ContainsFunc(said.Findings, func(f jsonFinding) bool {
		return f.Code == "U904" && f.Severity == "error" && strings.Contains(f.Message, "ghcr.io/olmkit/memcached-operator:v0.1.0")
	}) {
		t.Errorf("nothing says that the operator was not run: %+v", said.Findings)
	}
}
