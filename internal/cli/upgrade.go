package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/olmkit/olmkit/internal/assert"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
	"github.com/olmkit/olmkit/internal/progress"
	"github.com/olmkit/olmkit/internal/rbac"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/walk"
)

// upgradeTest is what the command line of 'olmkit upgrade test' says.
type upgradeTest struct {
	plan     *planFlags
	faults   *faultFlags
	cluster  string
	images   []string
	samples  []string
	asserts  []string
	shard    string
	parallel int
	existing existing.Options
	olm      bool
	registry string
	pullable pullable
	options  walk.Options

	nodeImage   string
	kubernetes  []string
	release     string // of Kubernetes, one of those; "" for the default
	several     bool   // there are others
	olmVersions []string
	olmRelease  string // one of those
	severalOLM  bool   // there are others
	components  embedded.Source
}

func newUpgradeTest(s *session) *cobra.Command {
	t := &upgradeTest{}
	c := &cobra.Command{
		Use:   "test CATALOG...",
		Short: "Test a package's upgrades on a cluster",
		Long: `Test a package's upgrades on a cluster.

In each hop of the plan, OLM upgrades from one bundle to the next. During the hop, custom resources are read and written in
every served version; afterwards each is read, converted, written back and compared. Images given with --image run; the
others are simulated, and the report says so. An image's REF is the one that a bundle or a sample names.

With --olm v0,v1 the plan is walked under OLM v0 and OLM v1, each on its own cluster, and the report lays both side by side. It
fails if either walk fails. With --parallel 2 or more both are walked at the same time, with half of the clusters each.
--kubernetes 1.33,1.36 compares versions of Kubernetes in the same way, and --olm-version 0.38,0.46 versions of OLM v0.`,
		Example: `  olmkit upgrade test catalog --image 'ghcr.io/team/my-operator:v{version}=bin/v{version}/manager'
  olmkit upgrade test catalog --edges chain --report junit=upgrade.xml --report html=upgrade.html
  olmkit upgrade test catalog --fault kill-operator@installing
  olmkit upgrade test catalog --olm v0,v1 --report html=upgrade.html`,
		Args: atLeastOne("CATALOG"),
	}
	j := judged(s, c)
	j.suppresses(c)
	t.plan, t.faults = planned(c), faulty(c)
	f := c.Flags()
	f.StringVar(&t.cluster, "cluster", "embedded", "kind of cluster to walk on: "+clusterKindNames())
	f.StringVar(&t.nodeImage, "node-image", "", "node `IMAGE` of the kind cluster (default: that of kind's release)")
	kubernetesFlag.add(c, &t.kubernetes, "`VERSION` of Kubernetes of the embedded cluster; several, separated by commas, are compared")
	olmFlag.add(c, &t.olmVersions, "`VERSION` of OLM v0 on the embedded cluster; several, separated by commas, are compared")
	componentFlags(s, c)
	accessFlags(c, &t.existing)
	f.BoolVar(&t.olm, "install-olm", false, "install OLM on the existing cluster before the walk, and remove it afterwards")
	f.StringVar(&t.existing.Server, "catalog-server", serverImage(), "`IMAGE` of olmkit that serves the catalogs to OLM v0 on the existing cluster")
	f.StringVar(&t.registry, "registry", "", "`REPOSITORY` to push bundles and catalogs to, from which the existing cluster pulls them for OLM v1")
	f.StringArrayVar(&t.images, "image", nil, "run image REF from a local binary, a root file system directory, or a single-binary image (archive, OCI layout or registry reference), as `REF=PROGRAM`; {version} in both stands for each bundle's version (repeatable)")
	f.StringArrayVar(&t.samples, "sample", nil, "YAML or JSON `FILE` of samples to create instead of the bundles' alm-examples of the same kinds and versions, with the objects that they need; what is new is tried on a copy of one sample of each kind (repeatable)")
	f.StringArrayVar(&t.asserts, "assert", nil, "YAML or JSON `FILE` with partial objects, as in an assert file of kuttl or chainsaw, that must match after installation and after each hop (repeatable)")
	f.StringVar(&t.shard, "shard", "", "run only shard `I/N` of the plan, I from 0; auto, or auto/N, reads it from the environment of an Indexed Job, GitLab, CircleCI or Buildkite. 'olmkit report merge' merges the shards' reports")
	f.IntVar(&t.parallel, "parallel", 0, "run `N` shards concurrently, each on its own cluster, which takes up to 2 cores and 1 GiB; 0 takes as many embedded clusters as this machine has room for, and splits no chain of hops")
	f.DurationVar(&t.options.Timeout, "timeout", 4*time.Minute, "timeout of one installation, and of one hop")
	f.BoolVar(&t.options.Strict, "strict", false, "treat the walk's warnings as errors, except refused samples and outages of up to 1s")
	f.IntVar(&t.options.Fuzz, "fuzz", 50, "send `N` objects, made of the schema of each served version, through the conversion webhook and back; nothing is stored. It is an error if one loses a field that the previous version kept, and, where this flag is given, if any loses one; 0 sends none")
	f.Uint64Var(&t.options.FuzzSeed, "fuzz-seed", 1, "seed of the first object of --fuzz; the others have the next ones")
	f.BoolVar(&t.options.RequireImages, "require-images", false, "fail when pods of the operator itself were simulated because its images were not available")
	f.BoolVar(&t.options.Fresh, "compare-fresh", false, "at the end, compare with a fresh install of the last release")
	f.BoolVar(&t.options.Rollback, "rollback", false, "after a failed hop, reinstall the previous version and verify that it runs and that custom resources are unchanged")
	f.DurationVar(&t.options.Settle, "settle", 2*time.Second, "how long nothing must change before a version counts as stable")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := errors.Join(j.check(c.Context()), t.plan.check()); err != nil {
			return err
		}
		if err := j.forget(); err != nil {
			return err
		}
		t.options.Grades, t.options.FuzzAll = j.grades, c.Flags().Changed("fuzz")
		r, err := t.run(c.Context(), s, args)
		return j.conclude(c.Context(), r, err)
	}
	return c
}

// run walks the plan. With an error it returns the report of what was walked until then, if anything was.
func (t *upgradeTest) run(ctx context.Context, s *session, refs []string) (*report.Report, error) {
	shard, err := t.settle(ctx, s)
	if err != nil {
		return nil, err
	}
	loaded, err := s.loadCatalog(ctx, refs...)
	if err != nil {
		return nil, err
	}
	p, err := findPackage(loaded, t.plan.pkg)
	if err != nil {
		return nil, err
	}
	unpacked := &room{}
	defer unpacked.remove()
	images, err := s.programsOf(ctx, t.cluster, t.images, p, unpacked)
	if err != nil {
		return nil, err
	}
	var journeys []*journey
	each, err := t.each(loaded)
	if err != nil {
		return nil, err
	}
	for _, one := range each {
		j, err := one.prepare(ctx, s, refs, loaded, shard, images)
		if err != nil {
			return nil, err
		}
		j.test.options.Progress, j.test.options.Verbose, j.test.options.AfterHop = s.progress(), s.verbose, s.hooks.AfterHop
		journeys = append(journeys, j)
	}
	// The client libraries log what they retry; the walk tells what matters of it.
	silenceClients()
	if len(journeys) == 1 {
		return journeys[0].run(ctx)
	}
	return t.beside(ctx, journeys)
}

// settle refuses wrong flags, and reads what they name.
func (t *upgradeTest) settle(ctx context.Context, s *session) (shard walk.Shard, err error) {
	t.pullable = s.pullable(t.registry)
	if err := t.check(); err != nil {
		return shard, err
	}
	if t.components, err = s.componentSource(t.cluster); err != nil {
		return shard, err
	}
	if shard, err = t.parseShard(); err != nil {
		return shard, err
	}
	return shard, t.readFiles(ctx)
}

// ready pulls the bundles that plan walks, and refuses what a walk could not do.
func (t *upgradeTest) ready(ctx context.Context, s *session, p *catalog.Package, plan graph.Plan, images []program) error {
	if err := s.pull(ctx, walked(p, plan)); err != nil {
		return err
	}
	if err := walk.Check(p, plan); err != nil {
		return err
	}
	return checkNamed(images, p, t.options.Samples)
}

// parseShard reads --shard, which chooses no shard when it is not set.
func (t *upgradeTest) parseShard() (shard walk.Shard, err error) {
	if t.shard == "" {
		return shard, nil
	}
	if shard, err = walk.ParseShard(t.shard, os.Getenv); err != nil {
		return shard, usageError{err}
	}
	return shard, nil
}

// check refuses wrong flags before any work is done.
func (t *upgradeTest) check() error {
	for _, version := range t.plan.versions() {
		if err := t.checkCluster(version); err != nil {
			return err
		}
	}
	if t.parallel < 0 {
		return usagef("--parallel %d: must be a number of clusters, or 0", t.parallel)
	}
	if t.options.Fuzz < 0 {
		return usagef("--fuzz %d: must be a number of objects, 0 or more", t.options.Fuzz)
	}
	on, err := kubernetesFlag.all(t.kubernetes)
	under, errOLM := olmFlag.all(t.olmVersions)
	if err := errors.Join(err, errOLM); err != nil {
		return err
	}
	if len(on)*len(under) > 1 && t.shard != "" {
		return hint.With(usagef("--shard is of the plan on one version of Kubernetes, under one of OLM"), "walk the shards on each, or all in one with --parallel")
	}
	for _, version := range t.plan.versions() {
		if _, err := t.faults.rounds(t.kind().under(version)); err != nil {
			return err
		}
	}
	return nil
}

// readFiles reads the samples and the assertions.
func (t *upgradeTest) readFiles(ctx context.Context) error {
	var err error
	if t.options.Samples, err = document.Until(ctx, func() ([]*unstructured.Unstructured, error) { return readSamples(t.samples) }); err != nil {
		return err
	}
	if t.options.Assertions, err = document.Until(ctx, func() ([]assert.Assertion, error) { return readAssertions(t.asserts) }); err != nil {
		return err
	}
	return nil
}

// walked are the bundles that plan installs.
func walked(p *catalog.Package, plan graph.Plan) []*catalog.Bundle {
	return slices.DeleteFunc(slices.Clone(p.Bundles), func(b *catalog.Bundle) bool {
		return b.Name != plan.First() && !slices.ContainsFunc(plan.Hops, func(e graph.Edge) bool { return e.From == b.Name || e.To == b.Name })
	})
}

// parts splits plan into what is to be walked at the same time: as many shards as --parallel says, or, where it leaves that open, no
// more than clusters, each of whole chains of hops.
func (t *upgradeTest) parts(plan graph.Plan, clusters int) []graph.Plan {
	if t.parallel == 0 {
		return walk.Chains(plan, clusters)
	}
	n := min(t.parallel, len(plan.Hops))
	if n <= 1 {
		return []graph.Plan{plan}
	}
	parts := make([]graph.Plan, n)
	for i := range parts {
		parts[i] = walk.Shard{Index: i, Of: n}.Take(plan)
	}
	return parts
}

// walks walks plan in as many parts as are to be walked at the same time. A part that cannot go on keeps no other from it; of one that
// has no report, all hops are skipped.
func (t *upgradeTest) walks(ctx context.Context, p *catalog.Package, plan graph.Plan, images []program) (*report.Report, error) {
	clusters := 1
	if t.cluster == kindEmbedded && t.shard == "" {
		clusters = clustersFor(runtime.GOMAXPROCS(0), availableMemory())
	}
	parts := t.parts(plan, clusters)
	n := len(parts)
	if n == 1 {
		return t.walk(ctx, p, plan, images, t.options)
	}
	reports, failures := make([]*report.Report, n), make([]error, n)
	var group sync.WaitGroup
	for i, part := range parts {
		options := t.options
		options.Progress = t.options.Progress.Part(fmt.Sprintf("%d/%d", i+1, n))
		group.Go(func() {
			var err error
			if reports[i], err = t.walk(ctx, p, part, images, options); err != nil {
				failures[i] = fmt.Errorf("part %d of %d: %w", i+1, n, err)
			}
		})
	}
	group.Wait()
	r, err := t.mergeParts(parts, reports)
	return r, errors.Join(append(failures, err)...)
}

// mergeParts makes one report of those of parts, which were walked at the same time and of which some may be missing. Without any there is none.
func (t *upgradeTest) mergeParts(parts []graph.Plan, reports []*report.Report) (*report.Report, error) {
	if !slices.ContainsFunc(reports, func(r *report.Report) bool { return r != nil }) {
		return nil, nil
	}
	for i, part := range parts {
		if reports[i] == nil {
			reports[i] = walk.NotWalked(part, max(1, len(t.options.Faults)))
		}
		reports[i].Shard = &report.Shard{Index: i, Of: len(parts)}
	}
	merged, err := report.Merge(reports)
	if err == nil {
		merged.Access = rbac.Join(merged.Access)
		merged.Seconds = slices.MaxFunc(reports, func(a, b *report.Report) int { return cmp.Compare(a.Seconds, b.Seconds) }).Seconds
	}
	return merged, err
}

// walk brings a cluster with OLM up, walks plan on it, and ends the cluster, or leaves it as it was.
func (t *upgradeTest) walk(ctx context.Context, p *catalog.Package, plan graph.Plan, images []program, options walk.Options) (_ *report.Report, err error) {
	c, err := t.kind().start(t, ctx, &options)
	if err != nil {
		return nil, err
	}
	defer func() {
		var told *progress.Printer // nobody, unless somebody who interrupted the walk waits
		if ctx.Err() != nil {
			told = options.Progress
		}
		// The cluster has to end also when ctx has.
		if closed := told.Start("ending cluster %s", c.Name()).End(c.Close(context.WithoutCancel(ctx))); closed != nil {
			err = errors.Join(err, leftError{fmt.Errorf("end the cluster: %w", closed)})
		}
	}()
	for _, i := range images {
		if err := c.LoadImage(ctx, i.ref, i.source); err != nil {
			return nil, fmt.Errorf("load %s as %s: %w", i.source, i.ref, err)
		}
	}
	if !c.Disposable() {
		defer func() {
			if left := removeWalk(ctx, c, options.ID, t.existing, options.Progress); left != nil {
				err = errors.Join(err, leftError{left})
			}
		}()
	}
	options.Connect = olmv0.Manage
	switch {
	case t.plan.olm == olmV1:
		options.Connect = olmv1.Manage(p)
		if c.Disposable() {
			err = installOLMv1(ctx, c, options)
		}
	case c.Disposable() || t.olm:
		err = t.installOLM(ctx, c, options)
	}
	if err != nil {
		return nil, err
	}
	return walk.Run(ctx, c, p, plan, options)
}

// installOLM installs OLM for the walk with options.
func (t *upgradeTest) installOLM(ctx context.Context, c cluster.Cluster, options walk.Options) error {
	client, err := olmv0.Connect(c.Config())
	if err != nil {
		return err
	}
	client.Walk = options.ID
	if err := provideOLM(ctx, c, c.Config(), options.Progress); err != nil {
		return err
	}
	release, err := olmRelease(ctx, cmp.Or(t.olmRelease, embedded.OLMVersion), t.components, options.Progress)
	if err != nil {
		return err
	}
	step := options.Progress.Start("OLM %s", release.Name())
	_, err = olmv0.Install(ctx, client, release)
	return step.End(err)
}

// readSamples reads the Kubernetes objects in files.
func readSamples(files []string) ([]*unstructured.Unstructured, error) {
	var samples []*unstructured.Unstructured
	for _, file := range files {
		data, err := document.ReadFile(file)
		if err != nil {
			return nil, ofFlag("--sample", err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			o := &unstructured.Unstructured{}
			err := decoder.Decode(&o.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil && len(o.Object) > 0 && (o.GetKind() == "" || o.GetName() == "" || o.GetAPIVersion() == "") {
				err = errors.New("a document without apiVersion, kind or metadata.name")
			}
			if err != nil {
				return nil, usageError{fmt.Errorf("--sample %s: %w", file, err)}
			}
			if len(o.Object) > 0 {
				samples = append(samples, o)
			}
		}
	}
	return samples, nil
}

// readAssertions reads the assertions in files.
func readAssertions(files []string) ([]assert.Assertion, error) {
	var all []assert.Assertion
	for _, file := range files {
		data, err := document.ReadFile(file)
		if err != nil {
			return nil, ofFlag("--assert", err)
		}
		assertions, err := assert.Parse(file, data)
		if err != nil {
			return nil, usageError{fmt.Errorf("--assert: %w", err)}
		}
		all = append(all, assertions...)
	}
	return all, nil
}
