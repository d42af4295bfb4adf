package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/cluster/embedded"
)

const defaultCluster = "olmkit"

func newCluster(s *session) *cobra.Command {
	return group("cluster", "Keep a cluster to work in",
		newClusterUp(s), newClusterDown(s), newClusterStatus(s), newClusterLogs(s))
}

// addClusterFlags adds the flags that choose a cluster.
func addClusterFlags(c *cobra.Command, name, kind *string) {
	c.Flags().StringVar(name, "name", defaultCluster, "the cluster's `NAME`")
	c.Flags().StringVar(kind, "kind", "embedded", "kind of cluster: embedded")
	c.Args = cobra.NoArgs
}

func checkKind(kind string) error {
	if kind != "embedded" {
		return usagef("--kind %s: this release knows the kind embedded only", kind)
	}
	return nil
}

func newClusterUp(s *session) *cobra.Command {
	var name, kind string
	var port int
	c := &cobra.Command{
		Use:   "up",
		Short: "Bring a cluster up and keep it",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkKind(kind); err != nil {
				return err
			}
			up, err := embedded.Start(c.Context(), embedded.Options{Name: name, Keep: true, Port: port, Progress: s.progress()})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.Out, "export KUBECONFIG=%s\n", up.Kubeconfig())
			s.progress().Say("\nkubectl uses it after the line above is run in your shell. To end it: olmkit cluster down --name %s", name)
			return err
		},
	}
	addClusterFlags(c, &name, &kind)
	c.Flags().IntVar(&port, "port", 0, "the API server's `PORT` on the loopback interface; 0 for any free one")
	return c
}

func newClusterDown(s *session) *cobra.Command {
	var name, kind string
	c := &cobra.Command{
		Use:   "down",
		Short: "End a kept cluster, and all that runs in it",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkKind(kind); err != nil {
				return err
			}
			up, err := embedded.Open(c.Context(), name)
			if err != nil {
				return err
			}
			return s.progress().Start("ending cluster %s", name).End(up.Down(c.Context()))
		},
	}
	addClusterFlags(c, &name, &kind)
	return c
}

func newClusterStatus(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the clusters that run",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			names, err := embedded.Names()
			if err != nil {
				return err
			}
			if len(names) == 0 {
				fmt.Fprintln(s.Err, "no cluster runs; 'olmkit cluster up' starts one")
				return nil
			}
			w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tKIND\tKUBERNETES\tSERVER\tKUBECONFIG")
			for _, name := range names {
				up, err := embedded.Open(c.Context(), name)
				if err != nil {
					fmt.Fprintf(w, "%s\tembedded\t%v\n", name, err)
					continue
				}
				fmt.Fprintf(w, "%s\tembedded\t%s\t%s\t%s\n", name, up.Proves().Kubernetes, up.Config().Host, up.Kubeconfig())
			}
			return w.Flush()
		},
	}
}

func newClusterLogs(s *session) *cobra.Command {
	var name, kind string
	c := &cobra.Command{
		Use:   "logs [COMPONENT|NAMESPACE/POD/CONTAINER]",
		Short: "Print what a cluster's components and containers wrote",
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkKind(kind); err != nil {
				return err
			}
			up, err := embedded.Open(c.Context(), name)
			if err != nil {
				return err
			}
			component := ""
			if len(args) == 1 {
				component = args[0]
			}
			return up.Logs(c.Context(), s.Out, component)
		},
	}
	addClusterFlags(c, &name, &kind)
	c.Args = cobra.MaximumNArgs(1)
	return c
}
