// Command faults writes docs/faults.md: all faults, and the result of each upgrade under each fault, from the reports of
// walks. 'make faults' runs it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
	"github.com/olmkit/olmkit/internal/report"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// run writes the page for the reports in files, each of 'olmkit upgrade test', as JSON.
func run(w io.Writer, files []string) error {
	var hops []report.Hop
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var r report.Report
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		hops = append(hops, r.Hops...)
	}
	_, err := io.WriteString(w, page(hops))
	return err
}

const intro = `# Faults

An upgrade that passes on a quiet cluster can still fail in production, where processes die and certificates expire.
` + "`olmkit upgrade test --fault NAME[@PHASE]`" + ` injects a fault while OLM upgrades, undoes it after a limited time, and reports
findings as usual. Without a phase, a fault starts at its default phase. Faults separated by commas are injected into the same
hop; those of certificates and conversion take turns. Repeat the flag to run each hop once per flag. ` + "`--fault-matrix all`" + ` runs
each hop without a fault, and then once under each fault that the kind of cluster supports.

What the fault itself causes, such as an outage while a killed operator restarts, is a note that names the fault. It fails
nothing. All other findings count as usual. A hop has one of these results, from best to worst; a result worse than the
expected one is an error ([U701](checks/U.md#u701), [U702](checks/U.md#u702)):

- **survived**: the fault has no effect;
- **blocked**: the upgrade waits while the fault is active, and then passes;
- **degraded**: the upgrade passes; users notice the fault for a while;
- **broken**: the upgrade fails, or data are lost.

`

func page(hops []report.Hop) string {
	var b strings.Builder
	b.WriteString(intro)
	b.WriteString(table(&olmv0.Client{}))
	b.WriteString("\n## Under OLM v1\n\n`--olm v1` knows these; what waits for parts of OLM v0 is left out. Results are not kept here.\n\n" + table(&olmv1.Client{}))
	b.WriteString("\n## Results of the memcached operator\n\nThe expected and the actual result of each hop on embedded clusters. An empty cell was not run. `make faults` runs all of them.\n")
	var edges []string
	for _, h := range hops {
		if len(h.Faults) > 0 && !slices.Contains(edges, edge(h)) {
			edges = append(edges, edge(h))
		}
	}
	slices.Sort(edges)
	fmt.Fprintf(&b, "\n| fault | expected | %s |\n|---|---|%s\n", strings.Join(edges, " | "), strings.Repeat("---|", len(edges)))
	walked, wrong := 0, 0
	for _, f := range fault.Faults(&olmv0.Client{}) {
		cells := make([]string, len(edges))
		at := f.Phase
		for _, h := range hops {
			for _, came := range h.Faults {
				if came.Name != f.Name {
					continue
				}
				if came.Outcome != string(fault.Skipped) {
					walked++
				}
				at = came.Phase
				cell := came.Outcome
				if came.Result != report.Passed {
					wrong++
					cell = "**" + cell + "** (" + strings.Join(came.Codes, ", ") + ")"
				}
				cells[slices.Index(edges, edge(h))] = cell
			}
		}
		if strings.Join(cells, "") != "" {
			fmt.Fprintf(&b, "| `%s@%s` | %s | %s |\n", f.Name, at, f.Expect, strings.Join(cells, " | "))
		}
	}
	fmt.Fprintf(&b, "\n%d hops under faults, %d of them worse than expected.\n", walked, wrong)
	return b.String()
}

// table lists the phases of m and the faults that can be made under it.
func table(m lifecycle.Manager) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Phases: %s.\n\n| fault | default phase | what happens | expected result |\n|---|---|---|---|\n", strings.Join(fault.Phases(m), ", "))
	for _, f := range fault.Faults(m) {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Phase, f.Doc, f.Expect)
	}
	return b.String()
}

// edge is the hop as a column's heading: versions alone.
func edge(h report.Hop) string {
	return strings.TrimPrefix(h.From, h.Package+".") + " → " + strings.TrimPrefix(h.To, h.Package+".")
}
