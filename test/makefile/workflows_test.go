//go:build linux

package makefile_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is what of a workflow a test looks at.
type workflow struct {
	Jobs map[string]struct {
		Strategy struct {
			Matrix map[string][]string
		}
		Steps []struct{ Uses, Run string }
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// workflows returns the repository's workflows by their files' names.
func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no workflows", err)
	}
	all := map[string]workflow{}
	for _, file := range files {
		name := filepath.Base(file)
		var w workflow
		if err := yaml.Unmarshal([]byte(read(t, ".github/workflows/"+name)), &w); err != nil {
			t.Fatal(name, err)
		}
		all[name] = w
	}
	return all
}

// The jobs of a pull request run every suite of .ci/run once, but the one whose data is in no repository.
func TestPullRequestRunsEverySuite(t *testing.T) {
	var want []string
	for _, found := range regexp.MustCompile(`(?m)^(?:beside|apart) (\S+)`).FindAllStringSubmatch(read(t, ".ci/run"), -1) {
		if found[1] != "published" {
			want = append(want, found[1])
		}
	}
	var got []string
	for _, suites := range workflows(t)["pull-request.yml"].Jobs["suites"].Strategy.Matrix["suites"] {
		got = append(got, strings.Fields(suites)...)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the jobs run the suites %q, .ci/run has %q", got, want)
	}
}

// What workflows make are targets that the Makefile has.
func TestWorkflowsMakeTargets(t *testing.T) {
	targets := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^\.PHONY: (\S+)`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[found[1]] = true
	}
	made := map[string]string{}
	add := func(file, words string) {
		for _, word := range strings.Fields(words) {
			if strings.ContainsAny(word, ">=|") {
				continue // a variable, or where the output goes
			}
			made[word] = file
		}
	}
	command := regexp.MustCompile(`(?m)^\s*make ([^$\n>]*)`)
	for file, w := range workflows(t) {
		for _, job := range w.Jobs {
			for _, words := range job.Strategy.Matrix["target"] {
				add(file, words)
			}
			for _, step := range job.Steps {
				for _, found := range command.FindAllStringSubmatch(step.Run, -1) {
					add(file, found[1])
				}
			}
		}
	}
	if len(made) < 10 {
		t.Errorf("the workflows make only %q", slices.Sorted(maps.Keys(made)))
	}
	for target, file := range made {
		if !targets[target] {
			t.Errorf("%s makes %s, which the Makefile does not have", file, target)
		}
	}
}

// Actions are named by commits, which nobody can move, and GoReleaser is the one that checks its configuration here.
func TestWorkflowsArePinned(t *testing.T) {
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	for file, w := range workflows(t) {
		for name, job := range w.Jobs {
			for _, step := range job.Steps {
				if step.Uses != "" && !pinned.MatchString(step.Uses) {
					t.Errorf("%s, job %s uses %s, which is no commit", file, name, step.Uses)
				}
			}
		}
	}
	version := regexp.MustCompile(`goreleaser/v2 (v\S+)`).FindStringSubmatch(read(t, "tools/goreleaser/go.mod"))
	if version == nil || !strings.Contains(read(t, ".github/workflows/release.yml"), "version: "+version[1]+"\n") {
		t.Errorf("release.yml has another GoReleaser than tools/goreleaser: %q", version)
	}
}

// Suites are run by name, and an unknown one is refused with those that there are.
func TestUnknownSuite(t *testing.T) {
	said, err := exec.CommandContext(t.Context(), "../../.ci/run", "test-everything").CombinedOutput()
	out := string(said)
	if err == nil || !strings.Contains(out, "no suite test-everything; there are: ") || !strings.Contains(out, " test-kind ") {
		t.Errorf("%v: %s", err, out)
	}
}
