package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/safetext"
	"github.com/olmkit/olmkit/pkg/storagemigration"
)

func newCRD(s *session) *cobra.Command {
	return group("crd", "Migrate the stored objects of a CRD", newCRDMigrate(s))
}

// migrationReport is what 'crd migrate -o json' prints.
type migrationReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Cluster    string `json:"cluster"`
	storagemigration.Result
}

func newCRDMigrate(s *session) *cobra.Command {
	var l live
	var dryRun bool
	var workers int
	c := &cobra.Command{
		Use:   "migrate CRD",
		Short: "Store all objects of a CRD in its stored version",
		Long: `Store all objects of a CRD in the version that the CRD stores now, and remove the other versions from its status.storedVersions.

Only then can a release be installed that drops one of these versions. Each object is written back as it is, in pages of
100. An annotation of the CRD keeps the progress: after a run was killed, the next one continues. An object that the API
server refuses stops the migration; --dry-run names all of them, and stores nothing.`,
		Example: `  olmkit crd migrate memcacheds.cache.example.com --dry-run
  olmkit crd migrate memcacheds.cache.example.com
  olmkit crd migrate memcacheds.cache.example.com --context prod -o json`,
		Args: exactlyOne("CRD"),
		RunE: func(c *cobra.Command, args []string) error {
			if workers < 1 {
				return usagef("--workers %d: must be 1 or more", workers)
			}
			if !strings.Contains(args[0], ".") {
				return hint.With(usagef("%s is no name of a CRD", args[0]), "name it PLURAL.GROUP, as 'kubectl get crd' does")
			}
			if err := textOrJSON(l.output); err != nil {
				return err
			}
			return s.migrate(c.Context(), &l, &storagemigration.Migration{CRD: args[0], Workers: workers, DryRun: dryRun, Save: true})
		},
	}
	l.flags(c)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "have the API server convert and validate every object, and store nothing")
	c.Flags().IntVar(&workers, "workers", 8, "`NUMBER` of objects that are written at the same time")
	return c
}

// migrate runs a migration on the cluster, and prints what it did.
func (s *session) migrate(ctx context.Context, l *live, m *storagemigration.Migration) error {
	silenceClients()
	at, err := existing.Connect(ctx, l.access)
	if err != nil {
		return err
	}
	s.progress().Say("cluster: context %s, API server %s", at.Name(), at.Server())
	scheme := runtime.NewScheme()
	if err := apiextensions.AddToScheme(scheme); err != nil {
		return err
	}
	config := at.Config()
	config.QPS = -1 // the API server's priority and fairness limits it
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to cluster %s: %w", at.Name(), err)
	}
	m.Client, m.API = c, c
	began := time.Now()
	m.Report = func(p storagemigration.Progress) {
		left := ""
		if p.Remaining != nil {
			left = fmt.Sprintf(", %d left", *p.Remaining)
		}
		s.progress().Say("%d objects%s (%s)", p.Objects, left, time.Since(began).Round(time.Second))
	}
	result, err := m.Run(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return hint.With(err, "'kubectl get crd' lists those that there are")
	case err != nil && ctx.Err() != nil:
		return errors.Join(ctx.Err(), hint.With(fmt.Errorf("migrating %s: stopped after %d objects", m.CRD, result.Objects), "run it again: it continues there"))
	case err != nil:
		return hint.With(fmt.Errorf("migrating %s, after %d objects: %w", m.CRD, result.Objects, err), "correct what the API server refuses, and run it again: it continues there")
	}
	if l.output == "json" {
		return s.printJSON(migrationReport{report.APIVersion, "StorageMigrationReport", at.Name(), result})
	}
	return printMigration(s.Out, result)
}

func printMigration(out io.Writer, r storagemigration.Result) error {
	var err error
	versions := safetext.Line(strings.Join(r.StoredVersions, ", "))
	switch {
	case r.DryRun && !slices.Equal(r.StoredVersions, []string{r.Version}):
		_, err = fmt.Fprintf(out, "%s: all %d objects can be stored as %s; status.storedVersions is %s\n", r.CRD, r.Objects, r.Version, versions)
	case r.Pruned:
		_, err = fmt.Fprintf(out, "%s: %d objects are stored as %s; status.storedVersions was %s, and is %s\n", r.CRD, r.Objects, r.Version, versions, r.Version)
	default:
		_, err = fmt.Fprintf(out, "%s: nothing to migrate: status.storedVersions is %s\n", r.CRD, versions)
	}
	return err
}
