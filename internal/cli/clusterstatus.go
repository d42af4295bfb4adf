package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/safetext"
)

// keptCluster is a cluster that runs, as 'cluster status' lists it.
type keptCluster struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Kubernetes string `json:"kubernetes,omitempty"`
	Server     string `json:"server,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Error      string `json:"error,omitempty"` // why no more is known of it
}

// clusterStatus is what 'cluster status -o json' prints.
type clusterStatus struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Clusters   []keptCluster `json:"clusters"`
	NotListed  []string      `json:"notListed,omitempty"` // kinds of clusters of which nothing is known
}

func newClusterStatus(s *session) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "status",
		Short: "List the running clusters",
		Example: `  olmkit cluster status
  olmkit cluster status -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := textOrJSON(format); err != nil {
				return err
			}
			running := s.kept(c.Context())
			if format == "json" {
				return s.printJSON(running)
			}
			return running.print(s.Out, s.Err)
		},
	}
	outputFlag(c, &format)
	return c
}

// kept are the clusters that run, without those of kinds that cannot be listed, of which it warns.
func (s *session) kept(ctx context.Context) clusterStatus {
	running := clusterStatus{APIVersion: report.APIVersion, Kind: "ClusterStatus", Clusters: []keptCluster{}}
	for _, kind := range keptKinds {
		names, err := keptNames(ctx, kind)
		if err != nil {
			say(s.Err, "warning", fmt.Errorf("%s clusters are not listed: %w", kind, err), hint.Of(err))
			running.NotListed = append(running.NotListed, kind)
			continue
		}
		for _, name := range names {
			is := keptCluster{Name: name, Kind: kind}
			if up, err := openKept(ctx, kind, name); err != nil {
				is.Error = err.Error()
			} else {
				is.Kubernetes, is.Server, is.Kubeconfig = up.Describe().Kubernetes, up.Config().Host, up.Kubeconfig()
			}
			running.Clusters = append(running.Clusters, is)
		}
	}
	return running
}

// print prints a table of the clusters, or that there is none.
func (r clusterStatus) print(out, errOut io.Writer) error {
	r = safetext.Clean(r)
	if len(r.Clusters) == 0 {
		other := ""
		if len(r.NotListed) > 0 {
			other = "other "
		}
		fmt.Fprintf(errOut, "no %scluster runs; 'olmkit cluster up' starts one\n", other)
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tKIND\tKUBERNETES\tSERVER\tKUBECONFIG")
	for _, c := range r.Clusters {
		if c.Error != "" {
			fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, c.Kind, c.Error)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.Name, c.Kind, c.Kubernetes, c.Server, c.Kubeconfig)
	}
	return w.Flush()
}
