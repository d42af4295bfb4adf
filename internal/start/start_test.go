package start

import (
	"math"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// percent is by how many percent the heap may grow; the maximum where no garbage is collected.
func percent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// No garbage is collected before main, none while there is little, and then as usual.
func TestCollect(t *testing.T) {
	if usual != 100 {
		t.Fatalf("run this without GOGC, which is %d", usual)
	}
	if got := percent(); got != math.MaxUint64 {
		t.Errorf("before main it is %d", got)
	}
	Main()
	if got := percent(); got != roomy {
		t.Errorf("in main it is %d", got)
	}
	runtime.GC()
	for until := time.Now().Add(time.Minute); percent() != 100; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("after the first collection it is %d", percent())
		}
	}
}
