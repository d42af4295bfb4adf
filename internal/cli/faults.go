package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// faultFlags are the troubles that 'olmkit upgrade test' is to make.
type faultFlags struct {
	together []string // each what strikes in one hop
	matrix   string
}

// faulty adds the flags that make faults to c.
func faulty(c *cobra.Command) *faultFlags {
	f := &faultFlags{}
	c.Flags().StringArrayVar(&f.together, "fault", nil, "inject the faults `NAME[@PHASE][,…]` into each hop, each at its phase; see docs/faults.md (repeatable: one run of the hop for each)")
	c.Flags().StringVar(&f.matrix, "fault-matrix", "", "run each hop without a fault, then with each fault of `NAME,…`, or with all of them, one at a time")
	return f
}

// allFaults is the value of --fault-matrix for every fault that the cluster can make.
const allFaults = "all"

// rounds are what each hop is walked under, by m, on a cluster like c, of which only the kind matters: nil if c is unknown.
func (f *faultFlags) rounds(m lifecycle.Manager, c cluster.Cluster) ([][]fault.Injection, error) {
	var rounds [][]fault.Injection
	add := func(flag, s string) error {
		injections, err := fault.ParseInjections(m, s)
		if err != nil {
			return usageError{fmt.Errorf("--%s %s: %w", flag, s, err)}
		}
		for _, i := range injections {
			if possible := possibleFaults(m, c); !slices.Contains(possible, i.Name) {
				return hint.With(usagef("--%s %s: this kind of cluster cannot make the fault %s; it can make %s", flag, s, i.Name, strings.Join(possible, ", ")),
					"walk on --cluster embedded")
			}
		}
		rounds = append(rounds, injections)
		return nil
	}
	if f.matrix != "" {
		names := strings.Split(f.matrix, ",")
		if f.matrix == allFaults {
			names = possibleFaults(m, c)
		}
		rounds = append(rounds, nil)
		for _, name := range names {
			if err := add("fault-matrix", name); err != nil {
				return nil, err
			}
		}
	}
	for _, together := range f.together {
		if err := add("fault", together); err != nil {
			return nil, err
		}
	}
	return rounds, nil
}

func possibleFaults(m lifecycle.Manager, c cluster.Cluster) []string {
	if c == nil {
		return nil
	}
	return fault.PossibleFaults(m, c)
}
