package cli

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/safetext"
)

// live is what commands have that act on a cluster of the kubeconfig.
type live struct {
	access existing.Options
	output string
}

// flags adds those that say which cluster, and how results are printed.
func (l *live) flags(c *cobra.Command) {
	accessFlags(c, &l.access)
	outputFlag(c, &l.output)
}

func outputFlag(c *cobra.Command, output *string) {
	c.Flags().StringVarP(output, "output", "o", "text", "output format: text or json")
}

func textOrJSON(output string) error {
	if output != "text" && output != "json" {
		return usagef("-o %s: must be text or json", output)
	}
	return nil
}

// silenceClients keeps what the client libraries log of their retries from standard error.
func silenceClients() {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
}

// reach connects to a cluster of a kubeconfig, and to what OLM has there.
func reach(ctx context.Context, access existing.Options) (*existing.Cluster, *olmv0.Client, error) {
	at, err := existing.Connect(ctx, access)
	if err != nil {
		return nil, nil, err
	}
	client, err := olmv0.Connect(at.Config())
	return at, client, err
}

// connect reaches the cluster, and says which one that is before anything is changed there.
func (l *live) connect(ctx context.Context, s *session) (*existing.Cluster, *olmv0.Client, error) {
	if err := textOrJSON(l.output); err != nil {
		return nil, nil, err
	}
	silenceClients()
	at, client, err := reach(ctx, l.access)
	if err != nil {
		return nil, nil, err
	}
	s.progress().Say("cluster: context %s, API server %s", at.Name(), at.Server())
	return at, client, nil
}

// command is the command line of another command for the same cluster.
func (l *live) command(words string) string {
	if l.access.Kubeconfig != "" {
		words += " --kubeconfig " + l.access.Kubeconfig
	}
	if l.access.Context != "" {
		words += " --context " + l.access.Context
	}
	return words
}

func (s *session) printJSON(value any) error {
	return safetext.EncodeJSON(s.Out, value)
}
