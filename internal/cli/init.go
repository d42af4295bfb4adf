package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/project"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/safetext"
	"github.com/olmkit/olmkit/internal/scaffold"
)

func newInit(s *session) *cobra.Command {
	var o scaffold.Options
	var format string
	c := &cobra.Command{
		Use:   "init",
		Short: "Make a kubebuilder project ready to be packaged and tested",
		Long: `Make the kubebuilder project in the working directory ready to be packaged and tested. It writes these, if they do not exist:

  olmkit.yaml                     settings for olmkit's commands
  config/manifests                the CSV that each release starts from, and the bundle's kustomization
  catalog-template.yaml           the channels and their releases
  olmkit.mk                       make targets, which the Makefile includes: bundle, bundle-build, bundle-push, catalog,
                                  catalog-push, manager, image-push, test-upgrade
  .github/workflows/olmkit.yml    a workflow that validates these and tests the upgrades

Existing files stay as they are, but the Makefile gets a marked block at its beginning. On a terminal the command asks for what no
flag says; elsewhere it uses defaults from the kubebuilder project.`,
		Example: `  olmkit init
  olmkit init --display-name 'My Operator' --provider 'My Team' --maintainer 'Jo Doe <jo@example.com>' --image-tag-base ghcr.io/team/my-operator
  make bundle catalog-push`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return s.init(c.Context(), o, format) },
	}
	f := c.Flags()
	f.StringVar(&o.Package, "package", "", "name of the package (default: the projectName in PROJECT)")
	f.StringVar(&o.DisplayName, "display-name", "", "name of the operator in consoles (default: the package's name in words)")
	f.StringVar(&o.Description, "description", "", "what the operator does, in a sentence (default: which kinds it manages)")
	f.StringVar(&o.Provider, "provider", "", "who provides the operator (default: the repository's owner)")
	f.StringArrayVar(&o.Maintainers, "maintainer", nil, "who maintains the operator, as `NAME <EMAIL>` (repeatable)")
	f.StringVar(&o.ImageBase, "image-tag-base", "", "the manager's image without a tag; bundles and the catalog go beside it (default: the Makefile's IMAGE_TAG_BASE, else on ghcr.io for repositories on github.com, else on the project's domain)")
	f.StringVar(&o.Channel, "channel", "stable", "channel of the first release")
	f.StringVar(&o.Version, "version", "", "version of the first release, without a v (default: the Makefile's VERSION, else 0.1.0)")
	outputFlag(c, &format)
	return c
}

// initReport is what 'olmkit init -o json' prints.
type initReport struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Package    string            `json:"package"`
	Files      []scaffold.Result `json:"files"`
	// Clashes are the targets of the Makefile that olmkit.mk has, too.
	Clashes []string `json:"clashes,omitempty"`
}

func (s *session) init(ctx context.Context, o scaffold.Options, format string) error {
	if err := textOrJSON(format); err != nil {
		return err
	}
	k, err := project.ReadKubebuilder(".")
	if err != nil {
		return err
	}
	if k == nil {
		return hint.With(usagef("there is no file %s here", project.KubebuilderFile), "run it in the root of a project that 'kubebuilder init' or 'operator-sdk init' made")
	}
	said, err := scaffold.Said(".")
	if err != nil {
		return err
	}
	if in, ok := s.In.(*os.File); ok && isTerminal(in) && isTerminal(s.Err) {
		if o, err = document.Until(ctx, func() (scaffold.Options, error) { return scaffold.Ask(in, s.Err, o, o.Complete(k, said)) }); err != nil {
			return err
		}
	}
	o = o.Complete(k, said)
	if err := o.Check(); err != nil {
		return wrongUsage(err)
	}
	results, err := scaffold.Write(ctx, ".", k, o)
	if err != nil {
		return err
	}
	clashes, err := scaffold.Clashes(".")
	if err != nil {
		return err
	}
	if format == "json" {
		return s.printJSON(initReport{APIVersion: report.APIVersion, Kind: "Init", Package: o.Package, Files: results, Clashes: clashes})
	}
	var b strings.Builder
	kept := 0
	for _, r := range results {
		fmt.Fprintf(&b, "%-10s  %s\n", r.Action, safetext.Line(r.Path))
		if r.Action == scaffold.Kept {
			kept++
		}
	}
	if kept > 0 {
		b.WriteString("\nKept files were there before, and differ from what init writes; remove one to have it written.\n")
	}
	if len(clashes) > 0 {
		fmt.Fprintf(&b, "\nThe Makefile has targets of its own that olmkit.mk has, too, and make runs those: delete %s there.\n", strings.Join(clashes, ", "))
	}
	fmt.Fprintf(&b, "\nNext: make bundle catalog-push, which pushes to %s-catalog:latest\n", o.ImageBase)
	_, err = io.WriteString(s.Out, b.String())
	return err
}
