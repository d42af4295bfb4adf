package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/safetext"
)

// removalLimit bounds how long it may take until what was deleted is gone.
const removalLimit = 2 * time.Minute

func newOLM(s *session) *cobra.Command {
	return group("olm", "Install OLM on a cluster, check it, and uninstall it", newOLMInstall(s), newOLMStatus(s), newOLMUninstall(s))
}

// olmReport is what these commands print with -o json.
type olmReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Cluster    string `json:"cluster"`
	Version    string `json:"version,omitempty"`
	// Objects are those that were made or removed, Kind/namespace/name.
	Objects []string `json:"objects"`
}

func newOLMInstall(s *session) *cobra.Command {
	l := &live{}
	var version string
	c := &cobra.Command{
		Use:   "install",
		Short: "Install OLM on a cluster",
		Long: `Install OLM ` + olmv0.Version + ` on a cluster of the kubeconfig, and wait until it runs: its CRDs, and its operators in the namespace
` + olmv0.Namespace + `. If this command installed it before, it creates what is missing. It does not change an OLM that something else installed.
The package server and the community's catalog are not installed.

With --olm v1, install OLM ` + olmv1.Version + ` in the namespace ` + olmv1.Namespace + ` of an embedded cluster that 'cluster up' keeps; olmkit issues certificates
there in cert-manager's place.`,
		Example: `  olmkit olm install --context kind-dev
  olmkit olm install --olm v1`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkOLM(version); err != nil {
				return err
			}
			at, client, err := l.connect(c.Context(), s)
			if err != nil {
				return err
			}
			if version == olmV1 {
				return s.installV1(c.Context(), l, at)
			}
			if err := provideOLM(c.Context(), at, at.Config(), s.progress()); err != nil {
				return err
			}
			made, err := s.keepOLM(c.Context(), client, olmv0.Release{})
			if err != nil {
				return err
			}
			return s.printOLM(l.output, olmReport{Kind: "OLMInstallation", Cluster: at.Name(), Version: olmv0.Version, Objects: namesOf(made)},
				olmInstalled)
		},
	}
	l.flags(c)
	versionFlag(c, &version)
	return c
}

// versionFlag adds the flag that says which version of OLM a command is about.
func versionFlag(c *cobra.Command, version *string) {
	c.Flags().StringVar(version, "olm", olmV0, "version of OLM: v0 or v1")
}

// What is printed of an OLM that was installed or removed, for its version, cluster and number of objects.
const (
	olmInstalled = "OLM %s is installed on cluster %s; %d objects were created\n"
	olmRemoved   = "OLM %s is removed from cluster %s; %d objects were deleted\n"
)

// keepOLM installs a release of OLM to stay. Interrupted, it removes what it made.
func (s *session) keepOLM(ctx context.Context, client *olmv0.Client, release olmv0.Release) (olmv0.Installation, error) {
	step := s.progress().Start("OLM %s", release.Name())
	made, err := olmv0.InstallKept(ctx, client, release)
	if ctx.Err() != nil && len(made) > 0 {
		if left := client.Remove(context.WithoutCancel(ctx), made, removalLimit); left != nil {
			err = errors.Join(err, leftError{hint.With(left, "run 'olmkit olm uninstall'")})
		}
	} else if err != nil && len(made) > 0 {
		err = hint.With(err, "see 'olmkit olm status'; 'olmkit olm uninstall' removes what was installed")
	}
	return made, step.End(err)
}

func namesOf(made olmv0.Installation) []string {
	names := []string{}
	for _, o := range made {
		names = append(names, olmv0.Describe(o))
	}
	return names
}

// printOLM prints r; text is for its version, cluster and number of objects.
func (s *session) printOLM(output string, r olmReport, text string) error {
	r.APIVersion = report.APIVersion
	if output == "json" {
		return s.printJSON(r)
	}
	_, err := fmt.Fprintf(s.Out, text, r.Version, r.Cluster, len(r.Objects))
	return err
}

func newOLMUninstall(s *session) *cobra.Command {
	l := &live{}
	var version string
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Uninstall an OLM that 'olm install' installed",
		Long: `Remove an OLM that 'olmkit olm install' or 'olmkit cluster up --olm' installed: its CRDs, and the namespaces ` + olmv0.Namespace + ` and ` + olmv0.OperatorsNamespace + `
with all their objects. While somebody uses OLM, nothing is removed, and the command names what uses it.

With --olm v1, remove OLM v1: its CRDs, roles and the namespace ` + olmv1.Namespace + `, and what stands in for cert-manager.`,
		Example: `  olmkit olm uninstall --context kind-dev
  olmkit olm uninstall --olm v1`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkOLM(version); err != nil {
				return err
			}
			at, client, err := l.connect(c.Context(), s)
			if err != nil {
				return err
			}
			if version == olmV1 {
				return s.uninstallV1(c.Context(), l, at)
			}
			made, err := l.removable(c.Context(), client)
			if err != nil {
				return err
			}
			version, _ := client.Version(c.Context()) // without it its deployment is gone, and the rest is to be removed
			step := s.progress().Start("removing OLM from cluster %s", at.Name())
			if err := step.End(client.Remove(c.Context(), made, removalLimit)); err != nil {
				return leftError{hint.With(err, "run '%s' again", l.command("olmkit olm uninstall"))}
			}
			return s.printOLM(l.output, olmReport{Kind: "OLMRemoval", Cluster: at.Name(), Version: cmp.Or(version, olmv0.Version), Objects: namesOf(made)},
				olmRemoved)
		},
	}
	l.flags(c)
	versionFlag(c, &version)
	return c
}

// removable returns what InstallKept made, if nobody uses it.
func (l *live) removable(ctx context.Context, client *olmv0.Client) (olmv0.Installation, error) {
	made, err := client.InstalledKept(ctx)
	if err != nil {
		return nil, err
	}
	if len(made) == 0 {
		return nil, hint.With(errors.New("the cluster has no OLM that 'olmkit olm install' installed"),
			"remove an OLM by the tool that installed it; 'olmkit cleanup' removes one that a killed walk left; --olm v1 is for OLM v1")
	}
	users, err := client.Users(ctx)
	if err != nil {
		return nil, err
	}
	return made, l.unused("OLM", users)
}

// unused is an error if users have something to do for the OLM called name.
func (l *live) unused(name string, users []string) error {
	if len(users) == 0 {
		return nil
	}
	return hint.With(fmt.Errorf("%s is in use: %s", name, strings.Join(users, ", ")),
		"delete these first; what 'olmkit bundle run' installed, '%s' removes", l.command("olmkit cleanup PACKAGE"))
}

// olmStatus is what 'olmkit olm status -o json' prints.
type olmStatus struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Cluster    string `json:"cluster"`
	Well       bool   `json:"well"`
	lifecycle.Status
	V1 *lifecycle.Status `json:"v1,omitempty"` // OLM v1, if it is there
}

// judge says whether all is well: each OLM that is there, and there is one.
func (r *olmStatus) judge() {
	r.Well = (r.Installed || r.V1 != nil) && len(r.Unwell()) == 0 && (r.V1 == nil || len(r.V1.Unwell()) == 0)
}

// statusV1 is how OLM v1 is on the cluster, or nil if that has none.
func statusV1(ctx context.Context, at *existing.Cluster) (*lifecycle.Status, error) {
	client, err := olmv1.Connect(at.Config())
	if err != nil {
		return nil, err
	}
	status, err := client.Status(ctx)
	if err != nil || !status.Installed {
		return nil, err
	}
	return &status, nil
}

func newOLMStatus(s *session) *cobra.Command {
	l := &live{}
	c := &cobra.Command{
		Use:   "status",
		Short: "Check whether OLM is healthy on a cluster, and name each part that is not",
		Long: `Check whether OLM is healthy on a cluster of the kubeconfig: its CRDs, its operators, and the catalogs that it reads; if
'olm install' installed it, everything that it created. The command names each part that is not healthy, with the reason, and
changes nothing. Where the cluster has the CRDs of OLM v1, it checks these, OLM v1's Deployments and its ClusterCatalogs, too.
It exits with 3 if a part is not healthy, or OLM is not installed. For Subscriptions and ClusterExtensions, use 'upgrade diagnose'.`,
		Example: `  olmkit olm status
  olmkit olm status --context kind-dev -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			at, client, err := l.connect(c.Context(), s)
			if err != nil {
				return err
			}
			status, err := client.Status(c.Context())
			if err != nil {
				return err
			}
			v1, err := statusV1(c.Context(), at)
			if err != nil {
				return err
			}
			r := olmStatus{APIVersion: report.APIVersion, Kind: "OLMStatus", Cluster: at.Name(), Status: status, V1: v1}
			r.judge()
			if l.output == "json" {
				err = s.printJSON(r)
			} else {
				err = r.print(s.Out, s.verbose)
			}
			if err == nil && !r.Well {
				err = errFindings
			}
			return err
		},
	}
	l.flags(c)
	return c
}

// print prints the parts that are not well, or all.
func (r olmStatus) print(out io.Writer, all bool) error {
	r = safetext.Clean(r)
	var b strings.Builder
	switch {
	case r.Installed:
		writeParts(&b, "OLM", r.Cluster, r.Status, all)
	case r.V1 == nil:
		fmt.Fprintf(&b, "OLM is not installed on cluster %s; 'olmkit olm install' installs it\n", r.Cluster)
	}
	if r.V1 != nil {
		writeParts(&b, "OLM v1", r.Cluster, *r.V1, all)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeParts writes the parts that are not well, or all, of an OLM called name.
func writeParts(b *strings.Builder, name, cluster string, s lifecycle.Status, all bool) {
	version := name + " of an unknown version"
	if s.Version != "" {
		version = "OLM " + s.Version
	}
	shown := s.Unwell()
	fmt.Fprintf(b, "%s on cluster %s, namespace %s: %d of %d parts are well\n", version, cluster, s.Namespace, len(s.Parts)-len(shown), len(s.Parts))
	if all {
		shown = s.Parts
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, p := range shown {
		why := p.Why
		if why == "" {
			why = "well"
		}
		fmt.Fprintf(w, "  %s\t%s\n", p.Object, why)
	}
	_ = w.Flush() // to memory
}

// keptCatalog is what the CatalogSource of 'cluster up --catalog' is called; all namespaces see it.
const keptCatalog = "olmkit-catalog"

// equip lets a cluster that was just started serve catalogs, installs the OLM that o names, if it names one, and has it read a catalog
// if there is one.
func (s *session) equip(ctx context.Context, up kept, o keptOptions, loaded *catalog.Catalog) error {
	// 'upgrade test --cluster existing' serves its catalogs from a pod.
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := up.LoadImage(ctx, serverImage(), program); err != nil || o.olm == "" {
		return err
	}
	silenceClients()
	if o.olm == olmV1 {
		return s.equipV1(ctx, up.(*embedded.Cluster), loaded)
	}
	return s.equipV0(ctx, up, o.olmVersions, loaded)
}

// equipV0 installs the OLM v0 that --olm-version names, and has it read a catalog if there is one.
func (s *session) equipV0(ctx context.Context, up kept, versions []string, loaded *catalog.Catalog) error {
	name, err := olmFlag.one(versions)
	if err != nil {
		return err
	}
	from, err := s.componentSource(kindEmbedded)
	if err != nil {
		return err
	}
	release, err := olmRelease(ctx, name, from, s.progress())
	if err != nil {
		return err
	}
	at, client, err := reach(ctx, existing.Options{Kubeconfig: up.Kubeconfig(), Server: serverImage()})
	if err != nil {
		return err
	}
	if _, err := s.keepOLM(ctx, client, release); err != nil || loaded == nil {
		return err
	}
	return s.serveKept(ctx, at, client, loaded)
}

// loadKept has each OLM of a kept cluster read a catalog.
func (s *session) loadKept(ctx context.Context, up kept, loaded *catalog.Catalog) error {
	at, client, err := reach(ctx, existing.Options{Kubeconfig: up.Kubeconfig(), Server: serverImage()})
	if err != nil {
		return err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	v1, err := statusV1(ctx, at)
	if err != nil {
		return err
	}
	if own, isEmbedded := up.(*embedded.Cluster); isEmbedded && v1 != nil {
		if err := s.serveKeptV1(ctx, own, loaded); err != nil || !status.Installed {
			return err
		}
	}
	if !status.Installed {
		return hint.With(fmt.Errorf("cluster %s has no OLM that could read a catalog", up.Name()), "install it with '%s'", "olmkit olm install --kubeconfig "+up.Kubeconfig())
	}
	return s.serveKept(ctx, at, client, loaded)
}

// serveKept serves a catalog for all namespaces.
func (s *session) serveKept(ctx context.Context, at *existing.Cluster, client *olmv0.Client, loaded *catalog.Catalog) error {
	fbc, err := catalog.Inline(loaded)
	if err != nil {
		return err
	}
	step := s.progress().Start("CatalogSource %s/%s", olmv0.Namespace, keptCatalog)
	return step.End(s.publishKept(ctx, at, client, olmv0.Namespace, keptCatalog, cluster.Labels(""), fbc))
}

// publishKept serves fbc in the cluster, as the CatalogSource called name, and waits until OLM reads it. What served it before
// is removed.
func (s *session) publishKept(ctx context.Context, at *existing.Cluster, client *olmv0.Client, namespace, name string, labels map[string]string, fbc []byte) error {
	fbc, err := client.Unpack(ctx, namespace, fbc)
	if err != nil {
		return err
	}
	address, err := at.KeepCatalog(ctx, namespace, name, labels, fbc)
	if err != nil {
		return err
	}
	place := lifecycle.Place{Namespace: namespace, Catalog: name}
	if err := client.Publish(ctx, place, cluster.CatalogAddress{Address: address}); err != nil {
		return err
	}
	if err := client.WaitPublished(ctx, place, connectLimit); err != nil {
		return err
	}
	return at.DropCatalogs(ctx, namespace, name, existing.At(address))
}

// connectLimit bounds how long OLM may take to read a new catalog.
const connectLimit = 2 * time.Minute
