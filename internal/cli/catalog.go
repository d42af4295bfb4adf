package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/output"
	"github.com/olmkit/olmkit/internal/report"
)

func newCatalog(s *session) *cobra.Command {
	return reaching(s, group("catalog", "Make, judge, draw, serve and publish file-based catalogs",
		newCatalogRender(s), newCatalogBuild(s), newCatalogValidate(s), newCatalogGraph(s), newCatalogDiff(s), newCatalogServe(s), newCatalogPush(s)))
}

func newCatalogRender(s *session) *cobra.Command {
	var format, into, level string
	c := &cobra.Command{
		Use:   "render REF...",
		Short: "Print bundles and catalogs as one file-based catalog",
		Long: `Print bundles and catalogs as one file-based catalog.

A REF is a bundle directory (manifests/ and metadata/), a directory or a file of a file-based catalog, - for standard input,
or an image of a bundle or of a catalog: on a registry, with its host (quay.io/team/my-catalog:latest), in an archive, or in
an OCI layout. Bundles carry all their manifests inline, so that OLM installs those of directories and archives from the
catalog alone.`,
		Example: `  olmkit catalog render bundle/1.2.0
  olmkit catalog render quay.io/team/my-catalog:latest -o yaml --output-file catalog/catalog.yaml`,
		Args: atLeastOne("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(outputOneOf(format, catalog.Formats), checkMigration(level)); err != nil {
				return err
			}
			if level == catalog.Migrations[0] {
				return s.write(c.Context(), into, func(w io.Writer) error { return s.loader().Render(c.Context(), w, format, args...) })
			}
			loaded, err := s.loadCatalog(c.Context(), args...)
			if err != nil {
				return err
			}
			return s.writeCatalog(c.Context(), into, format, level, loaded)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "json", "format: "+strings.Join(catalog.Formats, ", "))
	c.Flags().StringVar(&into, "output-file", "", "write to this file instead of standard output")
	addMigration(c, &level)
	return c
}

func newCatalogBuild(s *session) *cobra.Command {
	var format, into, level, reference string
	c := &cobra.Command{
		Use:   "build TEMPLATE",
		Short: "Print the file-based catalog that a template describes",
		Long: `Print the file-based catalog that a template describes. The template is opm's semver or basic one, with bundle
directories in place of images, or ours:

  schema: olmkit.template
  package: example-operator
  description: What it does.
  icon: icon.svg                    # a file beside the template
  defaultChannel: stable            # of several
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
		Example: `  olmkit catalog build catalog-template.yaml --output-file catalog/my-operator/catalog.yaml
  olmkit catalog build catalog-template.yaml --by-reference 'quay.io/team/my-operator-bundle:v{version}' --output-file catalog/my-operator/catalog.yaml`,
		Args: exactlyOne("TEMPLATE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(outputOneOf(format, catalog.Formats), checkMigration(level)); err != nil {
				return err
			}
			built, err := s.loader().Build(c.Context(), args[0])
			if err == nil && reference != "" {
				err = s.refer(c.Context(), built, reference)
			}
			if err != nil {
				return err
			}
			return s.writeCatalog(c.Context(), into, format, level, built)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "yaml", "format: "+strings.Join(catalog.Formats, ", "))
	c.Flags().StringVar(&into, "output-file", "", "write to this file instead of standard output")
	c.Flags().StringVar(&reference, "by-reference", "", "name the images of bundle directories, by digest, in the place of their manifests: `REF`, in which {version} stands for each bundle's version, is where 'olmkit bundle push' has put them")
	addMigration(c, &level)
	return c
}

// refer lets c name the image that reference is of each bundle, by the digest that the registry says.
func (s *session) refer(ctx context.Context, c *catalog.Catalog, reference string) error {
	if !strings.Contains(reference, versionPattern) && len(bundlesIn(nil, c)) > 1 {
		return hint.With(usagef("--by-reference %s: all bundles would have the same image", reference), "write for example quay.io/team/my-operator-bundle:v{version}")
	}
	step := s.progress().Start("ask for the images of %d bundles", len(bundlesIn(nil, c)))
	return step.End(s.loader().Refer(ctx, c, func(ctx context.Context, b *catalog.Bundle) (string, error) {
		return s.images.Pinned(ctx, strings.ReplaceAll(reference, versionPattern, b.Version.String()))
	}))
}

func newCatalogValidate(s *session) *cobra.Command {
	var options check.Options
	var against, template string
	var pull, images, all bool
	c := &cobra.Command{
		Use:   "validate REF...",
		Short: "Validate a catalog and its upgrades",
		Long: `Validate a catalog: its documents, the upgrade graph, and every upgrade that OLM takes between bundles whose manifests are
inline (--pull gets those of the others from their images). docs/checks lists all checks.

The verdict is about what can still be changed: the catalog, the graph, the heads of channels and the upgrades to them.
Findings on older bundles, and on upgrades to those, are published: they do not fail, and are a line for each code and
package; --all shows and counts them. With --against, exactly what the published catalog already has is published.

The codes that begin with OLM are about what OLM v1 refuses and OLM v0 accepts: notes, and errors with --olm v1.

Only --pull and --images access registries, and --template does for bundles that the template names by image.

Suppress a finding with a comment in YAML, or in a file that --suppress names (see docs/suppress.md):

  replaces: tee.v0.9.0 # olmkit:suppress GRA007 until=2027-01-31 the first release had another name`,
		Example: `  olmkit catalog validate catalog --report junit=catalog.xml
  olmkit catalog validate catalog --against quay.io/team/my-catalog:latest
  olmkit catalog validate catalog --only CRD,GRA --fail-on warning`,
		Args: atLeastOne("REF"),
	}
	j := judged(s, c)
	j.suppresses(c)
	j.forOLM(c)
	c.Flags().StringArrayVarP(&options.Packages, "package", "p", nil, "validate only this package (repeatable)")
	c.Flags().StringSliceVar(&options.Only, "only", nil, "run only these checks, named by code (CRD001) or family (CRD)")
	c.Flags().StringSliceVar(&options.Skip, "skip", nil, "skip these checks, named by code or family")
	c.Flags().StringVar(&against, "against", "", "also compare with this published catalog; findings on what it already has do not fail")
	c.Flags().BoolVar(&all, "all", false, "show and count findings on published bundles and upgrades too")
	c.Flags().BoolVar(&pull, "pull", false, "pull the images of bundles whose manifests are not inline, and validate those too")
	c.Flags().BoolVar(&images, "images", false, imagesHelp)
	c.Flags().StringVar(&template, "template", "", "also compare the channels with those that the catalog's template `FILE` builds; see 'olmkit catalog build'")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := j.check(c.Context()); err != nil {
			return err
		}
		for _, name := range slices.Concat(options.Only, options.Skip) {
			if !check.Known(name) {
				return hint.With(usagef("no check is called %s", name), "see docs/checks for their codes")
			}
		}
		if against != "" {
			var err error
			if options.Previous, err = s.loadCatalog(c.Context(), against); err != nil {
				return err
			}
		}
		if template != "" {
			var err error
			if options.Template, err = s.loader().Build(c.Context(), template); err != nil {
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
		if pull {
			if err := s.pull(c.Context(), bundlesIn(options.Packages, options.Previous, loaded)); err != nil {
				return err
			}
		}
		if images {
			if options.Registry, err = s.registry(c.Context(), check.ImagesIn(loaded, options)); err != nil {
				return err
			}
		}
		j.partial = len(options.Packages) > 0
		r := &report.Report{APIVersion: report.APIVersion, Kind: report.KindValidate, Files: filesOf(loaded)}
		if r.Findings, r.Checks, err = checked(c.Context(), loaded, options); err != nil {
			return err
		}
		if !all {
			r.Split()
		}
		if j.wants("html") || j.wants("json") {
			packages := slices.DeleteFunc(slices.Clone(loaded.Packages), func(p *catalog.Package) bool {
				return j.partial && !slices.Contains(options.Packages, p.Name)
			})
			if r.Graph, err = document.Until(c.Context(), func() ([]graph.Drawing, error) { return drawingsOf(packages, "", false), nil }); err != nil {
				return err
			}
		}
		return j.finish(c.Context(), r)
	}
	return c
}

func newCatalogGraph(s *session) *cobra.Command {
	var format, pkg, channel string
	var every bool
	c := &cobra.Command{
		Use:   "graph REF...",
		Short: "Draw the upgrade graph: what the channels declare, and what OLM will do",
		Long: `Draw the upgrade graph: what the channels declare, and what OLM will do.

As text each entry of a channel is a line, the newest first; the head is marked by a star. It says where OLM takes those who
have the entry, and by which edge: "→ 1.2.0  replaces". Where else the channel declares that they go, and OLM does not take
them, follows: "not 1.1.0 (skips)".`,
		Example: `  olmkit catalog graph catalog --channel stable
  olmkit catalog graph quay.io/team/my-catalog:latest -o html > graph.html`,
		Args: atLeastOne("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := outputOneOf(format, drawingFormats); err != nil {
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
			return until(c.Context(), func() error {
				drawings := drawingsOf(packages, channel, every)
				if len(drawings) == 0 && channel != "" {
					return hint.With(usagef("no channel is called %s", channel), "list the channels with 'olmkit catalog graph %s'", strings.Join(args, " "))
				}
				if format == "html" {
					return report.HTML(s.Out, &report.Report{Kind: report.KindGraph, Graph: drawings})
				}
				return graph.Draw(s.Out, format, drawings)
			})
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "text", "format: "+strings.Join(drawingFormats, ", "))
	c.Flags().StringVarP(&pkg, "package", "p", "", "draw only this package")
	c.Flags().StringVar(&channel, "channel", "", "draw only channels of this name")
	c.Flags().BoolVar(&every, "all", false, "also draw the edges that a skipRange allows and OLM does not take")
	return c
}

// drawingFormats are the formats that a graph is drawn in; html is a page of its own, see report.HTML.
var drawingFormats = append(slices.Clone(graph.Formats), "html")

// drawingsOf draws the channels called channel, or all when it is "", of packages.
func drawingsOf(packages []*catalog.Package, channel string, every bool) []graph.Drawing {
	drawings := []graph.Drawing{}
	for _, p := range packages {
		for _, c := range p.Channels {
			if channel == "" || channel == c.Name {
				drawings = append(drawings, graph.NewDrawing(p, c, every))
			}
		}
	}
	return drawings
}

// checked returns what check.Catalog does, unless ctx ends before.
func checked(ctx context.Context, c *catalog.Catalog, options check.Options) (findings []finding.Finding, codes []string, err error) {
	type result struct {
		findings []finding.Finding
		codes    []string
	}
	r, err := document.Until(ctx, func() (r result, _ error) {
		r.findings, r.codes = check.Catalog(c, options)
		return r, nil
	})
	return r.findings, r.codes, err
}

// loader reads catalogs as the command line says.
func (s *session) loader() catalog.Loader {
	return catalog.Loader{Stdin: s.In, Images: s.images, Cache: cache.Open("rendered"), MaxFile: document.Limit(s.maxFile)}
}

// loadCatalog loads refs for a command that needs all of them to be readable.
func (s *session) loadCatalog(ctx context.Context, refs ...string) (*catalog.Catalog, error) {
	loaded, err := s.loader().Load(ctx, refs...)
	if err != nil {
		return nil, err
	}
	return loaded, loaded.Err()
}

// bundlesIn are the bundles of the packages called names, or of all when there are no names, in those of catalogs that are
// not nil.
func bundlesIn(names []string, catalogs ...*catalog.Catalog) []*catalog.Bundle {
	var bundles []*catalog.Bundle
	for _, c := range catalogs {
		if c == nil {
			continue
		}
		for _, p := range c.Packages {
			if len(names) == 0 || slices.Contains(names, p.Name) {
				bundles = append(bundles, p.Bundles...)
			}
		}
	}
	return bundles
}

// pull gets the manifests of those of bundles whose images alone have them.
func (s *session) pull(ctx context.Context, bundles []*catalog.Bundle) error {
	bare := catalog.Bare(bundles)
	if len(bare) == 0 {
		return nil
	}
	return s.progress().Start("pull %d bundles, whose manifests the catalog does not hold", len(bare)).End(s.loader().Pull(ctx, bare))
}

const imagesHelp = "ask the registries for every image that bundles name, for the platforms that the operator supports"

// asks is how many images registries are asked about at a time.
const asks = 8

// registry asks about images. The error is of the first, in their order, that a registry gave no answer about.
func (s *session) registry(ctx context.Context, images []string) (check.Registry, error) {
	step := s.progress().Start("ask for %d images", len(images))
	platforms, errs := make([][]string, len(images)), make([]error, len(images))
	var group errgroup.Group
	group.SetLimit(asks)
	for i, reference := range images {
		group.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil {
				platforms[i], errs[i] = s.images.Platforms(ctx, reference)
			}
			return nil
		})
	}
	_ = group.Wait() // errs holds them
	known := check.Registry{}
	for i, reference := range images {
		if errs[i] != nil {
			return nil, step.End(errs[i])
		}
		known[reference] = platforms[i]
	}
	return known, step.End(nil)
}

func addMigration(c *cobra.Command, level *string) {
	c.Flags().StringVar(level, "migrate-level", catalog.Migrations[0], "migrate the output up to `LEVEL`, as opm does: "+
		strings.Join(catalog.Migrations, ", ")+"; OpenShift 4.17 and later ask for "+catalog.MigrationCSVMetadata)
}

func checkMigration(level string) error {
	if !slices.Contains(catalog.Migrations, level) {
		return usagef("--migrate-level %s: it is one of %s", level, strings.Join(catalog.Migrations, ", "))
	}
	return nil
}

// writeCatalog writes the whole catalog, migrated up to level, in order to the file into, or to standard output when that is "".
func (s *session) writeCatalog(ctx context.Context, into, format, level string, c *catalog.Catalog) error {
	if level != catalog.Migrations[0] {
		if err := until(ctx, c.Migrate); err != nil {
			return err
		}
	}
	return s.write(ctx, into, func(w io.Writer) error { return catalog.Write(w, format, c.Sorted()) })
}

// write has f write a catalog to the file into, or to standard output when that is "".
func (s *session) write(ctx context.Context, into string, f func(io.Writer) error) error {
	if into == "" {
		return f(s.out(ctx))
	}
	if err := output.File(ctx, into, f); err != nil {
		return fmt.Errorf("write catalog: %w", err)
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
		return nil, hint.With(usagef("the catalog holds no package"), "name a catalog with documents of schema %s", catalog.SchemaPackage)
	}
	if name == "" {
		return nil, hint.With(usagef("the catalog holds %d packages", len(known)), "choose one with --package: %s", list)
	}
	if p := c.Find(name); p != nil {
		return p, nil
	}
	return nil, hint.With(usagef("the catalog holds no package %s", name), "choose one of %s", list)
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
		return hint.With(usagef("%s takes one %s, not %d", c.CommandPath(), what, len(args)), "see '%s --help'", c.CommandPath())
	}
}

func atLeastOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return hint.With(usagef("%s takes at least one %s", c.CommandPath(), what), "see '%s --help'", c.CommandPath())
	}
}
