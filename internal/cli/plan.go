package cli

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/report"
)

// planFlags choose the hops to walk; `upgrade plan` and `upgrade test` share them.
type planFlags struct {
	pkg     string
	mode    string
	since   string
	options graph.Options
}

// planned adds the flags that choose hops to c.
func planned(c *cobra.Command) *planFlags {
	f := &planFlags{}
	c.Flags().StringVarP(&f.pkg, "package", "p", "", "package to upgrade (default: the only one of the catalog)")
	c.Flags().StringVar(&f.options.Channel, "channel", "", "channel to walk (default: the package's default channel)")
	c.Flags().StringVar(&f.mode, "edges", string(graph.Next),
		"hops: chain (the head's replaces chain), next (and the hop that OLM takes from every entry), all (every hop that OLM could take)")
	c.Flags().StringVar(&f.options.From, "from", "", "skip hops from below this version or bundle")
	c.Flags().StringVar(&f.options.To, "to", "", "skip hops to above this version or bundle")
	c.Flags().IntVar(&f.options.MaxHops, "max-hops", 0, "keep only the N newest hops")
	c.Flags().StringVar(&f.since, "changed-since", "", "keep only hops that are new since the git revision `REV`, or whose bundles changed since")
	return f
}

// check refuses wrong flags before any work is done.
func (f *planFlags) check() error {
	if !slices.Contains(graph.Modes, graph.Mode(f.mode)) {
		return usagef("--edges %s: it is chain, next or all", f.mode)
	}
	if f.options.MaxHops < 0 {
		return usagef("--max-hops %d: it is a number of hops, or 0 for all", f.options.MaxHops)
	}
	f.options.Mode = graph.Mode(f.mode)
	return nil
}

// plan lays out the hops in the loaded catalog. Where OLM cannot order the channel the plan is empty and the findings say
// why, with severity error.
func (f *planFlags) plan(ctx context.Context, c *catalog.Catalog) (*catalog.Package, graph.Plan, []finding.Finding, error) {
	p, err := findPackage(c, f.pkg)
	if err != nil {
		return nil, graph.Plan{}, nil, err
	}
	plan, err := document.Until(ctx, func() (graph.Plan, error) { return graph.NewPlan(p, f.options) })
	if ctx.Err() != nil {
		return nil, graph.Plan{}, nil, ctx.Err()
	}
	if errors.Is(err, graph.ErrOption) {
		return nil, graph.Plan{}, nil, hint.With(usageError{err}, "%s", hint.Of(err))
	}
	findings, _, stopped := checked(ctx, c, check.Options{Packages: []string{p.Name}, Only: []string{"GRA"}})
	if stopped != nil {
		return nil, graph.Plan{}, nil, stopped
	}
	channel := cmp.Or(f.options.Channel, p.DefaultChannel)
	findings = slices.DeleteFunc(findings, func(f finding.Finding) bool { return f.Subject.Channel != "" && f.Subject.Channel != channel })
	if worst, any := finding.Worst(findings); err != nil && (!any || worst != finding.Error) {
		return nil, graph.Plan{}, nil, err
	}
	return p, plan, findings, nil
}

// drawing is the graph of the channel that is planned for.
func (f *planFlags) drawing(p *catalog.Package) []graph.Drawing {
	return drawingsOf([]*catalog.Package{p}, cmp.Or(f.options.Channel, p.DefaultChannel), false)
}

// hops are the edges as a report shows them.
func hops(edges []graph.Edge) []report.Hop {
	list := make([]report.Hop, len(edges))
	for i, e := range edges {
		list[i] = hopOf(e)
	}
	return list
}

func hopOf(e graph.Edge) report.Hop {
	return report.Hop{Package: e.Package, Channel: e.Channel, From: e.From, To: e.To, Edge: string(e.Kind), Effective: e.Effective}
}

// restOf are the hops of plan that it does not hold, as a report shows them; nil for none.
func restOf(plan graph.Plan) iter.Seq[report.Hop] {
	if plan.More == 0 {
		return nil
	}
	return func(yield func(report.Hop) bool) {
		held := len(plan.Hops)
		for e := range plan.All() {
			if held--; held < 0 && !yield(hopOf(e)) {
				return
			}
		}
	}
}

// walkable refuses a plan of more hops than a walk takes.
func (f *planFlags) walkable(plan graph.Plan) error {
	n := plan.Count()
	if n <= graph.MostHops {
		return nil
	}
	count := strconv.Itoa(n)
	if n >= graph.MostCounted {
		count += " or more"
	}
	return hint.With(usagef("with --edges %s the plan has %s hops, and one walk takes at most %d", f.mode, count, graph.MostHops),
		"choose fewer, with --edges next or chain, --from and --to, --max-hops or --changed-since, or walk them in at least %d shards with --shard; 'olmkit upgrade plan' lists them",
		(n+graph.MostHops-1)/graph.MostHops)
}

// installations are those that a walk of plan surely makes, as a report shows them.
func installations(plan graph.Plan) []report.Installation {
	if plan.First() == "" {
		return nil
	}
	return []report.Installation{{Package: plan.Package, Channel: plan.Channel, Name: plan.First()}}
}

// filesOf are the files that a catalog was read from.
func filesOf(c *catalog.Catalog) []string {
	var files []string
	for _, d := range c.Documents {
		if len(files) == 0 || files[len(files)-1] != d.At.File {
			files = append(files, d.At.File)
		}
	}
	return files
}

func newUpgradePlan(s *session) *cobra.Command {
	c := &cobra.Command{
		Use:   "plan CATALOG...",
		Short: "Print the hops of a channel, in the order in which 'upgrade test' runs them",
		Example: `  olmkit upgrade plan catalog --channel stable
  olmkit upgrade plan catalog --edges all --from 1.0.0 -o json`,
		Args: atLeastOne("CATALOG"),
	}
	j, f := judged(s, c), planned(c)
	j.suppresses(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := errors.Join(j.check(c.Context()), f.check()); err != nil {
			return err
		}
		loaded, err := s.loadCatalog(c.Context(), args...)
		if err != nil {
			return err
		}
		p, plan, findings, err := f.plan(c.Context(), loaded)
		if err != nil {
			return err
		}
		if plan, err = f.onlyChanged(c.Context(), s, args, p, plan); err != nil {
			return err
		}
		drawing, err := document.Until(c.Context(), func() ([]graph.Drawing, error) { return f.drawing(p), nil })
		if err != nil {
			return err
		}
		return j.finish(c.Context(), &report.Report{
			APIVersion: report.APIVersion, Kind: report.KindPlan,
			Findings: findings, Files: filesOf(loaded), Installations: installations(plan), Graph: drawing,
			Hops: hops(plan.Hops), MoreHops: plan.More, Rest: restOf(plan),
			LeftOut: hops(plan.LeftOut), LeftOutCount: len(plan.LeftOut) + plan.MoreLeftOut,
		})
	}
	return c
}
