//go:build linux

// Package scenario_test walks upgrades that are broken on purpose and asks whether olmkit says what is wrong with them.
// Each folder of testdata is one scenario; README.md says what belongs in it. 'make test-e2e' builds what it needs.
package scenario_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
)

const (
	pkg   = "memcached-operator"
	image = "ghcr.io/olmkit/" + pkg
)

// root is the repository's root.
var root = func() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return dir
}()

// scenario is what a folder's scenario.yaml says.
type scenario struct {
	About  string   `json:"about"`  // what is broken, and how one comes to break it
	Chain  []any    `json:"chain"`  // entries of the channel, from the oldest, as a catalog template has them
	Flags  []string `json:"flags"`  // of 'olmkit upgrade test', besides those that every scenario has
	Expect expected `json:"expect"` // what olmkit has to say
}

type expected struct {
	Static   []expectedFound `json:"static"`   // what 'olmkit catalog validate' finds beforehand, among others
	Exit     int             `json:"exit"`     // of 'olmkit upgrade test'
	Hops     []expectedHop   `json:"hops"`     // all hops, in their order
	Findings []expectedFound `json:"findings"` // among others; but no error that is not expected here
}

type expectedHop struct {
	From   string        `json:"from"` // versions
	To     string        `json:"to"`
	Result report.Result `json:"result"`
}

type expectedFound struct {
	Code     string           `json:"code"`
	Severity finding.Severity `json:"severity"`
	To       string           `json:"to"`      // version that the hop leads to; "" for findings about no hop
	Object   string           `json:"object"`  // part of the object's name
	Message  []string         `json:"message"` // parts of the message
	Cause    []string         `json:"cause"`   // parts of the cause
}

func TestScenarios(t *testing.T) {
	for _, needed := range []string{"bin/olmkit", "bin/" + pkg} {
		if _, err := os.Stat(filepath.Join(root, needed)); err != nil {
			t.Fatalf("%v: build it with 'make build managers'", err)
		}
	}
	folders, err := filepath.Glob("testdata/*/scenario.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatalf("testdata holds no scenario: %v", err)
	}
	for _, file := range folders {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			t.Parallel()
			walk(t, filepath.Dir(file))
		})
	}
}

// walk has olmkit test the upgrades of the scenario in dir and compares what it says with what is expected.
func walk(t *testing.T, dir string) {
	var s scenario
	data, err := os.ReadFile(filepath.Join(dir, "scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, &s); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	made := t.TempDir()
	var bundles, images []string
	for _, version := range versions(t, s.Chain) {
		bundles = append(bundles, bundleOf(t, dir, version, made))
		images = append(images, "--image", image+":v"+version+"="+managerOf(t, dir, version, made))
	}
	template, err := json.Marshal(map[string]any{
		"schema": "olmkit.template", "package": pkg, "defaultChannel": "stable",
		"bundles": bundles, "channels": map[string]any{"stable": s.Chain},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(made, "template.yaml"), template, 0o600); err != nil {
		t.Fatal(err)
	}
	catalog := filepath.Join(made, "catalog", "catalog.yaml")
	if r := run(t, "", "catalog", "build", filepath.Join(made, "template.yaml"), "--into", catalog); r.code != 0 {
		t.Fatalf("build the catalog: %s", r.errOut)
	}

	if len(s.Expect.Static) > 0 {
		r := run(t, "", "catalog", "validate", catalog, "-o", "json")
		var said report.Report
		if err := json.Unmarshal([]byte(r.out), &said); err != nil {
			t.Fatalf("the report of 'catalog validate' cannot be read: %v\n%s%s", err, r.out, r.errOut)
		}
		checkFound(t, said.All(), s.Expect.Static)
	}

	cache := ownCache(t)
	args := slices.Concat([]string{"upgrade", "test", catalog, "--edges", "chain", "-o", "json"}, images, s.Flags)
	r := run(t, cache, args...)
	t.Logf("olmkit %s\n%s", strings.Join(args, " "), r.errOut)
	var said report.Report
	if err := json.Unmarshal([]byte(r.out), &said); err != nil {
		t.Fatalf("exit code %d, and the report cannot be read: %v\n%s", r.code, err, r.out)
	}
	if r.code != s.Expect.Exit {
		t.Errorf("exit code %d, want %d", r.code, s.Expect.Exit)
	}
	checkHops(t, said, s.Expect)
	checkFindings(t, said, s.Expect)
	checkNothingLeft(t, cache)
}

// versions returns the versions of a channel's entries.
func versions(t *testing.T, chain []any) []string {
	t.Helper()
	var list []string
	for _, entry := range chain {
		if m, ok := entry.(map[string]any); ok {
			entry = m["version"]
		}
		version, ok := entry.(string)
		if !ok {
			t.Fatalf("the chain has the entry %v: it is a version, or has one", entry)
		}
		list = append(list, version)
	}
	return list
}

// bundleOf returns the bundle of a release: made of the scenario's own manifests if it has some, else the product's.
func bundleOf(t *testing.T, dir, version, made string) string {
	t.Helper()
	manifests := filepath.Join(dir, version, "manifests")
	if _, err := os.Stat(manifests); errors.Is(err, fs.ErrNotExist) {
		return filepath.Join(root, "bundle", pkg, version)
	}
	into := filepath.Join(made, "bundle", version)
	absolute, err := filepath.Abs(manifests)
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, "", "bundle", "generate", "--manifests", absolute, "--version", version, "--channels", "stable", "--into", into); r.code != 0 {
		t.Fatalf("make the bundle of %s: %s", version, r.errOut)
	}
	return into
}

// managerOf returns the program of a release: the scenario's own main.go if it has one, else the product's. A scenario's
// program is built as if it stood among the operator's releases, since it shares their internal packages.
func managerOf(t *testing.T, dir, version, made string) string {
	t.Helper()
	main, err := filepath.Abs(filepath.Join(dir, version, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(main); errors.Is(err, fs.ErrNotExist) {
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

// ownCache returns a cache folder for one run, so that what the run leaves is seen. It has the user's components, which
// take minutes to build.
func ownCache(t *testing.T) string {
	t.Helper()
	users := os.Getenv("OLMKIT_CACHE")
	if users == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		users = filepath.Join(dir, "olmkit")
	}
	components := filepath.Join(users, "components")
	if err := os.MkdirAll(components, 0o755); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	if err := os.Symlink(components, filepath.Join(cache, "components")); err != nil {
		t.Fatal(err)
	}
	return cache
}

func checkHops(t *testing.T, said report.Report, want expected) {
	t.Helper()
	describe := func(from, to string, result report.Result) string {
		return fmt.Sprintf("%s → %s %s", strings.TrimPrefix(from, pkg+".v"), strings.TrimPrefix(to, pkg+".v"), result)
	}
	var got, wanted []string
	for _, h := range said.Hops {
		got = append(got, describe(h.From, h.To, h.Result))
	}
	for _, h := range want.Hops {
		wanted = append(wanted, describe(h.From, h.To, h.Result))
	}
	if !slices.Equal(got, wanted) {
		t.Errorf("the hops are\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(wanted, "\n  "))
	}
}

func checkFindings(t *testing.T, said report.Report, want expected) {
	t.Helper()
	all := said.All()
	met := checkFound(t, all, want.Findings)
	for i, f := range all {
		if f.Severity == finding.Error && !met[i] {
			t.Errorf("an error that is not expected:\n%s", describe(f))
		}
	}
}

// checkFound looks for each finding that is wanted, and returns which of all were.
func checkFound(t *testing.T, all []finding.Finding, want []expectedFound) []bool {
	t.Helper()
	met := make([]bool, len(all))
	for _, w := range want {
		found := false
		for i, f := range all {
			if w.fits(f) {
				found, met[i] = true, true
			}
		}
		if !found {
			t.Errorf("nothing says %+v; of that code there is\n%s", w, ofCode(all, w.Code))
		}
	}
	return met
}

// fits reports whether f says what w expects.
func (w expectedFound) fits(f finding.Finding) bool {
	if f.Code != w.Code || f.Severity != w.Severity || strings.TrimPrefix(f.Subject.To, pkg+".v") != w.To || !strings.Contains(f.Subject.Object, w.Object) {
		return false
	}
	says := func(text string, parts []string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
	}
	return says(f.Message, w.Message) && says(f.Cause, w.Cause)
}

func ofCode(all []finding.Finding, code string) string {
	var list []string
	for _, f := range all {
		if f.Code == code {
			list = append(list, describe(f))
		}
	}
	return strings.Join(list, "\n")
}

func describe(f finding.Finding) string {
	return fmt.Sprintf("%s %s %+v\n  %s\n  cause: %s", f.Severity, f.Code, f.Subject, f.Message, f.Cause)
}

// checkNothingLeft looks for what a run with its own cache left behind: files there, and processes that know of it.
func checkNothingLeft(t *testing.T, cache string) {
	t.Helper()
	err := filepath.WalkDir(cache, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !e.IsDir() && e.Type().IsRegular() && !strings.HasSuffix(path, ".lock") {
			t.Errorf("%s was left", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Error(err)
	}
	for _, p := range processes {
		line, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		environ, _ := os.ReadFile(filepath.Join(p, "environ"))
		if bytes.Contains(line, []byte(cache)) || bytes.Contains(environ, []byte(cache)) {
			t.Errorf("process %s was left: %s", filepath.Base(p), bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
}
