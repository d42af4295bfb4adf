package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/leftover"
	"github.com/olmkit/olmkit/internal/progress"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/safetext"
)

// What became of a leftover.
const (
	leftoverFound   = "found" // of a dry run
	leftoverRemoved = "removed"
	leftoverKept    = "kept"
)

// cleanupReport is what 'olmkit cleanup -o json' prints.
type cleanupReport struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Cluster    string          `json:"cluster"`
	Package    string          `json:"package,omitempty"` // whose installation by 'bundle run' was removed; else it is about walks
	DryRun     bool            `json:"dryRun"`
	Leftovers  []leftoverState `json:"leftovers"`
	// Unread says of which kinds it is not known whether something is left.
	Unread []string `json:"unread,omitempty"`
}

type leftoverState struct {
	leftover.Object
	Result string `json:"result"`
	Why    string `json:"why,omitempty"`
	Fix    string `json:"fix,omitempty"`
}

func newCleanup(s *session) *cobra.Command {
	l := &live{}
	var dryRun bool
	c := &cobra.Command{
		Use:   "cleanup [PACKAGE]",
		Short: "Remove what 'bundle run' installed, or what walks left on an existing cluster",
		Long: `With PACKAGE, remove what 'bundle run' installed: the operator, its CRDs, roles and webhooks, its catalog, and the namespace with
all its objects if 'bundle run' created it. A CRD that has objects stays, with the namespaces that they are in; the command
says how to remove them, and exits with 1. Delete objects with finalizers first, while the operator runs. OLM v1 deletes CRDs
with their objects: under it, nothing is removed while there are objects.

Without PACKAGE, remove what a killed walk left on an existing cluster.

A walk with --cluster existing removes its objects when it ends, unless it is killed. They have the label
` + cluster.WalkLabel + `. This command finds them, and what OLM created for them: the operator, its CRDs, roles and webhooks. It
deletes custom resources first, while the operator can remove its finalizers, and OLM last, if --install-olm installed it.

Objects that no walk created stay: a CRD of which you created objects, an OLM that you use. The command names them, says
how to remove them, and exits with 1. Do not run it while a walk is under way on the cluster.`,
		Example: `  olmkit cleanup my-operator
  olmkit cleanup --context staging --dry-run
  olmkit cleanup --context staging`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			at, _, err := l.connect(c.Context(), s)
			if errors.As(err, &usageError{}) {
				return err
			}
			if err != nil {
				return leftError{err}
			}
			r := cleanupReport{APIVersion: report.APIVersion, Kind: "CleanupReport", Cluster: at.Name(), DryRun: dryRun, Leftovers: []leftoverState{}}
			if len(args) == 1 {
				r.Package = args[0]
			}
			if err := r.run(c.Context(), s, at); err != nil {
				return leftError{fmt.Errorf("clean up cluster %s: %w", at.Name(), err)}
			}
			return r.print(s, l.output)
		},
	}
	l.flags(c)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be removed, and remove nothing")
	return c
}

// accessFlags adds the flags that say how an existing cluster is reached.
func accessFlags(c *cobra.Command, access *existing.Options) {
	c.Flags().StringVar(&access.Kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the existing cluster (default: KUBECONFIG, or ~/.kube/config)")
	c.Flags().StringVar(&access.Context, "context", "", "kubeconfig context `NAME` (default: the current one)")
}

// run finds what is left and removes it, unless this is a dry run.
func (r *cleanupReport) run(ctx context.Context, s *session, at *existing.Cluster) error {
	cleaner, err := leftover.New(at.Config())
	if err != nil {
		return err
	}
	if r.Package != "" {
		cleaner = cleaner.OfRuns()
	}
	if r.DryRun {
		found, err := cleaner.Find(ctx, r.Package)
		for _, o := range found.Objects {
			r.Leftovers = append(r.Leftovers, leftoverState{Object: o, Result: leftoverFound})
		}
		r.Unread = found.Unread
		return err
	}
	step := s.progress().Start("removing what %s on cluster %s", r.whose(), at.Name())
	removal, err := cleaner.Remove(ctx, r.Package)
	if err := step.End(err); err != nil {
		return err
	}
	for _, o := range removal.Removed {
		r.Leftovers = append(r.Leftovers, leftoverState{Object: o, Result: leftoverRemoved})
	}
	for _, k := range removal.Kept {
		r.Leftovers = append(r.Leftovers, leftoverState{Object: k.Object, Result: leftoverKept, Why: k.Why, Fix: k.Fix})
	}
	r.Unread = removal.Unread
	return nil
}

// print prints r, and returns an error if something stays.
func (r *cleanupReport) print(s *session, output string) error {
	for _, u := range r.Unread {
		say(s.Err, "warning", fmt.Errorf("it is not known whether there are more objects that %s: %s", r.whose(), u), "")
	}
	var err error
	if output == "json" {
		err = s.printJSON(r)
	} else {
		err = r.printText(s.Out)
	}
	kept := 0
	for _, l := range r.Leftovers {
		if l.Result == leftoverKept {
			kept++
		}
	}
	if kept > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d objects that %s stay on cluster %s", kept, len(r.Leftovers), r.whose(), r.Cluster))
	}
	return err
}

// whose says what the objects are.
func (r *cleanupReport) whose() string {
	if r.Package != "" {
		return "'bundle run' brought"
	}
	return "walks left"
}

func (r *cleanupReport) printText(out io.Writer) error {
	r = safetext.Clean(r)
	if len(r.Leftovers) == 0 {
		text := "nothing is left of walks on cluster " + r.Cluster
		if r.Package != "" {
			text = fmt.Sprintf("cluster %s has nothing that 'olmkit bundle run' installed of package %s", r.Cluster, r.Package)
		}
		_, err := fmt.Fprintln(out, text)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	whose := "WALK"
	if r.Package != "" {
		whose = "PACKAGE"
	}
	fmt.Fprintln(w, "RESULT\tOBJECT\t"+whose)
	for _, l := range r.Leftovers {
		fmt.Fprintf(w, "%s\t%s\t%s\n", l.Result, l.Object, l.Walk)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	told := map[string]bool{}
	for _, l := range r.Leftovers {
		if l.Why != "" && !told[l.Why+l.Fix] {
			told[l.Why+l.Fix] = true
			if _, err := fmt.Fprintf(out, "\n%s stays: %s\n  fix: %s\n", l.Object, l.Why, l.Fix); err != nil {
				return err
			}
		}
	}
	return nil
}

// newWalkID returns an id for a walk that begins now: when that is, and something that no other has.
func newWalkID(now time.Time) (string, error) {
	unique := make([]byte, 2)
	if _, err := rand.Read(unique); err != nil {
		return "", err
	}
	return now.UTC().Format("20060102-150405-") + hex.EncodeToString(unique), nil
}

// cleanupCommand is the command line that cleans up the cluster which access reaches.
func cleanupCommand(access existing.Options) string {
	command := "olmkit cleanup"
	if access.Kubeconfig != "" {
		command += " --kubeconfig " + access.Kubeconfig
	}
	if access.Context != "" {
		command += " --context " + access.Context
	}
	return command
}

// refuseLeftovers returns an error that names what earlier walks left on a cluster, if they did.
func refuseLeftovers(ctx context.Context, c *existing.Cluster, access existing.Options) error {
	cleaner, err := leftover.New(c.Config())
	if err != nil {
		return err
	}
	found, err := cleaner.Find(ctx, "")
	if err != nil {
		return fmt.Errorf("look for what walks left on cluster %s: %w", c.Name(), err)
	}
	if len(found.Objects) == 0 {
		return nil
	}
	return hint.With(fmt.Errorf("walk %s has left objects on cluster %s, or is still under way there: %s",
		strings.Join(found.Walks(), ", "), c.Name(), strings.Join(found.Names(), ", ")),
		"run '%s' when no walk is under way there", cleanupCommand(access))
}

// removeWalk removes what the walk with an id made on a cluster that stays. It does so also when ctx is done.
func removeWalk(ctx context.Context, c cluster.Cluster, id string, access existing.Options, p *progress.Printer) error {
	ctx = context.WithoutCancel(ctx)
	step := p.Start("leaving cluster %s as it was", c.Name())
	cleaner, err := leftover.New(c.Config())
	if err != nil {
		return step.End(err)
	}
	removal, err := cleaner.Remove(ctx, id)
	for _, k := range removal.Kept {
		err = errors.Join(err, fmt.Errorf("%s stays: %s", k.Object, k.Why))
	}
	if err != nil {
		err = hint.With(fmt.Errorf("leave cluster %s as it was: %w", c.Name(), err), "run '%s'", cleanupCommand(access))
	}
	return step.End(err)
}
