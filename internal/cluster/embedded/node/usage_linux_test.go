package node

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestUsedBy: the processor time of a process counts, and that of those that it started and that still run.
func TestUsedBy(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done & trap 'kill $!' TERM; wait")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		used, err := usedBy(cmd.Process.Pid)
		if err != nil || time.Now().After(deadline) {
			t.Fatal("no time was used", err)
		}
		if used >= 50*time.Millisecond {
			break
		}
	}
	if _, err := usedBy(1 << 30); err == nil {
		t.Error("a process that is not there was measured")
	}
}
