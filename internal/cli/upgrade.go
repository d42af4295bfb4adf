package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/olmkit/olmkit/internal/advice"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/olm"
	"github.com/olmkit/olmkit/internal/progress"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/upgrade"
)

// upgradeTest is what the command line of 'olmkit upgrade test' says.
type upgradeTest struct {
	plan    *planFlags
	cluster string
	images  []string
	samples []string
	shard   string
	options upgrade.Options
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
says so.`,
		Args: atLeastOne("CATALOG"),
	}
	j := judged(s, c)
	t.plan = planned(c)
	f := c.Flags()
	f.StringVar(&t.cluster, "cluster", "embedded", "kind of cluster to walk on: embedded")
	f.StringArrayVar(&t.images, "image", nil, "let `REF=PROGRAM` run: a program, or a folder that is the image's root (repeatable)")
	f.StringArrayVar(&t.samples, "sample", nil, "YAML or JSON `FILE` with objects to make instead of the bundles' alm-examples, and what those need (repeatable)")
	f.StringVar(&t.shard, "shard", "", "walk only part `I/N` of the plan; I counts from 0, as an Indexed Job's completion index does")
	f.DurationVar(&t.options.Timeout, "timeout", 4*time.Minute, "longest time for one installation, and for one hop")
	f.DurationVar(&t.options.Settle, "settle", 2*time.Second, "how long nothing may change before a version counts as stable")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := errors.Join(j.check(), t.plan.check()); err != nil {
			return err
		}
		r, err := t.run(c.Context(), s, args)
		if err != nil {
			return err
		}
		return j.finish(r)
	}
	return c
}

func (t *upgradeTest) run(ctx context.Context, s *session, refs []string) (*report.Report, error) {
	if t.cluster != "embedded" {
		return nil, advice.With(usagef("--cluster %s: this release knows the kind embedded only", t.cluster), "leave --cluster out")
	}
	var shard upgrade.Shard
	if t.shard != "" {
		var err error
		if shard, err = upgrade.ParseShard(t.shard); err != nil {
			return nil, usageError{err}
		}
	}
	images, err := t.programs()
	if err != nil {
		return nil, err
	}
	if t.options.Samples, err = readSamples(t.samples); err != nil {
		return nil, err
	}
	loaded, err := s.loadCatalog(ctx, refs...)
	if err != nil {
		return nil, err
	}
	p, plan, findings, err := t.plan.plan(loaded)
	if err != nil {
		return nil, err
	}
	plan = shard.Take(plan)
	if len(plan.Hops) == 0 {
		return &report.Report{
			APIVersion: report.APIVersion, Kind: report.KindUpgrade, Findings: findings, LeftOut: hops(plan.LeftOut),
		}, nil
	}
	if err := upgrade.Check(p, plan); err != nil {
		return nil, err
	}
	t.options.Progress, t.options.Verbose = s.progress(), s.verbose
	// The client libraries log what they retry; the walk tells what matters of it.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	r, err := t.walk(ctx, p, plan, images)
	if err != nil {
		return nil, err
	}
	r.Findings = append(findings, r.Findings...)
	finding.Sort(r.Findings)
	return r, nil
}

// walk brings a cluster with OLM up, walks plan on it, and ends the cluster.
func (t *upgradeTest) walk(ctx context.Context, p *catalog.Package, plan graph.Plan, images [][2]string) (_ *report.Report, err error) {
	c, err := embedded.Start(ctx, embedded.Options{Progress: t.options.Progress})
	if err != nil {
		return nil, err
	}
	defer func() {
		// The cluster has to end also when ctx has.
		if closed := c.Close(context.WithoutCancel(ctx)); err == nil && closed != nil {
			err = fmt.Errorf("end the cluster: %w", closed)
		}
	}()
	for _, image := range images {
		if err := c.LoadImage(ctx, image[0], image[1]); err != nil {
			return nil, fmt.Errorf("load %s as %s: %w", image[1], image[0], err)
		}
	}
	if err := installOLM(ctx, c, t.options.Progress); err != nil {
		return nil, err
	}
	return upgrade.Walk(ctx, c, p, plan, t.options)
}

func installOLM(ctx context.Context, c cluster.Cluster, p *progress.Printer) error {
	client, err := olm.Connect(c.Config())
	if err != nil {
		return err
	}
	return p.Start("OLM %s", olm.Version).End(olm.Install(ctx, client, olm.Image))
}

// programs splits the --image flags.
func (t *upgradeTest) programs() ([][2]string, error) {
	var images [][2]string
	for _, i := range t.images {
		ref, program, ok := strings.Cut(i, "=")
		if !ok || ref == "" || program == "" {
			return nil, advice.With(usagef("--image %s: it is REF=PROGRAM", i), "write for example --image example.com/operator:v1=bin/manager")
		}
		if _, err := os.Stat(program); err != nil {
			return nil, usageError{advice.With(fmt.Errorf("--image %s: %w", i, err), "build the program first")}
		}
		images = append(images, [2]string{ref, program})
	}
	return images, nil
}

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
