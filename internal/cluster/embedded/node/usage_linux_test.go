package node

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestUsedBy: the processor time of a process counts, and that of those that it started, whether they still run or it waited for them.
func TestUsedBy(t *testing.T) {
	for name, script := range map[string]string{
		"the process":       "while :; do :; done",
		"its child":         "while :; do :; done & trap 'kill $!' TERM; wait",
		"one it waited for": "sh -c 'n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done'; sleep 60 & trap 'kill $!' TERM; wait",
	} {
		cmd := exec.Command("sh", "-c", script)
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
				t.Fatalf("%s used no time: %v", name, err)
			}
			if used >= 50*time.Millisecond {
				break
			}
		}
	}
	if _, err := usedBy(1 << 30); err == nil {
		t.Error("a process that is not there was measured")
	}
}
