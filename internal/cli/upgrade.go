package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/olmkit/olmkit/internal/assert"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/olm"
	"github.com/olmkit/olmkit/internal/progress"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/upgrade"
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
	options  upgrade.Options

	nodeImage string
}

func newUpgradeTest(s *session) *cobra.Command {
	t := &upgradeTest{}
	c := &cobra.Command{
		Use:   "test CATALOG...",
		Short: "Walk a package's upgrades on a cluster and judge them",
		Long: `Walk a package's upgrades on a cluster and judge them.

For each hop of the plan OLM upgrades from one bundle to the next, on a catalog that holds nothing else. Meanwhile the
package's objects are read and written all the time in every served version; afterwards each is read, converted, written
back and compared. Images whose programs are given with --image really run; the others are simulated, and the report
says so. Their references are those that a bundle of the package or a sample names.`,
		Args: atLeastOne("CATALOG"),
	}
	j := judged(s, c)
	j.suppresses(c)
	t.plan, t.faults = planned(c), faulty(c)
	f := c.Flags()
	f.StringVar(&t.cluster, "cluster", "embedded", "kind of cluster to walk on: "+strings.Join(clusterKinds, ", "))
	f.StringVar(&t.nodeImage, "node-image", "", "`IMAGE` of the kind cluster's node (that of kind's release by default)")
	f.StringVar(&t.existing.Kubeconfig, "kubeconfig", "", "`FILE` by which the existing cluster is reached (KUBECONFIG, or ~/.kube/config, by default)")
	f.StringVar(&t.existing.Context, "context", "", "`NAME` of the kubeconfig's context (its current one by default)")
	f.BoolVar(&t.olm, "install-olm", false, "install OLM on the existing cluster for the walk, and remove it afterwards")
	f.StringVar(&t.existing.Server, "catalog-server", serverImage(), "`IMAGE` of olmkit that serves the catalogs on the existing cluster")
	f.StringArrayVar(&t.images, "image", nil, "let `REF=PROGRAM` run: a program, a folder that is the image's root, or an image that holds a program alone: an archive, an OCI layout or a registry's reference (repeatable)")
	f.StringArrayVar(&t.samples, "sample", nil, "YAML or JSON `FILE` with objects to make instead of the bundles' alm-examples, and what those need (repeatable)")
	f.StringArrayVar(&t.asserts, "assert", nil, "YAML or JSON `FILE` with partial objects, as in an assert file of kuttl or chainsaw, that must match after installation and after each hop (repeatable)")
	f.StringVar(&t.shard, "shard", "", "walk only part `I/N` of the plan, I from 0; auto, or auto/N, takes it from the environment of an Indexed Job, GitLab, CircleCI or Buildkite. 'olmkit report merge' puts the parts together")
	f.IntVar(&t.parallel, "parallel", 1, "walk the plan in so many parts at the same time, on a cluster each; one takes up to 2 cores and 1 GiB")
	f.DurationVar(&t.options.Timeout, "timeout", 4*time.Minute, "longest time for one installation, and for one hop")
	f.BoolVar(&t.options.Strict, "strict", false, "fail also for what users only notice: every warning of the walk is an error, but for samples that are refused and outages of up to 1 s")
	f.BoolVar(&t.options.RequireImages, "require-images", false, "fail when pods of the operator itself were simulated because its images could not be had")
	f.BoolVar(&t.options.Fresh, "fresh", false, "at the end, install the last release afresh, too, and say how what upgrades led to is not the same")
	f.BoolVar(&t.options.Rollback, "rollback", false, "after a hop that failed, install the version before again, with definitions and objects in place, and say whether it runs and whether they are what they were")
	f.DurationVar(&t.options.Settle, "settle", 2*time.Second, "how long nothing may change before a version counts as stable")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := errors.Join(j.check(), t.plan.check()); err != nil {
			return err
		}
		if err := j.forget(); err != nil {
			return err
		}
		t.options.Grades = j.grades
		r, err := t.run(c.Context(), s, args)
		if r == nil || c.Context().Err() != nil {
			return err
		}
		j.failed = err != nil
		if told := j.finish(r); err == nil || !errors.Is(told, errFindings) {
			err = errors.Join(err, told)
		}
		return err
	}
	return c
}

// run walks the plan. With an error it returns the report of what was walked until then, if anything was.
func (t *upgradeTest) run(ctx context.Context, s *session, refs []string) (*report.Report, error) {
	if err := t.checkCluster(); err != nil {
		return nil, err
	}
	if t.parallel < 1 {
		return nil, usagef("--parallel %d: it is a number of clusters, 1 or more", t.parallel)
	}
	var err error
	if t.options.Faults, err = t.faults.rounds(t.likeness()); err != nil {
		return nil, err
	}
	var shard upgrade.Shard
	if t.shard != "" {
		if shard, err = upgrade.ParseShard(t.shard, os.Getenv); err != nil {
			return nil, usageError{err}
		}
	}
	unpacked := &room{}
	defer unpacked.remove()
	images, err := s.programs(ctx, t.cluster, t.images, unpacked)
	if err != nil {
		return nil, err
	}
	if t.options.Samples, err = readSamples(t.samples); err != nil {
		return nil, err
	}
	if t.options.Assertions, err = readAssertions(t.asserts); err != nil {
		return nil, err
	}
	loaded, err := s.loadCatalog(ctx, refs...)
	if err != nil {
		return nil, err
	}
	p, plan, findings, err := t.plan.plan(ctx, loaded)
	if err != nil {
		return nil, err
	}
	if plan, err = t.plan.onlyChanged(ctx, s, refs, p, plan); err != nil {
		return nil, err
	}
	plan = shard.Take(plan)
	var part *report.Shard
	if shard.Of > 0 {
		part = &report.Shard{Index: shard.Index, Of: shard.Of}
	}
	if plan.First() == "" {
		return &report.Report{
			APIVersion: report.APIVersion, Kind: report.KindUpgrade, Findings: findings, LeftOut: hops(plan.LeftOut), Shard: part, Graph: t.plan.drawing(p),
		}, nil
	}
	if err := s.pull(ctx, walked(p, plan)); err != nil {
		return nil, err
	}
	if err := upgrade.Check(p, plan); err != nil {
		return nil, err
	}
	if err := checkNamed(images, p, t.options.Samples); err != nil {
		return nil, err
	}
	t.options.Progress, t.options.Verbose = s.progress(), s.verbose
	// The client libraries log what they retry; the walk tells what matters of it.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	r, err := t.walks(ctx, p, plan, images)
	if r == nil {
		return nil, err
	}
	r.Shard, r.Graph = part, t.plan.drawing(p)
	r.Findings = append(findings, r.Findings...)
	finding.Sort(r.Findings)
	return r, err
}

// walked are the bundles that plan installs.
func walked(p *catalog.Package, plan graph.Plan) []*catalog.Bundle {
	return slices.DeleteFunc(slices.Clone(p.Bundles), func(b *catalog.Bundle) bool {
		return b.Name != plan.First() && !slices.ContainsFunc(plan.Hops, func(e graph.Edge) bool { return e.From == b.Name || e.To == b.Name })
	})
}

// walks walks plan in as many parts as are to be walked at the same time. Parts of which there is a report are there also
// when others, or they themselves, could not go on.
func (t *upgradeTest) walks(ctx context.Context, p *catalog.Package, plan graph.Plan, images []program) (*report.Report, error) {
	n := min(t.parallel, len(plan.Hops))
	if n <= 1 {
		return t.walk(ctx, p, plan, images, t.options)
	}
	reports, failures := make([]*report.Report, n), make([]error, n)
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		options := t.options
		options.Progress = t.options.Progress.Part(fmt.Sprintf("%d/%d", i+1, n))
		group.Go(func() error {
			r, err := t.walk(ctx, p, upgrade.Shard{Index: i, Of: n}.Take(plan), images, options)
			if err != nil {
				err = fmt.Errorf("part %d of %d: %w", i+1, n, err)
			}
			if r == nil {
				return err
			}
			r.Shard = &report.Shard{Index: i, Of: n}
			reports[i], failures[i] = r, err
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	r, err := report.Merge(reports)
	return r, errors.Join(append(failures, err)...)
}

// walk brings a cluster with OLM up, walks plan on it, and ends the cluster, or leaves it as it was.
func (t *upgradeTest) walk(ctx context.Context, p *catalog.Package, plan graph.Plan, images []program, options upgrade.Options) (_ *report.Report, err error) {
	c, err := t.start(ctx, &options)
	if err != nil {
		return nil, err
	}
	defer func() {
		// The cluster has to end also when ctx has.
		if closed := c.Close(context.WithoutCancel(ctx)); closed != nil {
			err = errors.Join(err, leftError{fmt.Errorf("end the cluster: %w", closed)})
		}
	}()
	for _, i := range images {
		if err := c.LoadImage(ctx, i.ref, i.source); err != nil {
			return nil, fmt.Errorf("load %s as %s: %w", i.source, i.ref, err)
		}
	}
	if c.Disposable() || t.olm {
		remove, err := installOLM(ctx, c, options.Progress)
		if !c.Disposable() {
			defer func() {
				if removed := remove(); removed != nil {
					err = errors.Join(err, leftError{removed})
				}
			}()
		}
		if err != nil {
			return nil, err
		}
	}
	return upgrade.Walk(ctx, c, p, plan, options)
}

// installOLM installs OLM, and returns what removes it again.
func installOLM(ctx context.Context, c cluster.Cluster, p *progress.Printer) (remove func() error, err error) {
	client, err := olm.Connect(c.Config())
	if err != nil {
		return func() error { return nil }, err
	}
	step := p.Start("OLM %s", olm.Version)
	made, err := olm.Install(ctx, client, olm.Image)
	return func() error {
		return p.Start("removing OLM").End(client.Remove(context.WithoutCancel(ctx), made, removalLimit))
	}, step.End(err)
}

// removalLimit bounds how long OLM's own objects may take to go.
const removalLimit = 2 * time.Minute

// readSamples reads the Kubernetes objects in files.
func readSamples(files []string) ([]*unstructured.Unstructured, error) {
	var samples []*unstructured.Unstructured
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, usageError{fmt.Errorf("--sample: %w", err)}
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
			return nil, usageError{fmt.Errorf("--assert: %w", err)}
		}
		assertions, err := assert.Parse(file, data)
		if err != nil {
			return nil, usageError{fmt.Errorf("--assert: %w", err)}
		}
		all = append(all, assertions...)
	}
	return all, nil
}
