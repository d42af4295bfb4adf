// Command history keeps results of benchmarks, in the format that 'go test -bench' writes and benchstat reads: it adds those on
// standard input to a folder, prints how they differ from the last release's, and draws all of them as a page.
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	dir := flag.String("dir", "", "folder of the history")
	commit := flag.String("commit", "", "what was measured")
	release := flag.String("release", "", "its release, if it is one")
	flag.Parse()
	if err := run(*dir, *commit, *release, time.Now().UTC(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "history:", err)
		os.Exit(1)
	}
}

// results are the values of one run of the benchmarks, by benchmark and unit.
type results struct {
	name, release string
	values        map[string][]float64
}

func run(dir, commit, release string, now time.Time, in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	name := now.Format("2006-01-02T150405Z") + "-" + cmp.Or(commit, "unknown")
	header := "commit: " + commit + "\n"
	if release != "" {
		header += "release: " + release + "\n"
	}
	text = append([]byte(header), text...)
	latest := parse(name, text)
	if len(latest.values) == 0 {
		return fmt.Errorf("standard input has no results of benchmarks")
	}
	before, err := read(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".txt"), text, 0o644); err != nil {
		return err
	}
	if base := baseOf(before); base != nil {
		compare(out, *base, latest)
	} else {
		fmt.Fprintln(out, "nothing to compare with: these are the first results")
	}
	return os.WriteFile(filepath.Join(dir, "index.html"), page(append(before, latest)), 0o644)
}

// read returns the results in dir, the oldest first.
func read(dir string) ([]results, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var all []results
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, parse(strings.TrimSuffix(filepath.Base(file), ".txt"), text))
	}
	return all, nil
}

// baseOf returns the last release's results, or else the last ones.
func baseOf(all []results) *results {
	for i := range slices.Backward(all) {
		if all[i].release != "" {
			return &all[i]
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

func parse(name string, text []byte) results {
	r := results{name: name, values: map[string][]float64{}}
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		if len(words) == 2 && words[0] == "release:" {
			r.release = words[1]
		}
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		benchmark := strings.TrimPrefix(words[0], "Benchmark")
		if i := strings.LastIndexByte(benchmark, '-'); i > 0 { // the number of processors
			benchmark = benchmark[:i]
		}
		for i := 2; i+1 < len(words); i += 2 {
			if value, err := strconv.ParseFloat(words[i], 64); err == nil {
				key := benchmark + " " + words[i+1]
				r.values[key] = append(r.values[key], value)
			}
		}
	}
	return r
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// compare prints the medians of both, and how much the latest are above the base's.
func compare(out io.Writer, base, latest results) {
	fmt.Fprintf(out, "%-48s %14s %14s %9s\n", "median, against "+cmp.Or(base.release, base.name), "before", "now", "change")
	for _, key := range slices.Sorted(maps.Keys(latest.values)) {
		now := median(latest.values[key])
		was, known := base.values[key]
		if !known || median(was) == 0 {
			fmt.Fprintf(out, "%-48s %14s %14.6g\n", key, "", now)
			continue
		}
		fmt.Fprintf(out, "%-48s %14.6g %14.6g %+8.1f%%\n", key, median(was), now, (now/median(was)-1)*100)
	}
}
