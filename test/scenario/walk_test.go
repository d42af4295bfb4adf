//go:build linux

package scenario_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	for _, s := range scenarios(t) {
		if !s.walked() {
			continue
		}
		t.Run(s.name(), func(t *testing.T) {
			s.needBuilt(t)
			t.Parallel()
			s.check(t, s.Flags)
		})
	}
}

// TestTogether walks scenarios of one operator as one release that has all of their defects, and looks for what each of them expects.
func TestTogether(t *testing.T) {
	byName := map[string]scenario{}
	for _, s := range scenarios(t) {
		byName[s.name()] = s
	}
	for name, list := range groups(t) {
		var members []scenario
		for _, member := range list {
			s, is := byName[member]
			if !is {
				t.Fatalf("together.yaml: %s: there is no scenario %s", name, member)
			}
			members = append(members, s)
		}
		all, err := together(name, members)
		if err != nil {
			t.Fatalf("together.yaml: %v", err)
		}
		t.Run(name, func(t *testing.T) {
			all.needBuilt(t)
			t.Parallel()
			all.check(t, all.Flags)
		})
	}
}

// check walks s and compares what comes of it with what s expects.
func (s scenario) check(t *testing.T, flags []string) {
	t.Helper()
	r, said := walk(t, s.packaged, s.dir, slices.Concat(flags, s.given(t)))
	s.compare(t, r, said)
}

// compare compares what came of a walk of s with what s expects.
func (s scenario) compare(t *testing.T, r result, said report.Report) {
	t.Helper()
	if r.code != s.Expect.Exit {
		t.Errorf("exit code %d, want %d", r.code, s.Expect.Exit)
	}
	checkHops(t, said, s.Expect.Hops)
	checkAll(t, said.All(), s.Expect.Findings, s.Expect.May)
}

// checkAll compares all that a walk found with what it has to find, and allows no other errors than those of the codes may.
func checkAll(t *testing.T, all []finding.Finding, want []expectedFound, may []string) {
	t.Helper()
	met := checkFound(t, all, want)
	for i, f := range all {
		if f.Severity == finding.Error && !met[i] && !slices.Contains(may, f.Code) {
			t.Errorf("an error that is not expected:\n%s", describe(f))
		}
	}
}

// given returns the flags for the assertions and the samples in the scenario's folder.
func (s scenario) given(t *testing.T) []string {
	t.Helper()
	var flags []string
	for _, flag := range []string{"assert", "sample"} {
		files, err := filepath.Glob(filepath.Join(s.dir, flag+"-*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			flags = append(flags, "--"+flag, file)
		}
	}
	return flags
}

// TestCounterparts walks the same releases with nothing broken, each chain of them once, with what any of their scenarios
// asserts.
func TestCounterparts(t *testing.T) {
	type counterpart struct {
		scenario
		given []string
	}
	counterparts := map[string]*counterpart{}
	var order []*counterpart
	grouped := slices.Concat(slices.Collect(maps.Values(groups(t)))...)
	for _, s := range scenarios(t) {
		if !s.walked() && !slices.Contains(grouped, s.name()) {
			continue
		}
		sound := s.sound()
		key, err := json.Marshal([]any{sound.Operator, sound.Channels, sound.Releases, s.Flags})
		if err != nil {
			t.Fatal(err)
		}
		c := counterparts[string(key)]
		if c == nil {
			c = &counterpart{scenario: s}
			counterparts[string(key)] = c
			order = append(order, c)
		}
		c.given = append(c.given, s.given(t)...)
	}
	for _, s := range order {
		t.Run(s.name(), func(t *testing.T) {
			s.needBuilt(t)
			t.Parallel()
			r, said := walk(t, s.sound(), "", slices.Concat(s.Flags, s.given))
			if r.code != 0 {
				t.Errorf("exit code %d", r.code)
			}
			for _, h := range said.Hops {
				if h.Result != report.Passed {
					t.Errorf("%s → %s %s", h.From, h.To, h.Result)
				}
			}
			for _, f := range said.All() {
				if f.Severity == finding.Error || f.Severity == finding.Warning && s.Operator != pkg && aboutReconciling(f) {
					t.Errorf("a finding of what is sound:\n%s", describe(f))
				}
			}
		})
	}
}

// aboutReconciling reports whether f says that a manager did not do its work: all of the families U2 and U5 do.
func aboutReconciling(f finding.Finding) bool {
	return strings.HasPrefix(f.Code, "U2") || strings.HasPrefix(f.Code, "U5")
}

// needBuilt fails the test where what walks need is not built.
func (p packaged) needBuilt(t *testing.T) {
	t.Helper()
	for _, needed := range []string{"bin/olmkit", "bin/" + p.Operator} {
		if !exists(t, filepath.Join(root, needed)) {
			t.Fatalf("there is no %s: build it with 'make build managers redis-managers'", needed)
		}
	}
}

// walk has olmkit test the upgrades of p and looks for what it leaves behind. The managers in dir are run instead of the
// product's.
func walk(t *testing.T, p packaged, dir string, flags []string) (result, report.Report) {
	t.Helper()
	catalog, images := p.build(t, dir)
	flags = slices.Clone(flags)
	for _, image := range images {
		flags = append(flags, "--image", image)
	}
	before := trace.New(t)
	r, said := runWalk(t, before.Cache, catalog, flags)
	for _, left := range slices.Concat(before.Processes(t), before.Files(t)) {
		t.Errorf("%s was left", left)
	}
	return r, said
}

// runWalk has olmkit test the upgrades in catalog.
func runWalk(t *testing.T, cache, catalog string, flags []string) (result, report.Report) {
	t.Helper()
	args := slices.Concat([]string{"upgrade", "test", catalog, "--edges", "chain", "-o", "json"}, flags)
	r := run(t, cache, args...)
	t.Logf("olmkit %s\n%s", strings.Join(args, " "), r.errOut)
	var said report.Report
	if err := json.Unmarshal([]byte(r.out), &said); err != nil {
		t.Fatalf("exit code %d, and the report cannot be read: %v\n%s", r.code, err, r.out)
	}
	return r, said
}

// build makes the catalog of p, and the programs of its images, each REF=PROGRAM. The managers in dir take the place of the
// product's.
func (p packaged) build(t *testing.T, dir string) (catalog string, images []string) {
	t.Helper()
	made := t.TempDir()
	catalog = filepath.Join(made, "catalog")
	if err := os.Mkdir(catalog, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(catalog, "catalog.yaml"), p.catalog(t, p.Channels), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, version := range versions(p.Channels) {
		images = append(images, "ghcr.io/olmkit/"+p.Operator+":v"+version+"="+p.manager(t, dir, version, made))
	}
	for image, program := range operators[p.Operator].images {
		images = append(images, image+"="+filepath.Join(root, "bin", p.Operator, program))
	}
	return catalog, images
}

// manager returns the program of a release: built with the scenario's own sources if it has any, else the product's.
func (p packaged) manager(t *testing.T, dir, version, made string) string {
	t.Helper()
	replaced, main := p.sources(t, version, made), operators[p.Operator].main(version)
	if own, err := filepath.Abs(filepath.Join(dir, version, "main.go")); err != nil {
		t.Fatal(err)
	} else if dir != "" && exists(t, own) {
		// As if it stood among the operator's releases, since it shares their internal packages.
		main = "./releases/broken"
		replaced[filepath.Join(root, operators[p.Operator].dir, main, "main.go")] = own
	}
	if len(replaced) == 0 {
		return filepath.Join(root, "bin", p.Operator, "v"+version, "manager")
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(made, "overlay-"+version+".json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(made, "manager-"+version)
	cmd := exec.Command("go", "build", "-trimpath", "-overlay", file, "-o", program, main)
	cmd.Dir = filepath.Join(root, operators[p.Operator].dir)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the manager of %s: %v\n%s", version, err, out)
	}
	return program
}

// main returns the package of a release's manager.
func (o operator) main(version string) string {
	switch {
	case version != o.newest:
		return "./releases/v" + version
	case o.dir == "operator":
		return "."
	}
	return "./cmd"
}

// sources writes the changed sources of a release below made, and returns where, by the files that they replace.
func (p packaged) sources(t *testing.T, version, made string) map[string]string {
	t.Helper()
	replaced := map[string]string{}
	for _, c := range p.Releases[version] {
		if c.Source == "" {
			continue
		}
		file := filepath.Join(root, operators[p.Operator].dir, c.Source)
		data, err := os.ReadFile(cmp.Or(replaced[file], file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(data), c.Replace); n != 1 {
			t.Fatalf("%s: %s has %d times, not once:\n%s", version, c.Source, n, c.Replace)
		}
		changed := filepath.Join(made, version, c.Source)
		if err := os.MkdirAll(filepath.Dir(changed), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(changed, []byte(strings.Replace(string(data), c.Replace, c.By, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[file] = changed
	}
	return replaced
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
		said := fmt.Sprintf("%s → %s %s", versionOf(from), versionOf(to), result)
		if back != "" {
			said += ", rollback " + string(back)
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
