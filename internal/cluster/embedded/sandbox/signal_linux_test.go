package sandbox

import (
	"os"
	"os/exec"
	"testing"
)

// A Go program catches SIGTERM, sleep does not, and of a process that is gone nothing need be awaited.
func TestCatchesTerm(t *testing.T) {
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	if !catchesTerm(os.Getpid()) || catchesTerm(sleep.Process.Pid) {
		t.Errorf("this process catches SIGTERM: %t; sleep does: %t", catchesTerm(os.Getpid()), catchesTerm(sleep.Process.Pid))
	}
	_ = sleep.Process.Kill()
	_ = sleep.Wait()
	if !catchesTerm(sleep.Process.Pid) {
		t.Error("a process that is gone is waited for")
	}
}
