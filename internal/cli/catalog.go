package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/advice"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/report"
)

func newCatalog(s *session) *cobra.Command {
	return reaching(s, group("catalog", "Make, judge, draw, serve and publish file-based catalogs",
		newCatalogRender(s), newCatalogBuild(s), newCatalogValidate(s), newCatalogGraph(s), newCatalogDiff(s), newCatalogServe(s), newCatalogPush(s)))
}

func newCatalogRender(s *session) *cobra.Command {
	var format, into string
	c := &cobra.Command{
		Use:   "render REF...",
		Short: "Print bundles and catalogs as one file-based catalog",
		Long: `Print bundles and catalogs as one file-based catalog.

A REF is a bundle directory (manifests/ and metadata/), a directory or a file of a file-based catalog, - for standard input,
or an image of a bundle or of a catalog: on a registry, with its host (quay.io/team/my-catalog:latest), in an archive, or in
an OCI layout. Bundles carry all their manifests inline, so that OLM installs those of directories and archives from the
catalog alone.`,
		Args: atLeastOne("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := outputOneOf(format, catalog.Formats); err != nil {
				return err
			}
			loaded, err := s.loadCatalog(c.Context(), args...)
			if err != nil {
				return err
			}
			return s.writeCatalog(into, format, loaded)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "json", "format: "+strings.Join(catalog.Formats, ", "))
	c.Flags().StringVar(&into, "into", "", "write to this file instead of standard output")
	return c
}

func newCatalogBuild(s *session) *cobra.Command {
	var format, into string
	c := &cobra.Command{
		Use:   "build TEMPLATE",
		Short: "Print the file-based catalog that a template describes",
		Long: `Print the file-based catalog that a template describes. The template is opm's semver or basic one, with bundle
directories in place of images, or ours:

  schema: olmkit.template
  package: example-operator
  description: What it does.
  icon: icon.svg                    # a file beside the template
  defaultChannel: stable
  bundles: [../bundle/*]            # directories relative to the template, or patterns that match some
  channels:
    stable:
      - 1.0.0                       # a bundle's version or name; it replaces the one before it that nothing skips
      - 1.1.0
      - version: 1.1.1
        skips: [1.1.0]
      - version: 1.2.0
        skipRange: ">=1.0.0 <1.2.0"
        replaces: 1.0.0             # said otherwise; "" for nothing
  deprecations:
    - bundle: 1.0.0                 # or channel: NAME; neither for the whole package
      message: Use 1.2.0.`,
		Args: exactlyOne("TEMPLATE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := outputOneOf(format, catalog.Formats); err != nil {
				return err
			}
			built, err := s.loader().Build(c.Context(), args[0])
			if err != nil {
				return err
			}
			return s.writeCatalog(into, format, built)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "yaml", "format: "+strings.Join(catalog.Formats, ", "))
	c.Flags().StringVar(&into, "into", "", "write to this file instead of standard output")
	return c
}

func newCatalogValidate(s *session) *cobra.Command {
	var options check.Options
	var against string
	c := &cobra.Command{
		Use:   "validate REF...",
		Short: "Look in a catalog for what OLM will refuse, lose or get wrong",
		Args:  atLeastOne("REF"),
	}
	j := judged(s, c)
	c.Flags().StringArrayVarP(&options.Packages, "package", "p", nil, "judge only this package (repeatable)")
	c.Flags().StringSliceVar(&options.Only, "only", nil, "run only these checks, named by code (CRD001) or family (CRD)")
	c.Flags().StringSliceVar(&options.Skip, "skip", nil, "leave these checks out, named by code or family")
	c.Flags().StringVar(&against, "against", "", "also compare with this catalog, which users have now")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := j.check(); err != nil {
			return err
		}
		for _, name := range slices.Concat(options.Only, options.Skip) {
			if !check.Known(name) {
				return advice.With(usagef("no check is called %s", name), "see docs/checks for their codes")
			}
		}
		if against != "" {
			var err error
			if options.Previous, err = s.loadCatalog(c.Context(), against); err != nil {
				return err
			}
		}
		loaded, err := s.loader().Load(c.Context(), args...)
		if err != nil {
			return err
		}
		for _, name := range options.Packages {
			if _, err := findPackage(loaded, name); err != nil && len(loaded.Problems) == 0 {
				return err
			}
		}
		r := &report.Report{APIVersion: report.APIVersion, Kind: report.KindValidate}
		r.Findings, r.Checks = check.Catalog(loaded, options)
		return j.finish(r)
	}
	return c
}

func newCatalogGraph(s *session) *cobra.Command {
	var format, pkg, channel string
	var every bool
	c := &cobra.Command{
		Use:   "graph REF...",
		Short: "Draw the upgrade graph: what the channels declare, and what OLM will do",
		Args:  atLeastOne("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := outputOneOf(format, graph.Formats); err != nil {
				return err
			}
			loaded, err := s.loadCatalog(c.Context(), args...)
			if err != nil {
				return err
			}
			packages := loaded.Packages
			if pkg != "" {
				p, err := findPackage(loaded, pkg)
				if err != nil {
					return err
				}
				packages = []*catalog.Package{p}
			}
			drawings := []graph.Drawing{}
			for _, p := range packages {
				for _, ch := range p.Channels {
					if channel == "" || channel == ch.Name {
						drawings = append(drawings, graph.NewDrawing(p, ch, every))
					}
				}
			}
			if len(drawings) == 0 && channel != "" {
				return advice.With(usagef("no channel is called %s", channel), "list the channels with 'olmkit catalog graph %s'", strings.Join(args, " "))
			}
			return graph.Draw(s.Out, format, drawings)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "text", "format: "+strings.Join(graph.Formats, ", "))
	c.Flags().StringVarP(&pkg, "package", "p", "", "draw only this package")
	c.Flags().StringVar(&channel, "channel", "", "draw only channels of this name")
	c.Flags().BoolVar(&every, "all", false, "draw also the edges that a skipRange allows and OLM does not take")
	return c
}

// loader reads catalogs as the command line says.
func (s *session) loader() catalog.Loader { return catalog.Loader{Stdin: s.In, Images: s.images} }

// loadCatalog loads refs for a command that needs all of them to be readable.
func (s *session) loadCatalog(ctx context.Context, refs ...string) (*catalog.Catalog, error) {
	loaded, err := s.loader().Load(ctx, refs...)
	if err != nil {
		return nil, err
	}
	return loaded, loaded.Err()
}

// writeCatalog writes the whole catalog in order to the file into, or to standard output when that is "".
func (s *session) writeCatalog(into, format string, c *catalog.Catalog) error {
	if into == "" {
		return catalog.Write(s.Out, format, c.Sorted())
	}
	var b bytes.Buffer
	if err := catalog.Write(&b, format, c.Sorted()); err != nil {
		return err
	}
	if err := replaceFile(into, b.Bytes()); err != nil {
		return advice.With(fmt.Errorf("write catalog: %w", err), "choose a place for --into that can be written")
	}
	return nil
}

// findPackage returns the package called name. With an empty name it returns the only one.
func findPackage(c *catalog.Catalog, name string) (*catalog.Package, error) {
	known := make([]string, len(c.Packages))
	for i, p := range c.Packages {
		known[i] = p.Name
	}
	list := strings.Join(known, ", ")
	if name == "" && len(c.Packages) == 1 {
		return c.Packages[0], nil
	}
	if len(known) == 0 {
		return nil, advice.With(usagef("the catalog holds no package"), "name a catalog with documents of schema %s", catalog.SchemaPackage)
	}
	if name == "" {
		return nil, advice.With(usagef("the catalog holds %d packages", len(known)), "choose one with --package: %s", list)
	}
	if p := c.Find(name); p != nil {
		return p, nil
	}
	return nil, advice.With(usagef("the catalog holds no package %s", name), "choose one of %s", list)
}

func outputOneOf(value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return usagef("--output %s: it is one of %s", value, strings.Join(known, ", "))
}

// exactlyOne and atLeastOne refuse a wrong number of arguments as wrong usage.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return advice.With(usagef("%s takes one %s, not %d", c.CommandPath(), what, len(args)), "see '%s --help'", c.CommandPath())
	}
}

func atLeastOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return advice.With(usagef("%s takes at least one %s", c.CommandPath(), what), "see '%s --help'", c.CommandPath())
	}
}
