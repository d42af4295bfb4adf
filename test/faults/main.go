// Command faults writes docs/faults.md: what faults there are, and what became of upgrades under each by the reports of
// walks. 'make faults' runs it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/upgrade"
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

An upgrade that goes well on a quiet cluster may still fail in the field, where processes die and certificates expire.
` + "`olmkit upgrade test --fault NAME[@PHASE]`" + ` makes such a trouble on purpose while OLM upgrades, at the phase that is named or at
the fault's own, bounds it, undoes it, and judges the upgrade as always. Faults separated by commas strike in one hop; the flag
can be given several times, once for each walk of the plan. ` + "`--fault-matrix all`" + ` walks every hop without a fault and then under each that
the kind of cluster can make.

What a fault itself brings about, for example an outage while a killed operator starts again, is a note that names the fault,
and fails nothing; what would also be there without it is a finding as always. It is an error
([U701](checks/U.md#u701), [U702](checks/U.md#u702)) when the upgrade comes to something worse than is expected under the fault:

- **survived**: as if nothing had been;
- **blocked**: it waited as long as the fault was in force, and came through afterwards;
- **harmed**: it came through; users noticed for a while, by the fault's doing;
- **broken**: it did not come through, or something was lost.

`

func page(hops []report.Hop) string {
	var b strings.Builder
	b.WriteString(intro)
	fmt.Fprintf(&b, "Phases: %s.\n\n| fault | at | what is done | expected at worst |\n|---|---|---|---|\n", strings.Join(upgrade.Phases, ", "))
	for _, f := range upgrade.Faults {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.Phase, f.Doc, f.Expect)
	}
	b.WriteString("\n## The memcached operator under them\n\nWhat each hop was expected to come to at worst, and what it came to on embedded clusters; what is empty was not walked.\n`make faults` walks them all anew.\n")
	var edges []string
	for _, h := range hops {
		if len(h.Faults) > 0 && !slices.Contains(edges, edge(h)) {
			edges = append(edges, edge(h))
		}
	}
	slices.Sort(edges)
	fmt.Fprintf(&b, "\n| fault | expected | %s |\n|---|---|%s\n", strings.Join(edges, " | "), strings.Repeat("---|", len(edges)))
	walked, wrong := 0, 0
	for _, f := range upgrade.Faults {
		cells := make([]string, len(edges))
		at := f.Phase
		for _, h := range hops {
			for _, came := range h.Faults {
				if came.Name != f.Name {
					continue
				}
				if came.Outcome != string(upgrade.NotStruck) {
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

// edge is the hop as a column's heading: versions alone.
func edge(h report.Hop) string {
	return strings.TrimPrefix(h.From, h.Package+".") + " → " + strings.TrimPrefix(h.To, h.Package+".")
}
