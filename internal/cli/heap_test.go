package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestLetHeapGrow: the limit is twice of what is in use where that is more than the size, and everything is as before in the end.
func TestLetHeapGrow(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	limit, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	defer debug.SetGCPercent(percent)
	const size = 16 << 20
	stop := (&session{}).letHeapGrow(size, 100)
	if got := debug.SetMemoryLimit(-1); got >= limit || got < size {
		t.Errorf("the limit is %d", got)
	}
	used := make([]*[1 << 20]byte, 200)
	for i := range used {
		used[i] = new([1 << 20]byte)
	}
	for end := time.Now().Add(20 * time.Second); debug.SetMemoryLimit(-1) < 400<<20; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("with 200 MiB in use the limit is %d", debug.SetMemoryLimit(-1))
		}
	}
	runtime.KeepAlive(used)
	stop()
	runtime.GC()
	if got := debug.SetMemoryLimit(-1); got != limit {
		t.Errorf("the limit is %d afterwards, not %d", got, limit)
	}
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("garbage is collected at %d%% afterwards", got)
	}
	t.Setenv("GOGC", "50")
	(&session{}).letHeapGrow(size, 100)()
	if got := debug.SetMemoryLimit(-1); got != limit {
		t.Errorf("the limit is %d, not %d, where the environment says otherwise", got, limit)
	}
}
