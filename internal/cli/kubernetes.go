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
	"github.com/olmkit/olmkit/internal/progress"
)

const kubernetesFlagName = "kubernetes"

// kubernetesFlag adds --kubernetes, which names releases of Kubernetes for embedded clusters.
func kubernetesFlag(c *cobra.Command, names *[]string, usage string) {
	c.Flags().StringSliceVar(names, kubernetesFlagName, nil, usage+" (default: "+embedded.KubernetesVersion+"); there are "+strings.Join(embedded.KubernetesMinors(), ", "))
	_ = c.RegisterFlagCompletionFunc(kubernetesFlagName, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		before := begun[:strings.LastIndex(begun, ",")+1]
		var values []string
		for _, minor := range embedded.KubernetesMinors() {
			if strings.HasPrefix(before+minor, begun) {
				values = append(values, before+minor)
			}
		}
		return values, cobra.ShellCompDirectiveNoFileComp
	})
}

// releases reads what --kubernetes names; without names it is the default release.
func releases(names []string) ([]string, error) {
	if len(names) == 0 {
		return []string{embedded.KubernetesVersion}, nil
	}
	var all []string
	var errs []error
	for _, name := range names {
		release, err := embedded.KubernetesRelease(strings.TrimSpace(name))
		switch {
		case err != nil:
			errs = append(errs, hint.With(usagef("--kubernetes %s: %v", name, err), "%s", hint.Of(err)))
		case slices.Contains(all, release):
			errs = append(errs, usagef("--kubernetes %s: %s is named twice", strings.Join(names, ","), release))
		}
		all = append(all, release)
	}
	return all, errors.Join(errs...)
}

// oneRelease is releases where one cluster is started.
func oneRelease(names []string) (string, error) {
	all, err := releases(names)
	if err != nil {
		return "", err
	}
	if len(all) > 1 {
		return "", usagef("--kubernetes %s: it is one version here", strings.Join(names, ","))
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

// provideOLM builds OLM's programs if the cluster that config reaches is embedded: others pull their image.
func provideOLM(ctx context.Context, c cluster.Cluster, config *rest.Config, p *progress.Printer) error {
	if up, ok := c.(*embedded.Cluster); ok {
		return up.ProvideOLM(ctx, p)
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
