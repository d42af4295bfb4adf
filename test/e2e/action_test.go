//go:build linux

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// action is what of action.yml a runner needs to run its steps of shell.
type action struct {
	Inputs map[string]struct {
		Default string
	}
	Runs struct {
		Using string
		Steps []struct {
			Uses  string
			Shell string
			Run   string
			Env   map[string]string
		}
	}
}

var expression = regexp.MustCompile(`\$\{\{ ?([a-z_.-]+) ?\}\}`)

// The action's own step, run as a runner runs it: with its inputs, or their defaults, in the variables.
func TestAction(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := yaml.Unmarshal(raw, &a); err != nil {
		t.Fatal(err)
	}
	temp, reports, summary := t.TempDir(), filepath.Join(t.TempDir(), "reports"), filepath.Join(t.TempDir(), "summary.md")
	given := map[string]string{
		"inputs.package": "memcached-operator", "inputs.shard": "0/5", "inputs.changed-since": "none", "inputs.report": reports,
		"inputs.kubernetes": "1.36", "inputs.olm-version": "0.46",
		"inputs.images":      "ghcr.io/olmkit/memcached-operator:v0.1.0=bin/memcached-operator/v0.1.0/manager\nghcr.io/olmkit/memcached-operator:v0.2.0=bin/memcached-operator/v0.2.0/manager\n",
		"github.action_path": root, "github.event.pull_request.base.sha": "0000000000000000000000000000000000000000",
	}
	for name, input := range a.Inputs {
		if _, ok := given["inputs."+name]; !ok {
			given["inputs."+name] = input.Default
		}
	}
	evaluate := func(text string) string {
		return expression.ReplaceAllStringFunc(text, func(e string) string {
			name := expression.FindStringSubmatch(e)[1]
			value, known := given[name]
			if !known {
				t.Errorf("%s has no value", name)
			}
			return value
		})
	}
	ran := 0
	for _, step := range a.Runs.Steps {
		if step.Uses != "" {
			if _, version, _ := strings.Cut(step.Uses, "@"); len(version) != 40 {
				t.Errorf("%s is not pinned to a commit", step.Uses)
			}
			continue
		}
		ran++
		if expression.MatchString(step.Run) {
			t.Errorf("an input is part of the script, which anybody could then extend: %s", step.Run)
		}
		cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "RUNNER_TEMP="+temp, "GITHUB_STEP_SUMMARY="+summary)
		for name, value := range step.Env {
			cmd.Env = append(cmd.Env, name+"="+evaluate(value))
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if a.Runs.Using != "composite" || ran != 1 {
		t.Errorf("%s, %d steps of shell", a.Runs.Using, ran)
	}
	report := readReport(t, filepath.Join(reports, "report.json"))
	if len(report.Hops) != 1 || report.Hops[0].Result != "passed" || report.Hops[0].To != "memcached-operator.v0.2.0" || !strings.HasPrefix(report.Cluster.Kubernetes, "v1.36.") {
		t.Errorf("the walk: %+v", report.Hops)
	}
	for _, file := range []string{"report.sarif", "report.xml"} {
		if info, err := os.Stat(filepath.Join(reports, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	if said := read(t, summary); !strings.Contains(said, "memcached-operator.v0.2.0") {
		t.Errorf("the job's summary: %s", said)
	}
}
