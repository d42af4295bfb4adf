// Package walk_test measures how the cost of a walk grows with the custom resources that it watches: 'make bench-walk'.
package walk_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/test/support/pattern"
)

var most = flag.Int("samples", 10_000, "how many samples the largest walk has; the others have a tenth, and so on down to 10")

const olmkit = "../../../bin/olmkit"

// BenchmarkSamples walks one upgrade of an operator that is simulated, so that nothing but the walk has work with the samples, and
// prints how its costs grow: the slope of cost over number, both as logarithms, from a tenth of the samples to all.
func BenchmarkSamples(b *testing.B) {
	if _, err := os.Stat(olmkit); err != nil {
		b.Fatalf("%v: run 'make bench-walk', which builds it", err)
	}
	file := writeCatalog(b)
	var before, last cost
	for n := 10; n <= *most; n *= 10 {
		before, last = last, walk(b, file, n)
		fmt.Printf("%6d samples: created and installed after %.1f s, upgraded and compared in %.1f s, %.1f s in all, with %.1f s of olmkit's processor time and %d MiB\n",
			n, last.installed, last.hop, last.all, last.processor, last.memory)
	}
	slope := func(of func(cost) float64) float64 { return math.Log10(of(last) / of(before)) }
	fmt.Printf("slopes: installation %.2f, hop %.2f, processor time %.2f, memory %.2f\n",
		slope(func(c cost) float64 { return c.installed }), slope(func(c cost) float64 { return c.hop }),
		slope(func(c cost) float64 { return c.processor }), slope(func(c cost) float64 { return float64(c.memory) }))
	b.ReportMetric(0, "ns/op")
}

// cost is what a walk took: seconds, and MiB.
type cost struct {
	installed, hop, all, processor float64
	memory                         int64
}

// walk has olmkit walk the catalog's upgrade with so many samples.
func walk(b *testing.B, file string, n int) cost {
	b.Helper()
	var samples, out, messages bytes.Buffer
	for i := range n {
		fmt.Fprintf(&samples, "---\n{apiVersion: tea.example.com/v1, kind: Pot, metadata: {name: pot-%d, namespace: default}, spec: {mode: slow, size: %d}}\n", i, i%9)
	}
	sampled := filepath.Join(b.TempDir(), "samples.yaml")
	if err := os.WriteFile(sampled, samples.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	command := exec.CommandContext(b.Context(), olmkit, "upgrade", "test", file, "--sample", sampled, "--timeout", "30m", "-q", "-o", "json")
	command.Stdout, command.Stderr = &out, &messages
	began := time.Now()
	err := command.Run()
	took := time.Since(began)
	var r struct{ Installations, Hops []struct{ Seconds float64 } }
	if err = errors.Join(err, json.Unmarshal(out.Bytes(), &r)); err != nil || len(r.Installations) != 1 || len(r.Hops) != 1 {
		b.Fatalf("%v: %d installations, %d hops: %s%s", err, len(r.Installations), len(r.Hops), &messages, out.String())
	}
	usage := command.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{
		installed: r.Installations[0].Seconds, hop: r.Hops[0].Seconds, all: took.Seconds(),
		processor: (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds(), memory: usage.Maxrss >> 10,
	}
}

// writeCatalog writes a catalog with two releases of the scenarios' simplest operator, and returns its name.
func writeCatalog(b *testing.B) string {
	b.Helper()
	var out bytes.Buffer
	fmt.Fprintln(&out, `{"schema": "olm.package", "name": "tea-operator", "defaultChannel": "stable"}`)
	fmt.Fprintln(&out, `{"schema": "olm.channel", "package": "tea-operator", "name": "stable", "entries": [{"name": "tea-operator.v1.0.0"}, {"name": "tea-operator.v1.1.0", "replaces": "tea-operator.v1.0.0"}]}`)
	for _, version := range []string{"1.0.0", "1.1.0"} {
		release, err := bundle.Read(pattern.Fill(b, "../../scenario/tea", version))
		if err != nil {
			b.Fatal(err)
		}
		document, err := catalog.Render(release, "")
		if err != nil {
			b.Fatal(err)
		}
		out.Write(append(document.JSON, '\n'))
	}
	file := filepath.Join(b.TempDir(), "catalog.json")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}
