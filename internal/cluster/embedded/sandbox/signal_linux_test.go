package sandbox

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// A Go program catches SIGTERM, sleep does not, and of a process that is gone nothing need be awaited.
func TestCatches(t *testing.T) {
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	if !catches(os.Getpid(), syscall.SIGTERM) || catches(sleep.Process.Pid, syscall.SIGTERM) {
		t.Errorf("this process catches SIGTERM: %t; sleep does: %t", catches(os.Getpid(), syscall.SIGTERM), catches(sleep.Process.Pid, syscall.SIGTERM))
	}
	_ = sleep.Process.Kill()
	_ = sleep.Wait()
	if !catches(sleep.Process.Pid, syscall.SIGTERM) {
		t.Error("a process that is gone is waited for")
	}
}
