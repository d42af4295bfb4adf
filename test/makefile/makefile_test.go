//go:build linux

// Package makefile_test holds the Makefile to what machines lack.
package makefile_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goStub stands for go: it notes how it is called, and its builds with the race detector end as STUB_RACE says.
const goStub = `#!/bin/sh
case "$*" in
"build -race runtime/cgo") [ -z "$STUB_RACE" ] || { echo "$STUB_RACE" >&2; exit 1; } ;;
list*) echo ./internal/one ;;
test*) echo "CGO_ENABLED=$CGO_ENABLED go $*" >>"$STUB_NOTES" ;;
esac
`

// TestRaceDetector runs 'make test' where there is a C compiler and where there is none.
func TestRaceDetector(t *testing.T) {
	for name, test := range map[string]struct {
		missing, first string
		says           []string
	}{
		"with a compiler":    {"", "CGO_ENABLED=1 go test -race ./internal/walk ./internal/cli ./internal/one", nil},
		"without a compiler": {`cgo: C compiler "gcc" not found`, "CGO_ENABLED=0 go test ./internal/walk ./internal/cli ./internal/one", []string{`C compiler "gcc" not found`, "without the race detector", "apt-get install gcc"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			stub, notes := filepath.Join(dir, "go"), filepath.Join(dir, "notes")
			if err := os.WriteFile(stub, []byte(goStub), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "test", "GO="+stub, "TEST_FLAGS=")
			cmd.Dir = filepath.Join("..", "..")
			cmd.Env = apart("STUB_RACE="+test.missing, "STUB_NOTES="+notes)
			var errOut bytes.Buffer
			cmd.Stderr = &errOut
			if err := cmd.Run(); err != nil {
				t.Fatalf("make test: %v\n%s", err, errOut.String())
			}
			calls, err := os.ReadFile(notes)
			if err != nil {
				t.Fatal(err)
			}
			if first, _, _ := strings.Cut(string(calls), "\n"); strings.Join(strings.Fields(first), " ") != test.first {
				t.Errorf("it runs %q, want %q", first, test.first)
			}
			if test.says == nil && strings.Contains(errOut.String(), "race detector") {
				t.Errorf("it says\n%s", errOut.String())
			}
			for _, want := range test.says {
				if !strings.Contains(errOut.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, errOut.String())
				}
			}
		})
	}
}

// built and run match what a dry run builds, and which program it gives each image of a walk.
var (
	built = regexp.MustCompile(`build -trimpath .*-o (\S+) `)
	run   = regexp.MustCompile(`--image (\S+)=(\S+)`)
)

// TestRedisWalkRunsWhatIsBuilt dry-runs 'make test-upgrade' of the Redis operator: each image has a program that is built for
// it, and each release its own.
func TestRedisWalkRunsWhatIsBuilt(t *testing.T) {
	dir := filepath.Join("..", "..", "examples", "redis-operator")
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "--dry-run", "test-upgrade")
	cmd.Dir, cmd.Env = dir, apart()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make --dry-run test-upgrade: %v\n%s", err, out)
	}
	programs := map[string]bool{}
	for _, m := range built.FindAllStringSubmatch(string(out), -1) {
		programs[m[1]] = true
	}
	users := map[string]string{}
	for _, m := range run.FindAllStringSubmatch(string(out), -1) {
		image, program := m[1], m[2]
		if !programs[program] {
			t.Errorf("image %s runs %s, which 'make build' does not build", image, program)
		}
		if other, taken := users[program]; taken {
			t.Errorf("images %s and %s both run %s", image, other, program)
		}
		users[program] = image
	}
	bundles, err := os.ReadDir(filepath.Join(dir, "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bundles {
		version := "v" + b.Name()
		if image := users["bin/"+version+"/manager"]; !strings.HasSuffix(image, ":"+version) {
			t.Errorf("the manager of %s runs as image %q", version, image)
		}
	}
}

// TestWithoutRaceDetector: of olmkit's packages only those are tested without the race detector that start no goroutine.
func TestWithoutRaceDetector(t *testing.T) {
	starts := regexp.MustCompile(`(?m)^\s*go |\.Go\(|errgroup`)
	list := regexp.MustCompile(`(?m)^WITHOUT_RACE := (.+)$`).FindStringSubmatch(read(t, "Makefile"))
	if list == nil {
		t.Fatal("the Makefile has no WITHOUT_RACE")
	}
	looked := 0
	for folder := range strings.FieldsSeq(list[1]) {
		if !strings.HasPrefix(folder, "./internal/") {
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", "..", folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if found := starts.Find(data); found != nil {
				t.Errorf("%s starts a goroutine: %q", file, found)
			}
			looked++
		}
	}
	if looked == 0 {
		t.Error("no file was looked at")
	}
}
