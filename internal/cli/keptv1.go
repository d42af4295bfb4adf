package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
)

// checkKeptOLM refuses an OLM, "" for none, that a kept cluster of the kind cannot have, and a catalog that no OLM reads.
func checkKeptOLM(version, kind, catalog string) error {
	switch {
	case version == "" && catalog != "":
		return hint.With(usagef("--catalog is for OLM to read"), "add --olm")
	case version == "":
		return nil
	case version == olmV1 && kind != kindEmbedded:
		return hint.With(usagef("--olm=v1 is for an embedded cluster, and --kind is %s", kind), "leave out --kind, or install OLM v1 on the cluster when it is up: %s", upstreamInstall)
	}
	return checkOLM(version)
}

// noOLMArgument refuses arguments, of which some are meant to be the value of --olm.
func noOLMArgument(c *cobra.Command, args []string) error {
	if len(args) == 1 && checkOLM(args[0]) == nil && c.Flags().Changed("olm") {
		return hint.With(usagef("%s is no argument of %s: the value of --olm is written after an equals sign", args[0], c.CommandPath()), "write --olm=%s", args[0])
	}
	return cobra.NoArgs(c, args)
}

// upstreamInstall is how to install OLM v1 on any cluster.
const upstreamInstall = "curl -L -s https://github.com/operator-framework/operator-controller/releases/download/" + olmv1.Version + "/install.sh | bash"

// embeddedAt returns the kept embedded cluster whose API server is at server, or nil.
func embeddedAt(ctx context.Context, server string) (*embedded.Cluster, error) {
	up, err := keptAt(ctx, server)
	own, _ := up.(*embedded.Cluster)
	return own, err
}

// installV1 installs OLM v1 on a kept embedded cluster.
func (s *session) installV1(ctx context.Context, l *live, at *existing.Cluster) error {
	up, err := embeddedAt(ctx, at.Server())
	if err != nil {
		return err
	}
	if up == nil {
		return hint.With(fmt.Errorf("cluster %s is no embedded cluster that 'olmkit cluster up' keeps: OLM v1 needs cert-manager there, which olmkit does not install", at.Name()),
			"install OLM v1, with cert-manager, by upstream's script: %s; or start a cluster with 'olmkit cluster up --olm=v1'", upstreamInstall)
	}
	made, err := s.keepOLMv1(ctx, up)
	if err != nil {
		return err
	}
	return s.printOLM(l.output, olmReport{Kind: "OLMInstallation", Cluster: at.Name(), Version: olmv1.Version, Objects: made.Names()}, olmInstalled)
}

// keepOLMv1 installs OLM v1 to stay. Interrupted, it removes what it made.
func (s *session) keepOLMv1(ctx context.Context, up *embedded.Cluster) (olmv1.Installation, error) {
	from, err := s.componentSource(kindEmbedded)
	if err != nil {
		return nil, err
	}
	programs, err := embedded.OLMv1Programs(ctx, from, s.progress())
	if err != nil {
		return nil, err
	}
	if err := loadOLMv1(ctx, up, programs); err != nil {
		return nil, err
	}
	client, err := olmv1.Connect(up.Config())
	if err != nil {
		return nil, err
	}
	step := s.progress().Start("OLM %s", olmv1.Version)
	made, err := olmv1.InstallKept(ctx, client, up)
	if ctx.Err() != nil && len(made) > 0 {
		if left := removeV1(context.WithoutCancel(ctx), client, up, made); left != nil {
			err = errors.Join(err, leftError{hint.With(left, "run 'olmkit olm uninstall --olm v1'")})
		}
	} else if err != nil && len(made) > 0 {
		err = hint.With(err, "see 'olmkit olm status'; 'olmkit olm uninstall --olm v1' removes what was installed")
	}
	return made, step.End(err)
}

// removeV1 removes OLM v1, and ends what stands in for cert-manager on up, which is nil for a cluster that has none.
func removeV1(ctx context.Context, client *olmv1.Client, up *embedded.Cluster, made olmv1.Installation) error {
	if err := client.Remove(ctx, made, removalLimit); err != nil || up == nil {
		return err
	}
	return up.EndCertificates(ctx)
}

// uninstallV1 removes an OLM v1 that installV1 installed.
func (s *session) uninstallV1(ctx context.Context, l *live, at *existing.Cluster) error {
	client, err := olmv1.Connect(at.Config())
	if err != nil {
		return err
	}
	made, err := l.removableV1(ctx, client)
	if err != nil {
		return err
	}
	up, err := embeddedAt(ctx, at.Server())
	if err != nil {
		return err
	}
	step := s.progress().Start("removing OLM v1 from cluster %s", at.Name())
	if err := step.End(removeV1(ctx, client, up, made)); err != nil {
		return leftError{hint.With(err, "run '%s' again", l.command("olmkit olm uninstall --olm v1"))}
	}
	return s.printOLM(l.output, olmReport{Kind: "OLMRemoval", Cluster: at.Name(), Version: olmv1.Version, Objects: made.Names()}, olmRemoved)
}

// removableV1 returns what olmv1.InstallKept made, if nobody uses it.
func (l *live) removableV1(ctx context.Context, client *olmv1.Client) (olmv1.Installation, error) {
	made, err := client.InstalledKept(ctx)
	if err != nil {
		return nil, err
	}
	if len(made) == 0 {
		return nil, hint.With(errors.New("the cluster has no OLM v1 that 'olmkit olm install --olm v1' installed"), "remove an OLM v1 by the tool that installed it")
	}
	users, err := client.Users(ctx)
	if err != nil {
		return nil, err
	}
	return made, l.unused("OLM v1", users)
}

// equipV1 installs OLM v1 on a cluster that was just started, and has it read a catalog if there is one.
func (s *session) equipV1(ctx context.Context, up *embedded.Cluster, loaded *catalog.Catalog) error {
	if _, err := s.keepOLMv1(ctx, up); err != nil || loaded == nil {
		return err
	}
	return s.serveKeptV1(ctx, up, loaded)
}

// serveKeptV1 has catalogd serve a catalog.
func (s *session) serveKeptV1(ctx context.Context, up *embedded.Cluster, loaded *catalog.Catalog) error {
	fbc, err := catalog.Inline(loaded)
	if err != nil {
		return err
	}
	client, err := olmv1.Connect(up.Config())
	if err != nil {
		return err
	}
	step := s.progress().Start("ClusterCatalog %s", keptCatalog)
	return step.End(publishV1(ctx, client, &olmv1.Store{Host: up}, keptCatalog, fbc))
}

// publishV1 pushes fbc and its bundles to where store keeps images, and has catalogd serve it as the ClusterCatalog called name.
func publishV1(ctx context.Context, client *olmv1.Client, store *olmv1.Store, name string, fbc []byte) error {
	address, err := store.Catalog(ctx, name, fbc)
	if err != nil {
		return err
	}
	place := lifecycle.Place{Catalog: name}
	if err := client.Publish(ctx, place, address); err != nil {
		return err
	}
	return client.WaitPublished(ctx, place, connectLimit)
}
