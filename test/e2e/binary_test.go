//go:build linux

package e2e_test

import (
	"bytes"
	"os"
	"testing"
)

// TestMethodsByName: nothing in the program looks up a method by a name that it computes. For that the linker would keep all methods of
// all types, which are as much again as half of the program.
func TestMethodsByName(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(olmkit)
	if err != nil {
		t.Fatal(err)
	}
	for function, reason := range map[string]string{
		"text/template.(*state).evalField":                           "write what the template makes in Go; gRPC's page of traces is left out by -tags=grpcnotrace",
		"github.com/google/go-cmp/cmp/internal/value.appendTypeName": "compare without go-cmp's report",
	} {
		if bytes.Contains(program, []byte(function)) {
			t.Errorf("%s is linked: %s", function, reason)
		}
	}
	if !bytes.Contains(program, []byte("github.com/olmkit/olmkit/internal/cli.Main")) {
		t.Error("the program does not name its functions: nothing was looked at")
	}
}
