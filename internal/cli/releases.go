package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/progress"
)

// releaseFlag is a flag that names releases of what embedded clusters consist of.
type releaseFlag struct {
	name    string
	latest  string                       // what there is without the flag
	minors  func() []string              // that there are
	release func(string) (string, error) // that a name is of; an error has a hint
}

var (
	kubernetesFlag = releaseFlag{"kubernetes", embedded.KubernetesVersion, embedded.KubernetesMinors, embedded.KubernetesRelease}
	olmFlag        = releaseFlag{"olm-version", embedded.OLMVersion, embedded.OLMMinors, embedded.OLMRelease}
)

// add adds the flag, which names releases, to c.
func (f releaseFlag) add(c *cobra.Command, names *[]string, usage string) {
	c.Flags().StringSliceVar(names, f.name, nil, usage+" (default: "+f.latest+"); there are "+strings.Join(f.minors(), ", "))
	_ = c.RegisterFlagCompletionFunc(f.name, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		before := begun[:strings.LastIndex(begun, ",")+1]
		var values []string
		for _, minor := range f.minors() {
			if strings.HasPrefix(before+minor, begun) {
				values = append(values, before+minor)
			}
		}
		return values, cobra.ShellCompDirectiveNoFileComp
	})
}

// all reads what the flag names; without names it is the default release.
func (f releaseFlag) all(names []string) ([]string, error) {
	if len(names) == 0 {
		return []string{f.latest}, nil
	}
	var all []string
	var errs []error
	for _, name := range names {
		release, err := f.release(strings.TrimSpace(name))
		switch {
		case err != nil:
			errs = append(errs, hint.With(usagef("--%s %s: %v", f.name, name, err), "%s", hint.Of(err)))
		case slices.Contains(all, release):
			errs = append(errs, usagef("--%s %s: %s is named twice", f.name, strings.Join(names, ","), release))
		}
		all = append(all, release)
	}
	return all, errors.Join(errs...)
}

// one is all where one cluster is started.
func (f releaseFlag) one(names []string) (string, error) {
	all, err := f.all(names)
	if err != nil {
		return "", err
	}
	if len(all) > 1 {
		return "", usagef("--%s %s: must be one version here", f.name, strings.Join(names, ","))
	}
	return all[0], nil
}

// noKubernetes says for a kind of cluster why --kubernetes does not choose its version.
func noKubernetes(kind string) error {
	if kind == kindKind {
		return hint.With(usagef("--kubernetes is for the embedded cluster: the version of a kind cluster is that of its node image"),
			"choose the image with --node-image, for example kindest/node:v1.33.1, and leave --kubernetes out")
	}
	return hint.With(usagef("--kubernetes is for the embedded cluster: an existing cluster has its version, which the report names"), "leave --kubernetes out")
}

// noOLMVersion says for a kind of cluster why --olm-version does not choose its OLM.
func noOLMVersion(kind string) error {
	if kind == kindKind {
		return hint.With(usagef("--olm-version is for the embedded cluster: on a kind cluster OLM %s is installed", olmv0.Version), "leave --olm-version out")
	}
	return hint.With(usagef("--olm-version is for the embedded cluster: an existing cluster has its OLM, which the report names"), "leave --olm-version out")
}

// olmRelease is what installs a release of OLM v0 on a cluster, which is embedded if it is not the default one.
func olmRelease(ctx context.Context, release string, from embedded.Source, p *progress.Printer) (olmv0.Release, error) {
	crds, err := embedded.OLMDefinitions(ctx, release, from, p)
	return olmv0.Release{Version: release, CRDs: crds}, err
}

// provideOLM builds OLM's programs if the cluster that config reaches is embedded, and was started without: others pull their image.
func provideOLM(ctx context.Context, c cluster.Cluster, config *rest.Config, p *progress.Printer) error {
	if _, ok := c.(*embedded.Cluster); ok {
		return nil
	}
	names, err := embedded.Names()
	if err != nil {
		return nil //nolint:nilerr // then there is none
	}
	for _, name := range names {
		if up, err := embedded.Open(ctx, name); err == nil && up.Config().Host == config.Host {
			return up.ProvideOLM(ctx, p)
		}
	}
	return ctx.Err()
}
