//go:build linux

package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestRaces walks one hop with an olmkit that has the race detector, in every process that is olmkit: the walk, the first
// process of the cluster's namespaces, and the host, which the node is a part of. Each writes a file of its own, also when
// there is no race; one with a race ends, and the walk with it.
func TestRaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"GORACE=halt_on_error=1 verbosity=1 log_path=" + filepath.Join(dir, "process")}
	r := runProgram(t, olmkit+"-race", env, hopArgs()...)
	files, err := filepath.Glob(filepath.Join(dir, "process.*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 3 {
		t.Errorf("the race detector ran in %q alone", files)
	}
	raced := false
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("DATA RACE")) {
			raced = true
			t.Errorf("%s", data)
		}
	}
	if r.code != 0 && !raced {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.errOut)
	}
}
