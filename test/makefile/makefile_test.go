//go:build linux

// Package makefile_test holds the Makefile to what machines lack.
package makefile_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
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
		"with a compiler":    {"", "CGO_ENABLED=1 go test -race ./internal/one", nil},
		"without a compiler": {`cgo: C compiler "gcc" not found`, "CGO_ENABLED=0 go test ./internal/one", []string{`C compiler "gcc" not found`, "without the race detector", "apt-get install gcc"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			stub, notes := filepath.Join(dir, "go"), filepath.Join(dir, "notes")
			if err := os.WriteFile(stub, []byte(goStub), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "test", "GO="+stub, "TEST_FLAGS=")
			cmd.Dir = filepath.Join("..", "..")
			cmd.Env = append(os.Environ(), "MAKEFLAGS=", "STUB_RACE="+test.missing, "STUB_NOTES="+notes)
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
