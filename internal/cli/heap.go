package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// letHeapGrow lets the process grow to so many bytes before garbage is collected, or to so many percent more than its heap has in use, if
// that is more, until stop is called. A collection looks at all that is in use, and a small heap is soon due again. GOGC and GOMEMLIMIT in
// the environment decide instead.
func (s *session) letHeapGrow(size, percent int64) (stop func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	s.decidesCollection()
	usual, limit := debug.SetGCPercent(oftenEnough), debug.SetMemoryLimit(-1)
	var mu sync.Mutex
	stopped := false
	var afterEach func()
	afterEach = func() {
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		debug.SetMemoryLimit(min(limit, max(size, heapInUse()*(100+percent)/100+besideHeap)))
		sentinel := new([64]byte) // nothing refers to it, so that the next collection finds it; smaller ones share their memory with others
		runtime.AddCleanup(sentinel, func(struct{}) { afterEach() }, struct{}{})
	}
	afterEach()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		debug.SetGCPercent(usual)
		debug.SetMemoryLimit(limit)
	}
}

// decidesCollection is called before anything here decides when garbage is collected.
func (s *session) decidesCollection() {
	if s.collect != nil {
		s.collect()
	}
}

const (
	// oftenEnough is by how many percent a heap may grow where no limit is reached.
	oftenEnough = 400
	// besideHeap is about how many bytes a process has beside its heap that count against its limit.
	besideHeap = 12 << 20
)

// heapInUse returns how many bytes the last collection left.
func heapInUse() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
