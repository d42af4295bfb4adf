// Package opm_test measures olmkit side by side with opm on the same published bundles, and holds their results to each
// other before it compares their times. 'make bench-opm' runs it; OLMKIT_DATA names the folder of the bundles.
package opm_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/blang/semver/v4"
)

const (
	olmkit = "../../../bin/olmkit"
	opm    = "../../../bin/opm"
)

// cost is what a process took.
type cost struct {
	wall, cpu time.Duration
	memory    int64 // its peak, in bytes
}

func (c cost) String() string {
	return fmt.Sprintf("%8.3f s %8.3f s CPU %6d MiB", c.wall.Seconds(), c.cpu.Seconds(), c.memory>>20)
}

// run runs a program to its end, its output into the file out.
func run(b *testing.B, cache, out, program string, args ...string) cost {
	b.Helper()
	command := exec.CommandContext(b.Context(), program, args...)
	command.Env = append(os.Environ(), "OLMKIT_CACHE="+cache)
	f, err := os.Create(out)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var said bytes.Buffer
	command.Stdout, command.Stderr = f, &said
	// A process's peak is at least that of the one that starts it.
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	err = command.Run()
	wall := time.Since(start)
	if err != nil {
		b.Fatalf("%s: %v\n%s", filepath.Base(program), err, said.String())
	}
	usage := command.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{wall, command.ProcessState.UserTime() + command.ProcessState.SystemTime(), usage.Maxrss << 10}
}

// best returns of several runs the one of the least time: what else runs on the machine only ever adds.
func best(times int, f func() cost) cost {
	least := f()
	for range times - 1 {
		least = slices.MinFunc([]cost{least, f()}, func(a, b cost) int { return cmp.Compare(a.wall, b.wall) })
	}
	return least
}

// report prints a line of the table, and what theirs takes in terms of ours.
func report(b *testing.B, what string, theirs, ours cost) {
	b.Helper()
	fmt.Printf("%-32s opm %s   olmkit %s   time %.1f×, CPU %.1f×, memory %.2f\n", what, theirs, ours,
		theirs.wall.Seconds()/ours.wall.Seconds(), theirs.cpu.Seconds()/max(ours.cpu.Seconds(), 0.001), float64(ours.memory)/float64(theirs.memory))
	b.ReportMetric(0, "ns/op")
}

// bundles returns the published bundle directories.
func bundles(b *testing.B) []string {
	b.Helper()
	root := os.Getenv("OLMKIT_DATA")
	if root == "" {
		b.Skip("OLMKIT_DATA names no folder of published bundles")
	}
	dirs, err := filepath.Glob(filepath.Join(root, "*", "*", "manifests"))
	if err != nil || len(dirs) == 0 {
		b.Fatalf("there are no bundles in %s: %v", root, err)
	}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	return dirs
}

// BenchmarkRender renders all bundles and catalogs together.
func BenchmarkRender(b *testing.B) {
	refs := bundles(b)
	count := len(refs)
	catalogs, err := filepath.Glob(filepath.Join(os.Getenv("OLMKIT_DATA"), "catalogs", "*"))
	if err != nil {
		b.Fatal(err)
	}
	renderBoth(b, fmt.Sprintf("render %d bundles", count), append(refs, catalogs...))
}

// renderBoth has opm and olmkit render refs, compares what they make of them, and prints what it takes.
func renderBoth(b *testing.B, what string, refs []string) {
	b.Helper()
	dir := b.TempDir()
	theirs, ours := filepath.Join(dir, "opm.json"), filepath.Join(dir, "olmkit.json")
	cache := filepath.Join(dir, "cache")
	render := append([]string{"catalog", "render"}, refs...)
	plain := run(b, "off", theirs, opm, append([]string{"render"}, refs...)...)
	cold := best(2, func() cost {
		if err := os.RemoveAll(cache); err != nil {
			b.Fatal(err)
		}
		return run(b, cache, ours, olmkit, render...)
	})
	sameDocuments(b, theirs, ours)
	warm := best(5, func() cost { return run(b, cache, ours, olmkit, render...) })
	sameDocuments(b, theirs, ours)
	report(b, what+", cold", plain, cold)
	report(b, what+", warm", plain, warm)
}

// BenchmarkValidate judges the catalog of all bundles; olmkit with all of its checks.
func BenchmarkValidate(b *testing.B) {
	dir := b.TempDir()
	out := filepath.Join(dir, "out")
	count := write(b, filepath.Join(dir, "catalog"), accepted(b, releases(b)), 1<<30)
	theirs := run(b, "off", out, opm, "validate", filepath.Join(dir, "catalog"))
	ours := best(2, func() cost {
		return run(b, "off", out, olmkit, "catalog", "validate", "--fail-on", "never", "-o", "json", filepath.Join(dir, "catalog"))
	})
	// What opm takes olmkit must be able to read.
	if text, err := os.ReadFile(out); err != nil || bytes.Contains(text, []byte(`"FBC00`)) {
		b.Errorf("olmkit cannot read what opm accepts: %v", err)
	}
	report(b, fmt.Sprintf("validate %d bundles", count), theirs, ours)
}

// BenchmarkGrowth gives catalogs made by renaming to commands, and prints how their costs grow with the number of bundles: the slopes
// of cost over size, both as logarithms, from the second size to the last. 1 is in proportion.
func BenchmarkGrowth(b *testing.B) {
	dir := b.TempDir()
	root, out, all := filepath.Join(dir, "catalog"), filepath.Join(dir, "out"), releases(b)
	with := func(args ...string) func(count int) cost {
		return func(int) cost { return run(b, "off", out, olmkit, append(args, root)...) }
	}
	work := []struct {
		name string
		do   func(count int) cost
	}{
		{"validate", with("catalog", "validate", "--fail-on", "never", "-o", "json")},
		{"render", with("catalog", "render")},
		{"plan", func(int) cost {
			return run(b, "off", out, olmkit, "upgrade", "plan", root, "--package", anyPackage(b, root), "--edges", "all")
		}},
		{"serve", func(count int) cost {
			return serve(b, func(address string) *exec.Cmd {
				command := exec.Command(olmkit, "catalog", "serve", root, "--address", address)
				command.Env = append(os.Environ(), "OLMKIT_CACHE=off")
				return command
			}, count).listed
		}},
	}
	costs := make([][]cost, len(work))
	var counts []int
	for _, size := range []int{50, 200, 800, 2000} {
		count := write(b, root, all, size)
		counts = append(counts, count)
		fmt.Printf("%5d bundles:\n", count)
		for i, w := range work {
			c := w.do(count)
			costs[i] = append(costs[i], c)
			fmt.Printf("  %-8s %s, %.1f ms CPU each\n", w.name, c, c.cpu.Seconds()*1000/float64(count))
		}
		if err := os.RemoveAll(root); err != nil {
			b.Fatal(err)
		}
	}
	for i, w := range work {
		first, last := costs[i][1], costs[i][len(counts)-1]
		grown := math.Log(float64(counts[len(counts)-1]) / float64(counts[1]))
		fmt.Printf("%-8s slope of CPU time %.2f, of memory %.2f\n", w.name,
			math.Log(last.cpu.Seconds()/first.cpu.Seconds())/grown, math.Log(float64(last.memory)/float64(first.memory))/grown)
	}
	b.ReportMetric(0, "ns/op")
}

// anyPackage is the first package of the catalog in root.
func anyPackage(b *testing.B, root string) string {
	b.Helper()
	packages, err := os.ReadDir(root)
	if err != nil || len(packages) == 0 {
		b.Fatalf("no package in %s: %v", root, err)
	}
	return packages[0].Name()
}

// object is a JSON object.
type object = map[string]any

// documents calls f with each document of the file.
func documents(b *testing.B, file string, f func(object)) {
	b.Helper()
	in, err := os.Open(file)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	decoder := json.NewDecoder(in)
	decoder.UseNumber()
	for {
		var d object
		err := decoder.Decode(&d)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			b.Fatal(err)
		}
		f(d)
	}
}

// content is what a document says, so that it can be compared: manifests apart, as opm escapes in them what HTML asks for,
// and leaves out those that stand second in their file.
type content struct {
	rest      string
	manifests map[string]int
}

func contents(b *testing.B, file string) map[string][]content {
	b.Helper()
	all := map[string][]content{}
	text := func(v any) string {
		out, err := json.Marshal(v)
		if err != nil {
			b.Fatal(err)
		}
		return string(out)
	}
	documents(b, file, func(d object) {
		c := content{manifests: map[string]int{}}
		properties, _ := d["properties"].([]any)
		d["properties"] = slices.DeleteFunc(properties, func(p any) bool {
			m := manifest(p.(object))
			if m != nil {
				c.manifests[fmt.Sprintf("%x", sha256.Sum256([]byte(text(m))))]++
			}
			return m != nil
		})
		if images, ok := d["relatedImages"].([]any); ok { // opm sorts them by image alone
			slices.SortFunc(images, func(a, b any) int { return strings.Compare(text(a), text(b)) })
		}
		c.rest = text(d)
		name := fmt.Sprint(d["schema"], " ", d["package"], " ", d["name"])
		all[name] = append(all[name], c)
	})
	return all
}

// sameDocuments fails if the files do not say the same; olmkit may have more manifests.
func sameDocuments(b *testing.B, theirs, ours string) {
	b.Helper()
	want, got := contents(b, theirs), contents(b, ours)
	if len(want) != len(got) {
		b.Errorf("opm renders %d documents, olmkit %d", len(want), len(got))
	}
	for name, documents := range want {
		for _, d := range documents {
			if len(documents) != len(got[name]) || !slices.ContainsFunc(got[name], d.isIn) {
				b.Errorf("%s: olmkit renders it otherwise", name)
			}
		}
	}
}

func (c content) isIn(other content) bool {
	for m, n := range c.manifests {
		if other.manifests[m] < n {
			return false
		}
	}
	return c.rest == other.rest
}

// manifest returns the object that a property holds, nil for other properties.
func manifest(property object) any {
	if property["type"] != "olm.bundle.object" {
		return nil
	}
	var value struct{ Data []byte }
	text, err := json.Marshal(property["value"])
	if err != nil || json.Unmarshal(text, &value) != nil {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(value.Data))
	decoder.UseNumber()
	var m any
	if decoder.Decode(&m) != nil {
		return nil
	}
	return m
}

// release is a bundle as it was rendered.
type release struct {
	name    string
	version semver.Version
	text    json.RawMessage
}

// accepted leaves out the packages that opm refuses.
func accepted(b *testing.B, all map[string][]release) map[string][]release {
	b.Helper()
	alone := filepath.Join(b.TempDir(), "alone")
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		write(b, alone, map[string][]release{pkg: all[pkg]}, 1<<30)
		if said, err := exec.Command(opm, "validate", alone).CombinedOutput(); err != nil {
			fmt.Printf("left out: opm refuses %s: %s\n", pkg, bytes.TrimSpace(said))
			delete(all, pkg)
		}
		if err := os.RemoveAll(alone); err != nil {
			b.Fatal(err)
		}
	}
	return all
}

// releases returns the rendered bundles of each package, by version.
func releases(b *testing.B) map[string][]release {
	b.Helper()
	file := filepath.Join(b.TempDir(), "all.json")
	run(b, "off", file, opm, append([]string{"render"}, bundles(b)...)...)
	all := map[string][]release{}
	in, err := os.Open(file)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	for decoder := json.NewDecoder(in); ; {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		var d struct {
			Name, Package string
			Properties    []struct {
				Type  string
				Value struct{ Version string }
			}
		}
		if err := json.Unmarshal(raw, &d); err != nil && d.Name == "" {
			b.Fatal(err)
		}
		r := release{name: d.Name, text: raw}
		for _, p := range d.Properties {
			if p.Type == "olm.package" {
				r.version, _ = semver.Parse(p.Value.Version)
			}
		}
		known := slices.ContainsFunc(all[d.Package], func(o release) bool { return o.name == r.name || o.version.EQ(r.version) })
		if !known {
			all[d.Package] = append(all[d.Package], r)
		}
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b release) int { return a.version.Compare(b.version) })
	}
	return all
}

// write writes a catalog of at most most bundles, a file for each package, and returns how many it has. Where there are too
// few the packages are there again under other names.
func write(b *testing.B, root string, all map[string][]release, most int) int {
	b.Helper()
	count, total := 0, 0
	for _, list := range all {
		total += len(list)
	}
	for round := 0; count < most && (round == 0 || most < 1<<30); round++ {
		for _, pkg := range slices.Sorted(maps.Keys(all)) {
			list := all[pkg]
			// Few bundles are taken from every package, so that the smallest catalog is like the largest.
			if share := max(1, len(list)*most/total); share < len(list) {
				list = list[:share]
			}
			list = list[:min(len(list), most-count)]
			if len(list) == 0 {
				continue
			}
			count += len(list)
			name := pkg
			if round > 0 {
				name = fmt.Sprintf("%s-%d", pkg, round)
			}
			writePackage(b, filepath.Join(root, name), pkg, name, list)
		}
	}
	return count
}

func writePackage(b *testing.B, dir, was, name string, list []release) {
	b.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "catalog.json"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	rename := func(bundle string) string { return strings.Replace(bundle, ".", strings.TrimPrefix(name, was)+".", 1) }
	var entries []object
	for i, r := range list {
		entry := object{"name": rename(r.name)}
		if i > 0 {
			entry["replaces"] = rename(list[i-1].name)
		}
		entries = append(entries, entry)
	}
	encoder := json.NewEncoder(f)
	for _, d := range []object{
		{"schema": "olm.package", "name": name, "defaultChannel": "stable"},
		{"schema": "olm.channel", "package": name, "name": "stable", "entries": entries},
	} {
		if err := encoder.Encode(d); err != nil {
			b.Fatal(err)
		}
	}
	for _, r := range list {
		text := r.text
		if name != was {
			text = renamed(b, text, name, rename(r.name))
		}
		if _, err := f.Write(append(text, '\n')); err != nil {
			b.Fatal(err)
		}
	}
}

// renamed gives a bundle, its package and its ClusterServiceVersion other names.
func renamed(b *testing.B, text json.RawMessage, newPackage, newName string) json.RawMessage {
	b.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var d object
	if err := decoder.Decode(&d); err != nil {
		b.Fatal(err)
	}
	d["package"], d["name"] = newPackage, newName
	for _, p := range d["properties"].([]any) {
		property := p.(object)
		value, _ := property["value"].(object)
		if property["type"] == "olm.package" {
			value["packageName"] = newPackage
		}
		m, _ := manifest(property).(object)
		if m["kind"] != "ClusterServiceVersion" {
			continue
		}
		m["metadata"].(object)["name"] = newName
		csv, err := json.Marshal(m)
		if err != nil {
			b.Fatal(err)
		}
		value["data"] = csv
	}
	changed, err := json.Marshal(d)
	if err != nil {
		b.Fatal(err)
	}
	return changed
}
