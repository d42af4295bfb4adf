package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/installation"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/safetext"
)

// bundleRun is what the command line of 'olmkit bundle run' says.
type bundleRun struct {
	live
	options  installation.Options
	images   []string
	olm      string // version of OLM, or "" for the one that the cluster has
	registry string // repository that the cluster pulls from
}

func newBundleRun(s *session) *cobra.Command {
	r := &bundleRun{}
	c := &cobra.Command{
		Use:   "run REF...",
		Short: "Install a bundle with OLM, or upgrade to it, and leave it running",
		Long: `Have OLM install a bundle on a cluster of the kubeconfig, and leave it running. A REF is a bundle's directory, image, archive or OCI
layout; further REFs are bundles of other packages that the first one depends on. Run the command again with a bundle of a higher
version, and OLM upgrades to it. 'olmkit cleanup PACKAGE' removes all of it.

A pod in the operator's namespace serves the catalog, from ConfigMaps, for as long as the operator is installed. The nodes pull the
operator's images. On a cluster that 'olmkit cluster up' keeps, --image REF=PROGRAM loads them; on an embedded cluster, pods with
other images are simulated, and the command says so.

Without --olm, the OLM that the cluster has installs the bundle; where it has both, OLM v0, unless OLM v1 installed the package. OLM v1 reads the bundle and its catalog as
images: the command pushes them to the cluster's own registry on an embedded cluster, and else to the repository --registry. It creates a
ClusterCatalog, a ClusterExtension, and a ServiceAccount with the permissions that the bundle needs, and waits until the operator's
Deployments are rolled out.`,
		Example: `  olmkit bundle run bundle/0.1.0 --image ghcr.io/team/my-operator:v0.1.0=bin/v0.1.0/manager
  olmkit bundle run bundle/0.2.0 --image ghcr.io/team/my-operator:v0.2.0=bin/v0.2.0/manager
  olmkit bundle run quay.io/team/my-operator-bundle:v0.2.0 --context staging
  olmkit bundle run bundle/0.2.0 --olm v1 --registry ghcr.io/team/scratch --context staging
  olmkit cleanup my-operator`,
		Args: atLeastOne("REF"),
		RunE: func(c *cobra.Command, args []string) error { return r.run(c.Context(), s, args) },
	}
	r.flags(c)
	f := c.Flags()
	f.StringVar(&r.options.Namespace, "namespace", "", "namespace to install to (default: the package's name)")
	f.StringArrayVar(&r.images, "image", nil, "run image REF from a local binary, a root file system directory, or a single-binary image (archive, OCI layout or registry reference), as `REF=PROGRAM`, on a kept cluster; {version} in both stands for the bundle's version (repeatable)")
	f.DurationVar(&r.options.Timeout, "timeout", 4*time.Minute, "timeout of the installation")
	f.StringVar(&r.access.Server, "catalog-server", serverImage(), "`IMAGE` of olmkit that serves the catalog to OLM v0 on the cluster")
	f.StringVar(&r.olm, "olm", "", "version of OLM that installs: v0 or v1 (default: the one that the cluster has)")
	f.StringVar(&r.registry, "registry", "", "`REPOSITORY` to push the bundle and its catalog to, from which the cluster pulls them for OLM v1; embedded clusters have a registry of their own")
	return c
}

// runReport is what 'olmkit bundle run -o json' prints.
type runReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Cluster    string `json:"cluster"`
	*installation.Result
	Simulated []string `json:"simulated,omitempty"` // images of the operator that were not run
	remove    string   // the command line that removes it
}

func (r *bundleRun) run(ctx context.Context, s *session, refs []string) error {
	if err := textOrJSON(r.output); err != nil {
		return err
	}
	if r.olm != "" {
		if err := checkOLM(r.olm); err != nil {
			return err
		}
	}
	offered, pkg, err := s.bundlesToRun(ctx, refs)
	if err != nil {
		return err
	}
	at, client, err := r.connect(ctx, s)
	if err != nil {
		return err
	}
	up, err := keptAt(ctx, at.Server())
	if err != nil {
		return err
	}
	v1, err := olmv1.Connect(at.Config())
	if err != nil {
		return err
	}
	version, err := r.chooseOLM(ctx, pkg, client, v1)
	if err != nil {
		return err
	}
	if version == olmV0 && s.pullable(r.registry).given() {
		return hint.With(usagef("--registry is for OLM v1, and OLM v0 installs the bundle"), "leave it out, or add --olm v1")
	}
	r.options.Progress = s.progress()
	install := r.installV0
	if version == olmV1 {
		install = r.installV1
	}
	result, begun, err := install(ctx, s, target{at, client, v1, up}, offered, pkg)
	if err != nil {
		if ctx.Err() != nil && begun {
			return leftError{fmt.Errorf("package %s is installed in part; run the command again, or '%s'", pkg, r.command("olmkit cleanup "+pkg))}
		}
		return err
	}
	told := runReport{APIVersion: report.APIVersion, Kind: "BundleRun", Cluster: at.Name(), Result: result, remove: r.command("olmkit cleanup " + pkg)}
	if told.Simulated, err = simulatedIn(ctx, up, result.Images); err != nil {
		return err
	}
	if r.output == "json" {
		return s.printJSON(told)
	}
	return told.print(s.Out)
}

// target is where a bundle is run.
type target struct {
	at *existing.Cluster
	v0 *olmv0.Client
	v1 *olmv1.Client
	up kept // the same cluster if 'olmkit cluster up' keeps it, or nil
}

// installV0 has OLM v0 install the bundle of pkg, and says whether it began to.
func (r *bundleRun) installV0(ctx context.Context, s *session, t target, offered *catalog.Catalog, pkg string) (*installation.Result, bool, error) {
	if err := r.load(ctx, s, t.up, offered.Find(pkg)); err != nil {
		return nil, false, err
	}
	r.options.Publish = func(ctx context.Context, namespace, name string, labels map[string]string, fbc []byte) error {
		return s.publishKept(ctx, t.at, t.v0, namespace, name, labels, fbc)
	}
	result, err := installation.Run(ctx, t.v0, offered, pkg, r.options)
	return result, t.v0.Run != "", err
}

// bundlesToRun loads bundles, and names the package of the first.
func (s *session) bundlesToRun(ctx context.Context, refs []string) (*catalog.Catalog, string, error) {
	offered, err := s.loadCatalog(ctx, refs...)
	if err != nil {
		return nil, "", err
	}
	if len(offered.Documents) == 0 {
		return nil, "", usagef("%s: no bundle is there", strings.Join(refs, " "))
	}
	for _, p := range offered.Packages {
		if len(p.Channels) > 0 {
			return nil, "", hint.With(usagef("%s: package %s is in a catalog, with channels", p.At.File, p.Name), "name the bundle itself; 'olmkit cluster up --olm --catalog' serves a catalog")
		}
	}
	return offered, offered.Documents[0].Package, s.pull(ctx, bundlesIn(nil, offered))
}

// load lets the images run on the cluster up, which is nil if it is none of olmkit's.
func (r *bundleRun) load(ctx context.Context, s *session, up kept, p *catalog.Package) error {
	if len(r.images) == 0 || up == nil && slices.Contains(s.configured, "image") {
		return nil // others pull their images, and the project's file is for all clusters
	}
	if up == nil {
		return hint.With(usagef("--image is for a cluster that 'olmkit cluster up' keeps: others pull their images"), "push the image with 'olmkit image push' to where the bundle says, and leave --image out")
	}
	images, err := s.programsOf(ctx, up.Describe().Kind, r.images, p, &room{parent: filepath.Dir(up.Kubeconfig())})
	if err != nil {
		return err
	}
	if err := checkNamed(images, p, nil); err != nil {
		return err
	}
	for _, i := range images {
		if err := s.progress().Start("load %s", i.ref).End(up.LoadImage(ctx, i.ref, i.source)); err != nil {
			return err
		}
	}
	return nil
}

// keptAt returns the kept embedded or kind cluster whose API server is at server, or nil.
func keptAt(ctx context.Context, server string) (kept, error) {
	for _, kind := range keptKinds {
		names, err := keptNames(ctx, kind)
		if err != nil {
			continue // without Docker there is none of kind
		}
		for _, name := range names {
			up, err := openKept(ctx, kind, name)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err == nil && up.Config().Host == server {
				return up, nil
			}
		}
	}
	return nil, nil
}

// simulatedIn are those of images that up simulates.
func simulatedIn(ctx context.Context, up kept, images []string) ([]string, error) {
	if up == nil {
		return nil, nil
	}
	all, err := up.Simulated(ctx)
	return slices.DeleteFunc(slices.Clone(images), func(i string) bool { return !slices.Contains(all, i) }), err
}

func (r runReport) print(out io.Writer) error {
	r = safetext.Clean(r)
	verb := "is installed"
	switch {
	case r.Unchanged:
		verb = "was installed before, and is left as it is"
	case r.From != "":
		verb = "has replaced " + r.From
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s on cluster %s\n", r.Bundle, verb, r.Cluster)
	fmt.Fprintf(&b, "  namespace     %s (%s)\n", r.Namespace, cmp.Or(string(r.Mode), "unknown"))
	fmt.Fprintf(&b, "  CRDs          %s\n", cmp.Or(strings.Join(r.CRDs, ", "), "none"))
	for _, p := range r.Phases {
		fmt.Fprintf(&b, "  %6.1fs       %s\n", p.Seconds, p.Name)
	}
	for _, image := range r.Simulated {
		fmt.Fprintf(&b, "  simulated     %s: nothing runs in its pods; give its program with --image %s=PROGRAM\n", image, image)
	}
	if r.Unchanged {
		fmt.Fprintf(&b, "OLM never replaces a bundle by another of the same name: raise the version, or clean up first.\n")
	}
	kinds := "csv,pods"
	if r.OLM == olmV1 {
		kinds = "clusterextensions,pods"
	}
	fmt.Fprintf(&b, "To look at it: kubectl get %s --namespace %s\nTo upgrade it: olmkit bundle run NEWER\nTo remove it:  %s\n", kinds, r.Namespace, r.remove)
	_, err := io.WriteString(out, b.String())
	return err
}
