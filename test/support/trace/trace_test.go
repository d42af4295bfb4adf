//go:build linux

package trace_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/olmkit/olmkit/test/support/trace"
	"github.com/olmkit/olmkit/test/support/wait"
)

// complaints are a test that only notes what it is told.
type complaints struct {
	testing.TB
	text string
}

func (c *complaints) Errorf(format string, args ...any) {
	c.text += fmt.Sprintf(format, args...) + "\n"
}

// TestTrace leaves a process, a file and a cluster behind, and finds them.
func TestTrace(t *testing.T) {
	t.Setenv("OLMKIT_CACHE", t.TempDir())
	before := trace.New(t)
	if target, err := os.Readlink(filepath.Join(before.Cache, "components")); err != nil || target != filepath.Join(os.Getenv("OLMKIT_CACHE"), "components") {
		t.Errorf("the components are at %q, %v", target, err)
	}
	before.Check(t)
	if left := before.Files(t); len(left) > 0 {
		t.Errorf("files: %v", left)
	}
	sleeping := exec.Command("sleep", "60")
	sleeping.Env = append(os.Environ(), before.Env())
	if err := sleeping.Start(); err != nil {
		t.Fatal(err)
	}
	// The kernel tells that a program was begun before it tells its arguments.
	wait.For(t, time.Minute, "the arguments of sleep", func() error {
		arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", sleeping.Process.Pid))
		if err == nil && !strings.HasPrefix(string(arguments), "sleep") {
			err = fmt.Errorf("they are %q", arguments)
		}
		return err
	})
	for _, name := range []string{"clusters/one/state", "walk.lock"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(before.Cache, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(before.Cache, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	noted := &complaints{TB: t}
	before.Check(noted)
	if err := sleeping.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = sleeping.Wait() // it is killed
	for _, part := range []string{fmt.Sprintf("%d sleep 60", sleeping.Process.Pid), "clusters were left"} {
		if !strings.Contains(noted.text, part) {
			t.Errorf("no %q in\n%s", part, noted.text)
		}
	}
	if left := before.Files(t); len(left) != 1 || !strings.HasSuffix(left[0], "clusters/one/state") {
		t.Errorf("files: %v", left)
	}
	if left := before.Processes(t); len(left) > 0 {
		t.Errorf("processes: %v", left)
	}
}
