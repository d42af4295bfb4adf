package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/output"
	"github.com/olmkit/olmkit/internal/rehearsal"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/safetext"
	"github.com/olmkit/olmkit/internal/walk"
)

// upgradeRehearse is what the command line of 'olmkit upgrade rehearse' says.
type upgradeRehearse struct {
	live
	read    rehearsal.Options
	catalog string
	save    string
	from    string
	redact  bool
	test    upgradeTest
}

func newUpgradeRehearse(s *session) *cobra.Command {
	r := &upgradeRehearse{}
	c := &cobra.Command{
		Use:   "rehearse",
		Short: "Test the next upgrade of a live cluster, with its objects, on an embedded cluster",
		Long: `Read a package's installed release, its CRDs and all objects of its kinds from a cluster of the kubeconfig; restore them on
an embedded cluster; and run the upgrades there that OLM would make, to the head of the channel or to --to. The findings are about
these objects. The command changes nothing on the cluster, and reads no Secrets: see docs/rehearse.md for the rights that it needs.

The content of the CatalogSource is read from its image, or from what serves it on the cluster; --catalog names another. Images given
with --image run; others are simulated, and the report says so.`,
		Example: `  olmkit upgrade rehearse -p my-operator --context production
  olmkit upgrade rehearse -p my-operator --catalog catalog --image ghcr.io/team/my-operator:v2=bin/v2/manager
  olmkit upgrade rehearse -p my-operator --save production.json --redact
  olmkit upgrade rehearse --from production.json`,
		Args: cobra.NoArgs,
	}
	j := judged(s, c)
	j.suppresses(c)
	f := c.Flags()
	accessFlags(c, &r.access)
	f.StringVarP(&r.read.Package, "package", "p", "", "package to rehearse")
	f.StringVar(&r.read.Namespace, "namespace", "", "namespace of its Subscription (default: where the only one is)")
	f.StringVar(&r.read.Channel, "channel", "", "channel to upgrade in (default: the Subscription's)")
	f.StringVar(&r.read.To, "to", "", "version or bundle to end at (default: as far as OLM goes)")
	f.StringVar(&r.catalog, "catalog", "", "`REF` of the catalog: a directory, file, image or archive (default: what the CatalogSource serves)")
	f.StringVar(&r.save, "save", "", "write what was read to `FILE`, and do not walk")
	f.BoolVar(&r.redact, "redact", false, "replace names and string values of the objects by others of the same shape")
	f.StringVar(&r.from, "from", "", "rehearse what --save wrote to `FILE`, without the cluster")
	f.StringArrayVar(&r.test.images, "image", nil, "run image REF from a local binary, a root file system directory, or a single-binary image (archive, OCI layout or registry reference), as `REF=PROGRAM`; {version} in both stands for each bundle's version (repeatable)")
	f.BoolVar(&r.test.options.RequireImages, "require-images", false, "fail when pods of the operator itself were simulated because its images were not available")
	kubernetesFlag.add(c, &r.test.kubernetes, "`VERSION` of Kubernetes of the embedded cluster")
	olmFlag.add(c, &r.test.olmVersions, "`VERSION` of OLM on the embedded cluster")
	f.DurationVar(&r.test.options.Timeout, "timeout", 10*time.Minute, "timeout of the installation, and of one upgrade")
	f.DurationVar(&r.test.options.Settle, "settle", 2*time.Second, "how long nothing must change before a version counts as stable")
	componentFlags(s, c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		r.passOver(s)
		if err := errors.Join(j.check(c.Context()), r.check()); err != nil {
			return err
		}
		if err := j.forget(); err != nil {
			return err
		}
		r.test.options.Grades = j.grades
		told, err := r.run(c.Context(), s)
		return j.conclude(c.Context(), told, err)
	}
	return c
}

// passOver clears what the project's file sets and the command line leaves no room for.
func (r *upgradeRehearse) passOver(s *session) {
	if r.from != "" && slices.Contains(s.configured, "package") {
		r.read.Package = ""
	}
	if r.save != "" && slices.Contains(s.configured, "image") {
		r.test.images = nil
	}
}

// check refuses wrong flags before any work is done.
func (r *upgradeRehearse) check() error {
	switch {
	case r.from == "" && r.read.Package == "":
		return hint.With(usagef("neither --package nor --from is given"), "name the package that is installed with -p, or a file that --save wrote with --from")
	case r.from != "" && (r.read.Package != "" || r.save != "" || r.catalog != "" || r.read.To != "" || r.read.Channel != "" || r.read.Namespace != "" || r.access.Kubeconfig != "" || r.access.Context != ""):
		return usagef("--from is a file that holds all that is read otherwise: leave the flags about the cluster, --channel, --to, --catalog and --save out")
	case r.save != "" && len(r.test.images) > 0:
		return usagef("--save does not walk: give --image with --from")
	}
	var err error
	if r.test.release, err = kubernetesFlag.one(r.test.kubernetes); err != nil {
		return err
	}
	if r.test.olmRelease, err = olmFlag.one(r.test.olmVersions); err != nil {
		return err
	}
	if r.save != "" {
		if err := output.Check(r.save); err != nil {
			return usageError{fmt.Errorf("--save %s: %w", r.save, err)}
		}
	}
	return nil
}

// run reads the snapshot, and saves or walks it. It returns no report if there is nothing to report.
func (r *upgradeRehearse) run(ctx context.Context, s *session) (*report.Report, error) {
	from, err := s.componentSource(kindEmbedded)
	if err != nil {
		return nil, err
	}
	r.test.components = from
	snapshot, err := r.snapshot(ctx, s)
	if err != nil {
		return nil, err
	}
	if r.redact {
		snapshot.Redact()
	}
	if r.save != "" {
		return nil, r.write(ctx, s, snapshot)
	}
	p, plan, err := snapshot.Plan(cmp.Or(r.from, "the catalog of "+snapshot.Installed.Catalog))
	if err != nil {
		return nil, err
	}
	if len(plan.Hops) == 0 {
		s.progress().Say("%s is installed, and OLM has nothing to upgrade to in channel %s", snapshot.Installed.Bundle, snapshot.Installed.Channel)
		return &report.Report{APIVersion: report.APIVersion, Kind: report.KindUpgrade}, nil
	}
	if err := walk.Check(p, plan); err != nil {
		return nil, err
	}
	unpacked := &room{}
	defer unpacked.remove()
	r.test.cluster, r.test.plan = kindEmbedded, &planFlags{olm: olmV0}
	images, err := s.programsOf(ctx, r.test.cluster, r.test.images, p, unpacked)
	if err != nil {
		return nil, err
	}
	if err := checkNamed(images, p, snapshot.Objects); err != nil {
		return nil, err
	}
	o := r.test.options
	o.Restore, o.Namespace = snapshot.Restore(), snapshot.Installed.Namespace
	o.Progress, o.Verbose = s.progress(), s.verbose
	silenceClients()
	return r.test.walk(ctx, p, plan, images, o)
}

// snapshot reads what is to be rehearsed, from a file or a cluster.
func (r *upgradeRehearse) snapshot(ctx context.Context, s *session) (*rehearsal.Snapshot, error) {
	if r.from != "" {
		data, err := readFile(ctx, r.from)
		if err != nil {
			return nil, hint.With(fmt.Errorf("read the snapshot: %w", err), "name a file that --save wrote with --from")
		}
		return rehearsal.Parse(data)
	}
	r.output = "text"
	at, client, err := r.connect(ctx, s)
	if err != nil {
		return nil, err
	}
	r.read.Progress, r.read.Pull = s.progress(), s.pull
	r.read.Catalog = func(ctx context.Context, source *v1alpha1.CatalogSource) (*catalog.Catalog, error) {
		return r.catalogIn(ctx, s, at, source)
	}
	return rehearsal.Read(ctx, client, r.read)
}

// catalogIn loads what source holds: from its image if that can be pulled, else from the cluster.
func (r *upgradeRehearse) catalogIn(ctx context.Context, s *session, at *existing.Cluster, source *v1alpha1.CatalogSource) (*catalog.Catalog, error) {
	var pulled error
	if ref := cmp.Or(r.catalog, source.Spec.Image); ref != "" {
		step := s.progress().Start("read catalog %s/%s from %s", source.Namespace, source.Name, ref)
		loaded, err := s.loadCatalog(ctx, ref)
		if step.End(err) == nil || r.catalog != "" || ctx.Err() != nil {
			return loaded, err
		}
		pulled = err
	} else if archives, err := at.KeptCatalog(ctx, source.Namespace, source.Name); err == nil && len(archives) > 0 {
		return s.loadArchives(ctx, archives)
	}
	step := s.progress().Start("read package %s of catalog %s/%s from the cluster", r.read.Package, source.Namespace, source.Name)
	served, err := at.ServedCatalog(ctx, source, r.read.Package)
	if step.End(err) == nil || pulled == nil {
		return served, err
	}
	return nil, errors.Join(pulled, err)
}

// write saves the snapshot, and says what is in it.
func (r *upgradeRehearse) write(ctx context.Context, s *session, snapshot *rehearsal.Snapshot) error {
	data, err := snapshot.Marshal()
	if err != nil {
		return err
	}
	if err := output.WritePrivate(ctx, r.save, data); err != nil {
		return err
	}
	for _, n := range snapshot.Notes {
		s.progress().Say("%s", n)
	}
	_, err = fmt.Fprintf(s.Out, "%s: %s with %d objects, and its way to %s\n", r.save, snapshot.Installed.Bundle, len(snapshot.Objects), safetext.Line(cmp.Or(strings.Join(snapshot.Way, ", "), "nothing")))
	return err
}
