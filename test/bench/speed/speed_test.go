// Package speed_test measures what users of olmkit wait for without a cluster: 'make bench' keeps the results, in the format of
// benchstat, and compares them with the last release's.
package speed_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/olmkit/olmkit/test/bench/large"
)

const olmkit = "../../../bin/olmkit"

// measure runs olmkit as often as b asks, with a cache, and reports its CPU time and the peak of its memory, which other work on
// the machine changes less than the time. before runs before each, and is not measured.
func measure(b *testing.B, cache string, before func(), args ...string) {
	b.Helper()
	var processor float64
	var most int64
	for b.Loop() {
		if before != nil {
			b.StopTimer()
			before()
			b.StartTimer()
		}
		command := exec.CommandContext(b.Context(), olmkit, args...)
		command.Env = append(os.Environ(), "OLMKIT_CACHE="+cache)
		if said, err := command.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, said)
		}
		usage := command.ProcessState.SysUsage().(*syscall.Rusage)
		processor += (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
		most = max(most, usage.Maxrss<<10)
	}
	b.ReportMetric(processor/float64(b.N), "cpu-sec/op")
	b.ReportMetric(float64(most), "peak-B")
}

func BenchmarkStart(b *testing.B) { measure(b, "off", nil, "version") }

// empty returns what empties a folder.
func empty(b *testing.B, dir string) func() {
	return func() {
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	releases, err := filepath.Glob("../../../bundle/memcached-operator/*")
	if err != nil || len(releases) == 0 {
		b.Fatal("no bundles", err)
	}
	cache, out := filepath.Join(b.TempDir(), "cache"), append([]string{"catalog", "render"}, releases...)
	b.Run("cold", func(b *testing.B) { measure(b, cache, empty(b, cache), out...) })
	b.Run("again", func(b *testing.B) { measure(b, cache, nil, out...) })
}

func BenchmarkPlan(b *testing.B) {
	measure(b, "off", nil, "upgrade", "plan", "../../../catalog", "--package", "memcached-operator", "--channel", "stable", "--edges", "all")
}

// BenchmarkValidate judges catalogs of growing size, so that the slope is seen, too.
func BenchmarkValidate(b *testing.B) {
	for _, bundles := range []int{5, 15, large.Many.Bundles} {
		root, cache := filepath.Join(b.TempDir(), "catalog"), filepath.Join(b.TempDir(), "cache")
		large.Many.Write(b, root, bundles)
		validate := []string{"catalog", "validate", "--fail-on", "never", root}
		name := "bundles=" + strconv.Itoa(bundles)
		b.Run(name+"/cold", func(b *testing.B) { measure(b, cache, empty(b, cache), validate...) })
		b.Run(name+"/again", func(b *testing.B) { measure(b, cache, nil, validate...) })
	}
}
