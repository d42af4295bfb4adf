//go:build unix

package check

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"syscall"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
)

// growing is a catalog of n releases, each of which replaces the one before, as JSON or as YAML; with ranges set each also
// covers all those before by a skipRange of its own.
func growing(n int, yaml, ranges bool) []byte {
	version := func(i int) string { return fmt.Sprintf("1.%d.%d", i/100, i%100) }
	var b bytes.Buffer
	b.WriteString("{\"schema\": \"olm.package\", \"name\": \"tea\", \"defaultChannel\": \"stable\"}\n")
	if yaml {
		b.Reset()
		b.WriteString("schema: olm.package\nname: tea\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: tea\nname: stable\nentries:\n")
	} else {
		b.WriteString("{\"schema\": \"olm.channel\", \"package\": \"tea\", \"name\": \"stable\", \"entries\": [")
	}
	for i := range n {
		replaces, skipRange := "tea.v0.9.0", ">=0.9.0 <"+version(i)
		if i > 0 {
			replaces = "tea.v" + version(i-1)
		}
		if !ranges {
			skipRange = ""
		}
		if yaml {
			fmt.Fprintf(&b, "- name: tea.v%s\n  replaces: %s\n  skipRange: %q\n", version(i), replaces, skipRange)
			continue
		}
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{"name": "tea.v%s", "replaces": %q, "skipRange": %q}`, version(i), replaces, skipRange)
	}
	if !yaml {
		b.WriteString("]}\n")
	}
	for i := range n {
		if yaml {
			fmt.Fprintf(&b, "---\nschema: olm.bundle\npackage: tea\nname: tea.v%s\nimage: quay.io/tea/bundle:v%s\nproperties:\n- type: olm.package\n  value:\n    packageName: tea\n    version: %s\n",
				version(i), version(i), version(i))
			continue
		}
		fmt.Fprintf(&b, `{"schema": "olm.bundle", "package": "tea", "name": "tea.v%s", "image": "quay.io/tea/bundle:v%s", "properties": [{"type": "olm.package", "value": {"packageName": "tea", "version": %q}}]}`+"\n",
			version(i), version(i), version(i))
	}
	return b.Bytes()
}

// crowded is a catalog of n channels that all have the same two releases.
func crowded(n int) []byte {
	var b bytes.Buffer
	b.WriteString("{\"schema\": \"olm.package\", \"name\": \"tea\", \"defaultChannel\": \"c0\"}\n")
	for i := range n {
		fmt.Fprintf(&b, `{"schema": "olm.channel", "package": "tea", "name": "c%d", "entries": [{"name": "tea.v1.0.0"}, {"name": "tea.v1.1.0", "replaces": "tea.v1.0.0"}]}`+"\n", i)
	}
	for _, v := range []string{"1.0.0", "1.1.0"} {
		fmt.Fprintf(&b, `{"schema": "olm.bundle", "package": "tea", "name": "tea.v%s", "image": "quay.io/tea/bundle:v%s", "properties": [{"type": "olm.package", "value": {"packageName": "tea", "version": %q}}]}`+"\n", v, v, v)
	}
	return b.Bytes()
}

// skipping is a catalog of n releases, the newest of which skips all others.
func skipping(n int) []byte {
	var b bytes.Buffer
	b.WriteString("{\"schema\": \"olm.package\", \"name\": \"tea\", \"defaultChannel\": \"stable\"}\n{\"schema\": \"olm.channel\", \"package\": \"tea\", \"name\": \"stable\", \"entries\": [")
	for i := range n {
		fmt.Fprintf(&b, "{\"name\": \"tea.v1.%d.0\"},\n", i)
	}
	b.WriteString(`{"name": "tea.v2.0.0", "skips": ["tea.v0.0.0"`)
	for i := range n {
		fmt.Fprintf(&b, `, "tea.v1.%d.0"`, i)
	}
	b.WriteString("]}]}\n")
	for i := range n {
		fmt.Fprintf(&b, `{"schema": "olm.bundle", "package": "tea", "name": "tea.v1.%d.0", "image": "quay.io/tea/bundle:v%d", "properties": [{"type": "olm.package", "value": {"packageName": "tea", "version": "1.%d.0"}}]}`+"\n", i, i, i)
	}
	b.WriteString(`{"schema": "olm.bundle", "package": "tea", "name": "tea.v2.0.0", "image": "quay.io/tea/bundle:v2", "properties": [{"type": "olm.package", "value": {"packageName": "tea", "version": "2.0.0"}}]}`)
	return b.Bytes()
}

// cost is what validating took: bytes that were allocated, and seconds of the processor.
type cost struct{ bytes, seconds float64 }

func used(t *testing.T) cost {
	t.Helper()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return cost{float64(memory.TotalAlloc), float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9}
}

// raceDetector is set where the race detector is on, which makes all ten times slower.
var raceDetector bool

// unhurried is how many rounds of a test to run: all where there is no race detector, as in the second part of 'make test'.
func unhurried(rounds int) int {
	if raceDetector {
		return rounds / 5
	}
	return rounds
}

// TestGrowth: what it takes to validate a catalog grows with its length. Memory and the processor's time for a long one are
// compared with those for a short one, never with a limit in bytes or seconds.
func TestGrowth(t *testing.T) {
	// On a busy machine a short run has the caches to itself and a long one has not, so time is given more; what is not linear
	// has twice the slope.
	const short, steepest, steepestTime = 1_000, 1.2, 1.5
	long := 100_000
	if testing.Short() {
		long = 10_000
	}
	if raceDetector {
		t.Skip("the race detector is what it would measure: the second part of 'make test' runs it")
	}
	for _, test := range []struct {
		name  string
		write func(n int) []byte
	}{
		{"JSON", func(n int) []byte { return growing(n, false, false) }},
		{"YAML", func(n int) []byte { return growing(n, true, false) }},
		{"ranges", func(n int) []byte { return growing(n, false, true) }},
		{"channels", crowded},
		{"skips", skipping},
	} {
		least := func(n, runs int) cost {
			data := test.write(n)
			best := cost{math.Inf(1), math.Inf(1)}
			for range runs {
				runtime.GC()
				before := used(t)
				c := catalog.Parse("catalog", data)
				findings, _ := Catalog(c, Options{})
				after := used(t)
				if len(c.Problems) > 0 || len(findings) == 0 {
					t.Fatalf("%s: %d findings of %d releases: %v", test.name, len(findings), n, c.Problems)
				}
				best = cost{min(best.bytes, after.bytes-before.bytes), min(best.seconds, after.seconds-before.seconds)}
			}
			return best
		}
		few, many := least(short, 5), least(long, 1)
		slope := func(few, many float64) float64 { return math.Log(many/few) / math.Log(float64(long)/short) }
		inBytes, inSeconds := slope(few.bytes, many.bytes), slope(few.seconds, many.seconds)
		t.Logf("%s: memory grows with the length to the power of %.2f, time of %.2f", test.name, inBytes, inSeconds)
		if inBytes > steepest || inSeconds > steepestTime {
			t.Errorf("%s: memory grows with the length of a chain to the power of %.2f, the processor's time of %.2f; %v and %v are linear enough", test.name, inBytes, inSeconds, steepest, steepestTime)
		}
	}
}
