package cli

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/walk"
)

// journey is a plan that is ready to be walked under one version of OLM, on one of Kubernetes.
type journey struct {
	test     *upgradeTest
	pkg      *catalog.Package
	plan     graph.Plan
	images   []program
	findings []finding.Finding // of the plan
	shard    *report.Shard
}

// each is t for each of its versions of OLM on each of its versions of Kubernetes.
func (t *upgradeTest) each(c *catalog.Catalog) ([]*upgradeTest, error) {
	on, err := kubernetesFlag.all(t.kubernetes)
	if err != nil {
		return nil, err
	}
	under, err := olmFlag.all(t.olmVersions)
	if err != nil {
		return nil, err
	}
	var all []*upgradeTest
	for _, version := range t.plan.versions() {
		plan, err := t.plan.under(version, c)
		if err != nil {
			return nil, err
		}
		faults, err := t.faults.rounds(t.kind().under(version))
		if err != nil {
			return nil, err
		}
		for _, olm := range under {
			for _, release := range on {
				one := *t
				one.plan, one.options.Faults = plan, faults
				one.olmRelease, one.severalOLM = olm, len(under) > 1
				one.release, one.several = release, len(on) > 1
				all = append(all, &one)
			}
		}
	}
	return all, nil
}

// label names the walk of t beside others.
func (t *upgradeTest) label() report.Walk {
	w := report.Walk{OLM: t.plan.olm}
	if t.severalOLM {
		w.OLM = t.olmRelease
	}
	if t.several {
		w.Kubernetes = t.release
	}
	return w
}

// prepare lays out the plan in loaded, which refs name, and reads what it needs, before a cluster is up.
func (t *upgradeTest) prepare(ctx context.Context, s *session, refs []string, loaded *catalog.Catalog, shard walk.Shard, images []program) (*journey, error) {
	p, plan, findings, err := t.plan.plan(ctx, loaded)
	if err != nil {
		return nil, err
	}
	if plan, err = t.plan.onlyChanged(ctx, s, refs, p, plan); err != nil {
		return nil, err
	}
	if plan.Count() < graph.MostCounted {
		plan = shard.Take(plan)
	}
	if err := t.plan.walkable(plan); err != nil {
		return nil, err
	}
	j := &journey{test: t, pkg: p, plan: plan, images: images, findings: findings}
	if shard.Of > 0 {
		j.shard = &report.Shard{Index: shard.Index, Of: shard.Of}
	}
	if plan.First() == "" {
		return j, nil
	}
	return j, t.ready(ctx, s, p, plan, images)
}

// run walks j. With an error it returns the report of what was walked until then, if anything was.
func (j *journey) run(ctx context.Context) (*report.Report, error) {
	if j.plan.First() == "" {
		return &report.Report{
			APIVersion: report.APIVersion, Kind: report.KindUpgrade, Findings: j.findings, Shard: j.shard, Graph: j.test.plan.drawing(j.pkg),
			LeftOut: hops(j.plan.LeftOut), LeftOutCount: len(j.plan.LeftOut) + j.plan.MoreLeftOut,
		}, nil
	}
	r, err := j.test.walks(ctx, j.pkg, j.plan, j.images)
	if r == nil {
		return nil, err
	}
	r.Shard, r.Graph = j.shard, j.test.plan.drawing(j.pkg)
	r.Findings = append(j.findings, r.Findings...)
	finding.Sort(r.Findings)
	return r, err
}

// beside walks journeys under several versions of OLM or on several of Kubernetes, one after the other, or, where so many clusters may be up, at the same
// time, and lays their reports side by side. Those that there are count also when another walk could not go on.
func (t *upgradeTest) beside(ctx context.Context, journeys []*journey) (*report.Report, error) {
	n := len(journeys)
	reports, failures := make([]*report.Report, n), make([]error, n)
	var group errgroup.Group
	group.SetLimit(max(1, min(t.parallel, n)))
	for i, j := range journeys {
		name := j.test.label().Label()
		if t.parallel > 0 {
			j.test.parallel = max(1, t.parallel/n)
		}
		j.test.options.Progress = j.test.options.Progress.Part(name)
		group.Go(func() error {
			if failures[i] = ctx.Err(); failures[i] == nil {
				reports[i], failures[i] = j.run(ctx)
			}
			if failures[i] != nil {
				failures[i] = fmt.Errorf("under %s: %w", name, failures[i])
			}
			return nil // who walks under another goes on
		})
	}
	_ = group.Wait()
	var walks []report.Walk
	var walked []*report.Report
	for i, r := range reports {
		if r != nil {
			walks, walked = append(walks, journeys[i].test.label()), append(walked, r)
		}
	}
	if len(walked) == 0 {
		return nil, errors.Join(failures...)
	}
	both := *journeys[0].test.plan
	both.olm = t.plan.olm
	return report.Beside(walks, walked, both.drawing(journeys[0].pkg)), errors.Join(failures...)
}
