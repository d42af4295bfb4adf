package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/diagnosis"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/safetext"
)

// diagnoseReport is what 'olmkit upgrade diagnose -o json' prints.
type diagnoseReport struct {
	APIVersion    string                `json:"apiVersion"`
	Kind          string                `json:"kind"`
	Cluster       string                `json:"cluster"`
	Subscriptions []diagnosis.Diagnosis `json:"subscriptions"`
	Extensions    []diagnosis.Extension `json:"extensions,omitempty"` // of OLM v1
	NotRead       string                `json:"notRead,omitempty"`    // why OLM v1 is left out

	v1 bool // OLM v1 is there
}

func newUpgradeDiagnose(s *session) *cobra.Command {
	l := &live{}
	var pkg, namespace string
	var refs []string
	c := &cobra.Command{
		Use:   "diagnose",
		Short: "Show why OLM does not upgrade on a live cluster, and how to fix it",
		Long: `Show the state of each Subscription and ClusterExtension on a cluster of the kubeconfig: what OLM installs next, why it does
not, the commands that fix that, and their risks. The command only reads, and reads neither Secrets nor custom resources.

OLM's own resolver computes what comes next from the content of the catalogs. Catalogs that 'olmkit bundle run' and 'olmkit cluster
up --catalog' serve are read from the cluster, and images are pulled by this machine. --catalog names the content of others. Without
it, the command prints what OLM has recorded on the cluster. OLM v1 installs what comes next by itself as soon as it can: of a
ClusterExtension, the command prints what OLM v1 says against it, whether its ClusterCatalogs are served and its Deployments ready.

It exits with 3 if a Subscription or ClusterExtension is stuck, or a Subscription waits for an approval.`,
		Example: `  olmkit upgrade diagnose --context production
  olmkit upgrade diagnose -n operators
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
			extensions, err := stateV1(c.Context(), at)
			notRead, err := notAllowed(err)
			if err != nil {
				return err
			}
			r := diagnoseReport{
				APIVersion: report.APIVersion, Kind: "UpgradeDiagnosis", Cluster: at.Name(), v1: extensions != nil, NotRead: notRead,
				Subscriptions: diagnosis.Diagnose(c.Context(), state, pkg, catalogs), Extensions: diagnosis.DiagnoseV1(extensions, pkg),
			}
			r.only(namespace)
			return r.finish(s, l.output, pkg, namespace)
		},
	}
	l.flags(c)
	c.Flags().StringVarP(&pkg, "package", "p", "", "only Subscriptions and ClusterExtensions to this package")
	c.Flags().StringVarP(&namespace, "namespace", "n", "", "only Subscriptions in this namespace, and ClusterExtensions that install to it")
	c.Flags().StringArrayVar(&refs, "catalog", nil, "content of a CatalogSource, as `NAMESPACE/NAME=REF`: a directory, file, image or archive (repeatable)")
	return c
}

// stateV1 reads what OLM v1 has on the cluster, or nil if that has none.
func stateV1(ctx context.Context, at *existing.Cluster) (*diagnosis.StateV1, error) {
	client, err := olmv1.Connect(at.Config())
	if err != nil {
		return nil, err
	}
	return diagnosis.ReadV1(ctx, client)
}

// notAllowed returns what err says if the account has no right to read OLM v1: then the answer is about OLM v0 alone. Any other
// err is returned as it is.
func notAllowed(err error) (string, error) {
	if apierrors.IsForbidden(err) {
		return err.Error(), nil
	}
	return "", err
}

// givenCatalogs reads what users write as NAMESPACE/NAME=REF.
func givenCatalogs(refs []string) (map[diagnosis.Key]string, error) {
	given := map[diagnosis.Key]string{}
	for _, r := range refs {
		source, ref, ok := strings.Cut(r, "=")
		namespace, name, named := strings.Cut(source, "/")
		if !ok || !named || namespace == "" || name == "" || ref == "" {
			return nil, hint.With(usagef("--catalog %s: must be NAMESPACE/NAME=REF", r), "write for example olm/operatorhubio-catalog=catalog")
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
func (r diagnoseReport) finish(s *session, output, pkg, namespace string) error {
	var err error
	if output == "json" {
		err = s.printJSON(r)
	} else {
		err = r.print(s.Out, pkg, namespace)
	}
	if err == nil && r.needsSomebody() {
		err = errFindings
	}
	return err
}

// only leaves what is in namespace, or all if that is empty.
func (r *diagnoseReport) only(namespace string) {
	if namespace == "" {
		return
	}
	r.Subscriptions = slices.DeleteFunc(r.Subscriptions, func(d diagnosis.Diagnosis) bool { return d.Namespace != namespace })
	r.Extensions = slices.DeleteFunc(r.Extensions, func(e diagnosis.Extension) bool { return e.Namespace != namespace })
}

// needsSomebody tells whether something does not go on by itself.
func (r diagnoseReport) needsSomebody() bool {
	return slices.ContainsFunc(r.Subscriptions, func(d diagnosis.Diagnosis) bool {
		return d.State == diagnosis.Stuck || d.State == diagnosis.Waiting
	}) || slices.ContainsFunc(r.Extensions, func(e diagnosis.Extension) bool { return e.State == diagnosis.Stuck })
}

func (r diagnoseReport) print(out io.Writer, pkg, namespace string) error {
	r = safetext.Clean(r)
	var told []string
	for _, d := range r.Subscriptions {
		told = append(told, subscriptionText(d))
	}
	for _, e := range r.Extensions {
		told = append(told, extensionText(e))
	}
	if len(told) == 0 {
		kinds := "Subscription"
		if r.v1 {
			kinds = "Subscription or ClusterExtension"
		}
		of := strings.TrimSuffix(" to package "+pkg, " to package ") + strings.TrimSuffix(" in namespace "+namespace, " in namespace ")
		told = append(told, fmt.Sprintf("cluster %s has no %s%s\n", r.Cluster, kinds, of))
	}
	if r.NotRead != "" {
		told = append(told, fmt.Sprintf("OLM v1 is left out: %s\n  fix: use an account that may read ClusterExtensions, ClusterCatalogs and what they install\n", r.NotRead))
	}
	_, err := io.WriteString(out, strings.Join(told, "\n"))
	return err
}

func subscriptionText(d diagnosis.Diagnosis) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s: %s\n", d.Namespace, d.Subscription, d.State)
	fmt.Fprintf(&b, "  package    %s, channel %s, from catalog %s\n", d.Package, cmp.Or(d.Channel, "of the package"), d.Catalog)
	fmt.Fprintf(&b, "  installed  %s\n  next       %s\n", cmp.Or(d.Installed, "nothing"), cmp.Or(d.Next, "nothing"))
	if d.Unknown != "" {
		fmt.Fprintf(&b, "  what OLM would do next is not known: %s; name it with --catalog %s=REF\n", d.Unknown, d.Catalog)
	}
	if d.WaitsFor != "" {
		fmt.Fprintf(&b, "  waits for  %s\n", d.WaitsFor)
	}
	writeCauses(&b, d.Causes)
	return b.String()
}

func extensionText(e diagnosis.Extension) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ClusterExtension %s: %s\n", e.Extension, e.State)
	fmt.Fprintf(&b, "  package    %s, version %s, channels %s, from catalogs %s\n", e.Package, cmp.Or(e.Version, "any"),
		cmp.Or(strings.Join(e.Channels, " "), "all"), cmp.Or(strings.Join(e.Catalogs, " "), "none"))
	fmt.Fprintf(&b, "  installed  %s\n", cmp.Or(e.Installed, "nothing"))
	if e.Next != "" {
		fmt.Fprintf(&b, "  next       %s\n", e.Next)
	}
	var conditions []string
	for _, c := range e.Conditions {
		if c.Type == "Installed" || c.Type == "Progressing" {
			conditions = append(conditions, fmt.Sprintf("%s %s (%s)", c.Type, c.Status, c.Reason))
		}
	}
	fmt.Fprintf(&b, "  conditions %s\n", cmp.Or(strings.Join(conditions, ", "), "none yet"))
	if e.Deprecated != "" {
		fmt.Fprintf(&b, "  deprecated %s\n", e.Deprecated)
	}
	writeCauses(&b, e.Causes)
	return b.String()
}

func writeCauses(b *strings.Builder, causes []diagnosis.Cause) {
	for _, c := range causes {
		fmt.Fprintf(b, "  %s: %s\n", c.Object, c.Why)
		for _, f := range c.Fixes {
			fmt.Fprintf(b, "    fix:  %s\n", f.Do)
			if f.Command != "" {
				fmt.Fprintf(b, "          %s\n", f.Command)
			}
			fmt.Fprintf(b, "    risk: %s\n", f.Risk)
		}
	}
}
