//go:build linux

package scenario_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/test/support/trace"
)

// TestScenarios walks the broken releases of every scenario that says what the walk has to find, and their counterparts.
// 'make test-e2e' builds what it needs.
func TestScenarios(t *testing.T) {
	needWalks(t)
	for _, s := range scenarios(t) {
		if len(s.Expect.Hops) == 0 {
			continue
		}
		t.Run(s.name(), func(t *testing.T) {
			t.Parallel()
			s.check(t, s.Flags)
		})
	}
}

// check walks s and compares what comes of it with what s expects.
func (s scenario) check(t *testing.T, flags []string) {
	t.Helper()
	r, said := walk(t, s.packaged, s.dir, flags)
	if r.code != s.Expect.Exit {
		t.Errorf("exit code %d, want %d", r.code, s.Expect.Exit)
	}
	checkHops(t, said, s.Expect.Hops)
	all := said.All()
	met := checkFound(t, all, s.Expect.Findings)
	for i, f := range all {
		if f.Severity == finding.Error && !met[i] && !slices.Contains(s.Expect.May, f.Code) {
			t.Errorf("an error that is not expected:\n%s", describe(f))
		}
	}
}

// TestCounterparts walks the same releases with nothing broken, each chain of them once.
func TestCounterparts(t *testing.T) {
	needWalks(t)
	walked := map[string]bool{}
	for _, s := range scenarios(t) {
		sound := s.sound()
		key, err := json.Marshal([]any{sound.Channels, sound.Releases, s.Flags})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Expect.Hops) == 0 || walked[string(key)] {
			continue
		}
		walked[string(key)] = true
		t.Run(s.name(), func(t *testing.T) {
			t.Parallel()
			r, said := walk(t, sound, "", s.Flags)
			if r.code != 0 {
				t.Errorf("exit code %d", r.code)
			}
			for _, h := range said.Hops {
				if h.Result != report.Passed {
					t.Errorf("%s → %s %s", h.From, h.To, h.Result)
				}
			}
			for _, f := range said.All() {
				if f.Severity == finding.Error {
					t.Errorf("an error:\n%s", describe(f))
				}
			}
		})
	}
}

// needWalks fails the test where what walks need is not built.
func needWalks(t *testing.T) {
	t.Helper()
	for _, needed := range []string{"bin/olmkit", "bin/" + pkg} {
		if !exists(t, filepath.Join(root, needed)) {
			t.Fatalf("there is no %s: build it with 'make build managers'", needed)
		}
	}
}

// walk has olmkit test the upgrades of p and looks for what it leaves behind. The managers in dir are run instead of the
// product's.
func walk(t *testing.T, p packaged, dir string, flags []string) (result, report.Report) {
	t.Helper()
	made := t.TempDir()
	catalog := filepath.Join(made, "catalog")
	if err := os.Mkdir(catalog, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(catalog, "catalog.yaml"), p.catalog(t, p.Channels), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"upgrade", "test", catalog, "--edges", "chain", "-o", "json"}
	for _, version := range versions(p.Channels) {
		args = append(args, "--image", image+":v"+version+"="+managerOf(t, dir, version, made))
	}
	args = append(args, flags...)
	before := trace.New(t)
	r := run(t, before.Cache, args...)
	t.Logf("olmkit %s\n%s", strings.Join(args, " "), r.errOut)
	var said report.Report
	if err := json.Unmarshal([]byte(r.out), &said); err != nil {
		t.Fatalf("exit code %d, and the report cannot be read: %v\n%s", r.code, err, r.out)
	}
	for _, left := range slices.Concat(before.Processes(t), before.Files(t)) {
		t.Errorf("%s was left", left)
	}
	return r, said
}

// managerOf returns the program of a release: the scenario's own main.go if it has one, else the product's. A scenario's
// program is built as if it stood among the operator's releases, since it shares their internal packages.
func managerOf(t *testing.T, dir, version, made string) string {
	t.Helper()
	main, err := filepath.Abs(filepath.Join(dir, version, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if dir == "" || !exists(t, main) {
		return filepath.Join(root, "bin", pkg, "v"+version, "manager")
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, "operator", "releases", "broken", "main.go"): main,
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(made, "overlay-"+version+".json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(made, "manager-"+version)
	cmd := exec.Command("go", "build", "-trimpath", "-overlay", file, "-o", program, "./operator/releases/broken")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", main, err, out)
	}
	return program
}

type result struct {
	code        int
	out, errOut string
}

// run runs olmkit, with a cache folder of its own unless cache is "".
func run(t *testing.T, cache string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(root, "bin", "olmkit"), args...)
	cmd.Env = os.Environ()
	if cache != "" {
		cmd.Env = append(cmd.Env, "OLMKIT_CACHE="+cache)
	}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run olmkit: %v", err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

func checkHops(t *testing.T, said report.Report, want []expectedHop) {
	t.Helper()
	describe := func(from, to string, result, back report.Result) string {
		said := fmt.Sprintf("%s → %s %s", strings.TrimPrefix(from, pkg+".v"), strings.TrimPrefix(to, pkg+".v"), result)
		if back != "" {
			said += ", way back " + string(back)
		}
		return said
	}
	var got, wanted []string
	for _, h := range said.Hops {
		var back report.Result
		if h.Rollback != nil {
			back = h.Rollback.Result
		}
		got = append(got, describe(h.From, h.To, h.Result, back))
	}
	for _, h := range want {
		wanted = append(wanted, describe(h.From, h.To, h.Result, h.Rollback))
	}
	if !slices.Equal(got, wanted) {
		t.Errorf("the hops are\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(wanted, "\n  "))
	}
}
