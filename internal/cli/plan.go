package cli

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/report"
)

// planFlags choose the hops to walk; `upgrade plan` and `upgrade test` share them.
type planFlags struct {
	pkg     string
	mode    string
	since   string
	olm     string
	options graph.Options
}

// planned adds the flags that choose hops to c.
func planned(c *cobra.Command) *planFlags {
	f := &planFlags{}
	c.Flags().StringVarP(&f.pkg, "package", "p", "", "package to upgrade (default: the only one of the catalog)")
	c.Flags().StringVar(&f.olm, "olm", olmV0, "version of OLM that upgrades: v0, v1, or v0,v1 to compare both; v1 runs on the embedded cluster")
	c.Flags().StringVar(&f.options.Channel, "channel", "", "channel to walk (default: the package's default channel)")
	c.Flags().StringVar(&f.mode, "edges", string(graph.Next),
		"hops: chain (the head's replaces chain), next (and the hop that OLM takes from every entry), all (every hop that OLM could take), or switch (those of users who change to the channel from another one)")
	c.Flags().StringVar(&f.options.From, "from", "", "skip hops from below this version or bundle")
	c.Flags().StringVar(&f.options.To, "to", "", "skip hops to above this version or bundle")
	c.Flags().IntVar(&f.options.MaxHops, "max-hops", 0, "keep only the N newest hops")
	c.Flags().StringVar(&f.since, "changed-since", "", "keep only hops that are new since the git revision `REV`, or whose bundles changed since")
	return f
}

// check refuses wrong flags before any work is done.
func (f *planFlags) check() error {
	if !slices.Contains(graph.Choices, graph.Mode(f.mode)) {
		return usagef("--edges %s: must be chain, next, all or switch", f.mode)
	}
	if f.options.MaxHops < 0 {
		return usagef("--max-hops %d: must be a number of hops, or 0 for all", f.options.MaxHops)
	}
	if err := checkOLMs(f.olm); err != nil {
		return err
	}
	if f.olm != olmV0 && f.mode == string(graph.Switch) {
		return hint.With(usagef("--edges switch is for OLM v0, whose Subscriptions have one channel"), "leave out --olm %s", f.olm)
	}
	f.options.Mode, f.options.OLMv1 = graph.Mode(f.mode), f.olm == olmV1
	return nil
}

// versions are the versions of OLM to plan for.
func (f *planFlags) versions() []string { return strings.Split(f.olm, ",") }

// under is f for one of several versions of OLM. All of them go through the same channel: OLM v1 by itself would take all.
func (f *planFlags) under(version string, c *catalog.Catalog) (*planFlags, error) {
	one := *f
	one.olm, one.options.OLMv1 = version, version == olmV1
	if len(f.versions()) > 1 && one.options.Channel == "" {
		p, err := findPackage(c, f.pkg)
		if err != nil {
			return nil, err
		}
		one.options.Channel = p.DefaultChannel
	}
	return &one, nil
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
	if errors.As(err, &graph.OptionError{}) {
		return nil, graph.Plan{}, nil, hint.With(usageError{err}, "%s", hint.Of(err))
	}
	if f.options.OLMv1 { // nothing that OLM v1 cannot order, and the checks of the graph are of OLM v0's
		if err != nil {
			return nil, graph.Plan{}, nil, err
		}
		findings, err := document.Until(ctx, func() ([]finding.Finding, error) { return check.PlannedUnderV1(c, p, f.options.Channel), nil })
		return p, plan, findings, err
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
	if f.olm == olmV1 {
		return nil // the report draws the hops
	}
	return drawingsOf([]*catalog.Package{p}, cmp.Or(f.options.Channel, p.DefaultChannel), f.olm, false)
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
	return report.Hop{Package: e.Package, Channel: e.Channel, FromChannel: e.Switch, From: e.From, To: e.To, Edge: string(e.Kind), Effective: e.Effective, PassedOver: e.Effective && !e.Next}
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
	asked := resolverGraph
	c := &cobra.Command{
		Use:   "plan CATALOG...",
		Short: "Print the hops of a channel, in the order in which 'upgrade test' runs them",
		Long: `Print the hops of a channel, in the order in which 'upgrade test' runs them.

The hops follow the channel's edges. OLM also considers the dependencies of bundles: --resolver olm asks the resolver of OLM
` + olmv0.Version + ` what a new Subscription gets, and what OLM upgrades to from each bundle that a hop starts from, with that bundle's dependencies installed as OLM
resolves them from CATALOG today. If OLM takes another bundle than the edges say, that is a finding, DEP009.

--olm v0,v1 lays the hops under OLM v0 and OLM v1 side by side: which only one of them takes, and which only if its version is
pinned.`,
		Example: `  olmkit upgrade plan catalog --channel stable
  olmkit upgrade plan catalog --resolver olm
  olmkit upgrade plan catalog --olm v0,v1 --edges all
  olmkit upgrade plan catalog --edges all --from 1.0.0 -o json`,
		Args: atLeastOne("CATALOG"),
	}
	j, f := judged(s, c), planned(c)
	j.suppresses(c)
	c.Flags().StringVar(&asked, "resolver", resolverGraph, "how to find the upgrade that OLM takes: graph (the channel's edges), olm (also OLM's own resolver, with dependencies and constraints)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := errors.Join(j.check(c.Context()), f.check(), checkResolver(asked, f)); err != nil {
			return err
		}
		loaded, err := s.loadCatalog(c.Context(), args...)
		if err != nil {
			return err
		}
		reports := make([]*report.Report, len(f.versions()))
		var walks []report.Walk
		for i, version := range f.versions() {
			one, err := f.under(version, loaded)
			if err != nil {
				return err
			}
			walks = append(walks, report.Walk{OLM: version})
			if reports[i], err = one.planned(c.Context(), s, args, loaded, asked); err != nil {
				return err
			}
		}
		if len(reports) == 1 {
			return j.finish(c.Context(), reports[0])
		}
		drawings, err := f.drawings(c.Context(), loaded)
		if err != nil {
			return err
		}
		return j.finish(c.Context(), report.Beside(walks, reports, drawings))
	}
	return c
}

// drawings are the graph of what f plans for, under all of its versions of OLM.
func (f *planFlags) drawings(ctx context.Context, c *catalog.Catalog) ([]graph.Drawing, error) {
	p, err := findPackage(c, f.pkg)
	if err != nil {
		return nil, err
	}
	return document.Until(ctx, func() ([]graph.Drawing, error) { return f.drawing(p), nil })
}

// planned is the report of the plan in loaded, which refs name, under one version of OLM.
func (f *planFlags) planned(ctx context.Context, s *session, refs []string, loaded *catalog.Catalog, asked string) (*report.Report, error) {
	p, plan, findings, err := f.plan(ctx, loaded)
	if err != nil {
		return nil, err
	}
	if plan, err = f.onlyChanged(ctx, s, refs, p, plan); err != nil {
		return nil, err
	}
	var resolved []report.Resolution
	if asked == resolverOLM {
		var differing []finding.Finding
		if resolved, differing, err = s.resolved(ctx, loaded, p, plan); err != nil {
			return nil, err
		}
		findings = append(findings, differing...)
		finding.Sort(findings)
	}
	drawings, err := f.drawings(ctx, loaded)
	if err != nil {
		return nil, err
	}
	return &report.Report{
		APIVersion: report.APIVersion, Kind: report.KindPlan,
		Findings: findings, Files: filesOf(loaded), Installations: installations(plan), Graph: drawings,
		Resolved: resolved, Hops: hops(plan.Hops), MoreHops: plan.More, Rest: restOf(plan),
		LeftOut: hops(plan.LeftOut), LeftOutCount: len(plan.LeftOut) + plan.MoreLeftOut,
	}, nil
}
