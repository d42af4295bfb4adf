package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/diagnosis"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/safetext"
)

// diagnoseReport is what 'olmkit upgrade diagnose -o json' prints.
type diagnoseReport struct {
	APIVersion    string                `json:"apiVersion"`
	Kind          string                `json:"kind"`
	Cluster       string                `json:"cluster"`
	Subscriptions []diagnosis.Diagnosis `json:"subscriptions"`
}

func newUpgradeDiagnose(s *session) *cobra.Command {
	l := &live{}
	var pkg string
	var refs []string
	c := &cobra.Command{
		Use:   "diagnose",
		Short: "Say why OLM does not upgrade on a live cluster, and how to mend it",
		Long: `Say of each Subscription of a cluster of the kubeconfig where it stands, what OLM goes on to, why it does not, the commands that mend
that, and what they risk. The command only reads; Secrets and custom resources it does not read.

What comes next, OLM's own resolver says, from what the catalogs hold. Those that 'olmkit bundle run' and 'olmkit cluster up --catalog'
serve are read on the cluster, images are pulled from here, and --catalog names the content of others. Where that is not known the
command says so, and tells what OLM has noted on the cluster.

It exits with 3 if a Subscription is stuck, or waits for an approval.`,
		Example: `  olmkit upgrade diagnose --context production
  olmkit upgrade diagnose -p my-operator --catalog olm/operatorhubio-catalog=catalog`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			given, err := givenCatalogs(refs)
			if err != nil {
				return err
			}
			at, client, err := l.connect(c.Context(), s)
			if err != nil {
				return err
			}
			state, err := diagnosis.Read(c.Context(), client)
			if err != nil {
				return err
			}
			catalogs, err := s.catalogsOf(c.Context(), at, state, given)
			if err != nil {
				return err
			}
			r := diagnoseReport{APIVersion: report.APIVersion, Kind: "UpgradeDiagnosis", Cluster: at.Name(), Subscriptions: diagnosis.Diagnose(c.Context(), state, pkg, catalogs)}
			return r.finish(s, l.output, pkg)
		},
	}
	l.flags(c)
	c.Flags().StringVarP(&pkg, "package", "p", "", "only Subscriptions to this package")
	c.Flags().StringArrayVar(&refs, "catalog", nil, "content of a CatalogSource, as `NAMESPACE/NAME=REF`: a directory, file, image or archive (repeatable)")
	return c
}

// givenCatalogs reads what users write as NAMESPACE/NAME=REF.
func givenCatalogs(refs []string) (map[diagnosis.Key]string, error) {
	given := map[diagnosis.Key]string{}
	for _, r := range refs {
		source, ref, ok := strings.Cut(r, "=")
		namespace, name, named := strings.Cut(source, "/")
		if !ok || !named || namespace == "" || name == "" || ref == "" {
			return nil, hint.With(usagef("--catalog %s: it is NAMESPACE/NAME=REF", r), "write for example olm/operatorhubio-catalog=catalog")
		}
		given[diagnosis.Key{Namespace: namespace, Name: name}] = ref
	}
	return given, nil
}

// catalogsOf loads what the CatalogSources of state hold, as far as that can be had.
func (s *session) catalogsOf(ctx context.Context, at *existing.Cluster, state *diagnosis.State, given map[diagnosis.Key]string) (map[diagnosis.Key]*catalog.Catalog, error) {
	catalogs := map[diagnosis.Key]*catalog.Catalog{}
	for _, source := range state.Catalogs {
		key := diagnosis.Key{Namespace: source.Namespace, Name: source.Name}
		if ref := cmp.Or(given[key], source.Spec.Image); ref != "" {
			step := s.progress().Start("read catalog %s/%s from %s", key.Namespace, key.Name, ref)
			loaded, err := s.loadCatalog(ctx, ref)
			if step.End(err) == nil {
				catalogs[key] = loaded
			} else if given[key] != "" || ctx.Err() != nil {
				return nil, err
			}
			continue
		}
		archives, err := at.KeptCatalog(ctx, key.Namespace, key.Name)
		if err != nil {
			return nil, err
		}
		if len(archives) == 0 {
			continue
		}
		if catalogs[key], err = s.loadArchives(ctx, archives); err != nil {
			return nil, fmt.Errorf("read catalog %s/%s: %w", key.Namespace, key.Name, err)
		}
	}
	return catalogs, nil
}

// loadArchives loads a catalog from its archives.
func (s *session) loadArchives(ctx context.Context, archives [][]byte) (*catalog.Catalog, error) {
	dir, err := os.MkdirTemp("", "olmkit-catalog-")
	if err != nil {
		return nil, hint.With(err, "set TMPDIR to a folder with some room")
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var files []string
	for i, archive := range archives {
		file := filepath.Join(dir, strconv.Itoa(i)+".tar")
		if err := os.WriteFile(file, archive, 0o600); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return s.loadCatalog(ctx, files...)
}

// finish prints r, and returns errFindings if somebody has to do something.
func (r diagnoseReport) finish(s *session, output, pkg string) error {
	var err error
	if output == "json" {
		err = s.printJSON(r)
	} else {
		err = r.print(s.Out, pkg)
	}
	for _, d := range r.Subscriptions {
		if err == nil && (d.State == diagnosis.Stuck || d.State == diagnosis.Waiting) {
			err = errFindings
		}
	}
	return err
}

func (r diagnoseReport) print(out io.Writer, pkg string) error {
	r = safetext.Clean(r)
	var b strings.Builder
	if len(r.Subscriptions) == 0 {
		fmt.Fprintf(&b, "cluster %s has no Subscription%s\n", r.Cluster, strings.TrimSuffix(" to package "+pkg, " to package "))
	}
	for i, d := range r.Subscriptions {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s/%s: %s\n", d.Namespace, d.Subscription, d.State)
		fmt.Fprintf(&b, "  package    %s, channel %s, from catalog %s\n", d.Package, cmp.Or(d.Channel, "of the package"), d.Catalog)
		fmt.Fprintf(&b, "  installed  %s\n  next       %s\n", cmp.Or(d.Installed, "nothing"), cmp.Or(d.Next, "nothing"))
		if d.Unknown != "" {
			fmt.Fprintf(&b, "  what OLM would do next is not known: %s; name it with --catalog %s=REF\n", d.Unknown, d.Catalog)
		}
		for _, c := range d.Causes {
			fmt.Fprintf(&b, "  %s: %s\n", c.Object, c.Why)
			for _, f := range c.Fixes {
				fmt.Fprintf(&b, "    fix:  %s\n", f.Do)
				if f.Command != "" {
					fmt.Fprintf(&b, "          %s\n", f.Command)
				}
				fmt.Fprintf(&b, "    risk: %s\n", f.Risk)
			}
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
