// Package start has no garbage collected while packages are initialized: what they allocate stays in use, and to look at it three times
// takes a third of the processor's time with which olmkit starts.
//
// Go initializes a package before those whose paths sort behind its own and that it does not import, so nearly all that allocate much are
// initialized later than this one.
package start

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// usual is what GOGC says, or 100.
var usual = debug.SetGCPercent(-1)

// roomy is how far the heap may grow until the first collection: 16 MiB, which few of the short commands reach.
const roomy = 400

// Main is called when all packages are initialized. Garbage is collected as usual from the first collection on, or once Collect is called.
func Main() {
	if usual != 100 {
		Collect()
		return
	}
	debug.SetGCPercent(roomy)
	sentinel := new([64]byte) // nothing refers to it, so that the first collection finds it; smaller ones share their memory with others
	runtime.AddCleanup(sentinel, func(struct{}) { Collect() }, struct{}{})
}

// Collect has garbage collected as usual. Who sets another percentage calls it first.
var Collect = sync.OnceFunc(func() { debug.SetGCPercent(usual) })
