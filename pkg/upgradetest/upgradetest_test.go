package upgradetest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
)

// inner names the case that a test program started by TestSubtests shows.
const inner = "OLMKIT_TEST_INNER"

var lost = finding.Finding{Code: "U302", Severity: finding.Error, Message: "spec.size is lost", Fix: "convert without loss"}

var outcomes = map[string]*report.Report{
	"passed": {
		Installations: []report.Installation{{Name: "tea.v1", Result: report.Passed}},
		Hops:          []report.Hop{{From: "tea.v1", To: "tea.v2", Result: report.Passed, Findings: []finding.Finding{{Code: "U402", Severity: finding.Warning, Message: "no write"}}}},
	},
	"suppressed": {
		Hops: []report.Hop{{From: "tea.v1", To: "tea.v2", Result: report.Passed, Findings: []finding.Finding{{Code: "U302", Severity: finding.Error, Suppressed: &finding.Suppression{}}}}},
	},
	"failed": {
		Hops: []report.Hop{{From: "tea.v1", To: "tea.v2", Result: report.Failed, Findings: []finding.Finding{lost}}, {From: "tea.v2", To: "tea.v3", Result: report.Passed}},
	},
	"skipped": {Hops: []report.Hop{{From: "tea.v1", To: "tea.v2", Result: report.Skipped}}},
	"package": {Findings: []finding.Finding{{Code: "U603", Severity: finding.Error, Message: "objects stay"}}},
}

// TestInner shows an outcome to a test that runs this program.
func TestInner(t *testing.T) {
	name := os.Getenv(inner)
	if name == "usage" {
		Run(t, "testdata", Edges("sideways"))
		return
	}
	if r := outcomes[name]; r != nil {
		show(t, r)
	}
}

// TestSubtests runs outcomes as subtests in a program of their own, and reads what go test says of them.
func TestSubtests(t *testing.T) {
	for name, want := range map[string]struct {
		passes bool
		says   []string
	}{
		"passed":     {true, []string{"--- PASS: TestInner/install_tea.v1", "--- PASS: TestInner/tea.v1_to_tea.v2", "warning U402 : no write"}},
		"suppressed": {true, []string{"--- PASS: TestInner/tea.v1_to_tea.v2"}},
		"failed":     {false, []string{"--- FAIL: TestInner/tea.v1_to_tea.v2", "error U302 : spec.size is lost", "fix:   convert without loss", "--- PASS: TestInner/tea.v2_to_tea.v3"}},
		"skipped":    {false, []string{"--- FAIL: TestInner/tea.v1_to_tea.v2", "the result is skipped"}},
		"package":    {false, []string{"--- FAIL: TestInner/package", "objects stay"}},
		"usage":      {false, []string{"--edges sideways", "exit code 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestInner$", "-test.v")
			cmd.Env = append(os.Environ(), inner+"="+name)
			out, err := cmd.CombinedOutput()
			if (err == nil) != want.passes {
				t.Errorf("the test ended with %v", err)
			}
			for _, s := range want.says {
				if !strings.Contains(string(out), s) {
					t.Errorf("nothing says %q:\n%s", s, out)
				}
			}
		})
	}
}

func TestOptions(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a.yml", "c.json", "kustomization.yaml", "README.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &run{}
	for _, option := range []Option{
		Package("tea"), Channel("stable"), From("1.0.0"), To("2.0.0"), Image("example.com/tea:v1", "bin/tea"), Samples(dir, filepath.Join(dir, "README.md")),
		Assert("x.yaml", "y.yaml"), Flags("--strict"),
	} {
		option(r)
	}
	want := []string{
		"--package", "tea", "--channel", "stable", "--from", "1.0.0", "--to", "2.0.0", "--image", "example.com/tea:v1=bin/tea",
		"--sample", filepath.Join(dir, "a.yml"), "--sample", filepath.Join(dir, "b.yaml"), "--sample", filepath.Join(dir, "c.json"), "--sample", filepath.Join(dir, "README.md"),
		"--assert", "x.yaml", "--assert", "y.yaml", "--strict",
	}
	if diff := cmp.Diff(want, r.args); diff != "" || len(r.errs) > 0 {
		t.Error(diff, r.errs)
	}
	Samples(t.TempDir(), "nowhere")(r)
	if len(r.errs) != 2 {
		t.Errorf("an empty directory and a missing one: %v", r.errs)
	}
}

func TestAfterHop(t *testing.T) {
	var calls []string
	note := func(name string, err error) Option {
		return AfterHop(func(_ context.Context, c client.Client, hop Hop) error {
			calls = append(calls, name+" "+hop.From+" "+hop.To)
			return err
		})
	}
	bad := errors.New("the pot is cold")
	r := &run{}
	note("first", nil)(r)
	note("second", bad)(r)
	note("third", nil)(r)
	err := r.after(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, report.Hop{From: "tea.v1", To: "tea.v2"})
	if !errors.Is(err, bad) {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff([]string{"first tea.v1 tea.v2", "second tea.v1 tea.v2"}, calls); diff != "" {
		t.Error(diff)
	}
}
